"""A look into a file over HTTP, and in a dry run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from geomill.domain.access.principal import Role
from tests.integration.api.desk import order, problem
from tests.integration.vector import sources


@pytest.fixture
async def counter(make_counter: Any) -> Any:
    counter = await make_counter()
    sources.put(counter.storage, "wells.csv", b"x,y,depth\n1,2,3\n4,5,6\n")
    return counter


async def test_a_look_into_a_file(counter: Any) -> None:
    body = {"container_name": "uploads", "file_name": "wells.csv", "processing_options": {"layr": "a"}}
    answer = await counter.post("inspect", body)
    assert answer.status_code == 200, answer.text
    inspection = answer.json()
    assert (inspection["format"], inspection["workflow_id"]) == ("CSV", "vector_processing")
    errors = {each["code"]: each for each in inspection["problems"] if each["severity"] == "error"}
    assert errors["invalid_option"]["field"] == "processing_options.layr"
    assert "did you mean 'layer'?" in errors["invalid_option"]["message"]


async def test_a_submitter_looks_only_into_files_of_its_platform(counter: Any) -> None:
    await counter.engine.rows(
        "INSERT INTO app.platforms (platform_id, display_name, required_refs) VALUES ('acme', 'Acme', '[\"id\"]')"
        " RETURNING 1 AS one"
    )
    partner = await counter.key(Role.SUBMITTER, platform_id="acme")
    body = {"platform_id": "acme", "container_name": "uploads", "file_name": "wells.csv"}
    hidden = problem(await counter.post("inspect", body, by=partner), 422, "unusable_source")
    absent = problem(await counter.post("inspect", {**body, "file_name": "none.csv"}), 422, "unusable_source")
    assert hidden["detail"].replace("wells", "none") == absent["detail"]
    problem(await counter.post("inspect", {**body, "platform_id": "ddh"}, by=partner), 403, "forbidden")
    reader = await counter.key(Role.READER)
    problem(await counter.post("inspect", body, by=reader), 403, "forbidden")
    assert (await counter.post("inspect", body)).status_code == 200  # an operator may


@pytest.mark.parametrize("name", ["../secret", "/etc/passwd", "a\\b", ""])
async def test_a_path_that_leads_elsewhere_is_refused(counter: Any, name: str) -> None:
    answer = await counter.post("inspect", {"container_name": "uploads", "file_name": name})
    assert answer.status_code == 422


async def test_a_dry_run_looks_into_the_file(counter: Any, tmp_path: Path) -> None:
    sources.put(counter.storage, "a.gpkg", sources.encoded(tmp_path, sources.table(sources.squares(3)), kind="Polygon"))
    fields = {"data_type": "vector", "file_name": "a.gpkg", "workflow_id": "vector_processing"}
    answer = await counter.post("submit", order(**fields), dry_run="true")
    assert answer.status_code == 200, answer.text
    (inspection,) = answer.json()["inspections"]
    assert (inspection["acceptable"], inspection["layers"][0]["rows"]) == (True, 3)
    refused = await counter.post(
        "submit", order(**fields, processing_options={"layer": "b", "keep_z": "no"}), dry_run="true"
    )
    fields_told = [each["field"] for each in problem(refused, 422, "invalid_inputs")["errors"]]
    assert fields_told == ["keep_z", "processing_options.layer"]
    names_alone = (await counter.post("submit", order(**fields), dry_run="true", inspect="false")).json()
    assert (names_alone["inspections"], names_alone["revision"]) == ([], 1)


async def test_a_workflow_that_reads_no_data_takes_any_file(counter: Any) -> None:
    answer = await counter.post("submit", order(), dry_run="true")
    (inspection,) = answer.json()["inspections"]
    assert (inspection["workflow_id"], inspection["acceptable"]) == ("publish_file", True)
    assert [each["severity"] for each in inspection["problems"] if each["code"] == "unreadable"] == ["warning"]
