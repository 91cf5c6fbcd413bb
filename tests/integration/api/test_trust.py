"""A partner starts what is meant for partners, reads what is its own, and changes nothing else."""

from __future__ import annotations

import hashlib
import os
import random
from pathlib import Path
from typing import Any

import pytest

from geomill.domain.access.principal import Role
from geomill.domain.engine.message import TASK_QUEUES
from geomill.domain.engine.schedule import Schedule
from geomill.domain.engine.starting import Starter
from geomill.domain.objectname import Zone
from geomill.engine.maintenance.schedules import Scheduler, create
from geomill.errors import Forbidden
from geomill.sdk.registry import load_handlers
from geomill.stages.registry import load_stage_jobs
from geomill.workflows.registry import WorkflowRegistry
from tests.integration.api.conftest import eventually
from tests.integration.api.desk import TIFF, order, problem

LIBRARY = {
    workflow.workflow_id: workflow
    for workflow in WorkflowRegistry.load([], handlers=load_handlers().info, queues=TASK_QUEUES).all()
}
HOUSE = [name for name, workflow in LIBRARY.items() if workflow.started_by is Starter.GEOMILL]
FOR_PARTNERS = {"raster_processing", "process_large_raster", "vector_processing", "publish_file"}
"""Those that a partner's data takes by its type and size."""
CALLERS: list[tuple[Role, ...]] = [(), *((role,) for role in Role)]
OTHERS = {"item_id": "secret", "layer_index": 0}


@pytest.fixture
async def idle_counter(make_counter: Any) -> Any:
    return await make_counter()


@pytest.fixture
async def counter(make_counter: Any) -> Any:
    return await make_counter(busy=True)


async def headers(counter: Any, roles: tuple[Role, ...]) -> dict[str, str]:
    if not roles:
        return {"Authorization": ""}
    return dict(await counter.key(*roles, platform_id="ddh" if roles == (Role.SUBMITTER,) else None))


async def queued(counter: Any) -> list[str]:
    rows = await counter.engine.rows("SELECT body ->> 'workflow_id' AS workflow FROM dagapp.dag_queue")
    return sorted({row["workflow"] for row in rows})


def test_the_house_has_what_deletes_exports_and_withdraws() -> None:
    assert sorted(HOUSE) == [
        "delete_asset_data",
        "export_asset",
        "export_by_data_factory",
        "withdraw_asset",
        "withdraw_by_data_factory",
        "write_extract",
    ]


@pytest.mark.parametrize("roles", CALLERS, ids=lambda roles: roles[0].value if roles else "nobody")
async def test_each_workflow_is_started_by_those_it_is_meant_for(idle_counter: Any, roles: tuple[Role, ...]) -> None:
    """Every workflow of the library, by every role, on every route that starts one."""
    by = await headers(idle_counter, roles)
    operator = bool({Role.OPERATOR, Role.ADMIN} & set(roles))
    for number, workflow_id in enumerate(LIBRARY):
        refs = {"dataset_id": f"{workflow_id}", "resource_id": str(number), "version_id": "v1"}
        inputs = {"asset_id": "a" * 32, "previous_job_ids": []} if workflow_id in HOUSE else {}
        answer = await idle_counter.post(
            "submit", order(platform_refs=refs, workflow_id=workflow_id, processing_options=inputs), by=by
        )
        partner = roles == (Role.SUBMITTER,) and workflow_id in FOR_PARTNERS
        house = workflow_id in HOUSE
        passes = partner or (operator and not house)
        assert (answer.status_code not in (401, 403)) == passes, (workflow_id, answer.text)

        job = {"workflow_id": workflow_id, "input_params": inputs}
        answer = await idle_counter.client.post("/api/v1/jobs", json=job, headers=by)
        assert (answer.status_code not in (401, 403)) == (operator and not house), (workflow_id, answer.text)
        if operator and house:
            assert "is started by geomill only" in problem(answer, 403, "forbidden")["detail"]
    assert not set(await queued(idle_counter)) & set(HOUSE)


@pytest.mark.parametrize("workflow_id", HOUSE)
async def test_no_schedule_and_no_retry_starts_what_is_of_the_house(idle_counter: Any, workflow_id: str) -> None:
    scheduler = Scheduler(idle_counter.engine.workflow_registry, "dag-jobs")
    async with idle_counter.engine.pool.connection() as conn:
        schedule: Schedule = await create(
            conn, schedule_id="s", workflow_id=workflow_id, input_params={"asset_id": "a" * 32}, interval_seconds=1
        )
        await conn.execute("UPDATE dagapp.dag_schedules SET next_due_at = now() - interval '1 second'")
        fired = await scheduler.run_once(conn)
        with pytest.raises(Forbidden, match="is started by geomill only"):
            await scheduler.fire(conn, schedule.schedule_id)
    assert (fired.jobs, list(fired.refused)) == ([], ["s"])
    assert await queued(idle_counter) == []


async def test_an_operators_job_does_not_write_where_assets_lie(make_counter: Any) -> None:
    idle_counter = await make_counter(job_types=load_stage_jobs())
    for inputs in ({"blob_prefix": "a/b/_r1"}, {"table_name": "roads_r2"}):
        body = {
            "workflow_id": "vector_processing",
            "input_params": {"container_name": "uploads", "file_name": "a.gpkg", **inputs},
        }
        answer = await idle_counter.client.post("/api/v1/jobs", json=body)
        assert problem(answer, 422, "invalid_inputs")["errors"][0]["field"] == next(iter(inputs))
    staged = {"blob_name": "a.tif", "output_folder": "a/b/_r1"}
    answer = await idle_counter.client.post("/api/jobs/submit/process_large_raster", json=staged)
    assert problem(answer, 422, "invalid_inputs")["errors"][0]["field"] == "output_folder"
    assert await queued(idle_counter) == []


async def test_a_platform_lists_what_its_partners_may_name(idle_counter: Any) -> None:
    by = await idle_counter.key(Role.SUBMITTER, platform_id="ddh")
    refused = await idle_counter.post("submit", order(workflow_id="process_raster_collection"), by=by)
    usable = "use one of process_large_raster, publish_file, raster_processing, vector_processing"
    assert usable in problem(refused, 403, "forbidden")["detail"]
    changed = {"display_name": "DDH", "workflows": ["process_large_raster"], "containers": ["uploads"]}
    assert (await idle_counter.client.patch("/api/platforms/ddh", json=changed)).status_code == 200
    assert (await idle_counter.post("submit", order(workflow_id="process_large_raster"), by=by)).status_code == 202
    assert (await idle_counter.post("submit", order(overwrite=True), by=by)).status_code == 403
    unnamed = await idle_counter.client.patch("/api/platforms/ddh", json={"display_name": "DDH"})
    assert (unnamed.json()["workflows"], unnamed.json()["containers"]) == (["process_large_raster"], ["uploads"])
    house = {"display_name": "DDH", "workflows": HOUSE}
    assert (await idle_counter.client.patch("/api/platforms/ddh", json=house)).status_code == 200
    answer = await idle_counter.post("submit", order(workflow_id=HOUSE[0], overwrite=True), by=by)
    assert problem(answer, 403, "forbidden")


async def test_another_platforms_container_is_as_if_it_were_not_there(idle_counter: Any) -> None:
    await idle_counter.put("b.tif", TIFF, container="arcgis")
    by = await idle_counter.key(Role.SUBMITTER, platform_id="ddh")
    answers = []
    for container in ("arcgis", "nobodys"):
        answer = await idle_counter.post("submit", order(container_name=container, file_name="b.tif"), by=by)
        document = problem(answer, 422, "unusable_source")
        answers.append(str(document).replace(container, "…"))
    assert answers[0] == answers[1]
    own_answer = await idle_counter.post("submit", order(file_name="b.tif"), by=by)
    assert answers[0] == str(problem(own_answer, 422, "unusable_source")).replace("uploads", "…")

    owner = await idle_counter.key(Role.SUBMITTER, platform_id="arcgis")
    theirs = order(platform_id="arcgis", platform_refs=OTHERS, container_name="arcgis", file_name="b.tif")
    assert (await idle_counter.post("submit", theirs, by=owner)).status_code == 202
    shared = {"display_name": "DDH", "containers": ["uploads", "arcgis"]}
    assert (await idle_counter.client.patch("/api/platforms/ddh", json=shared)).status_code == 200
    assert (
        await idle_counter.post("submit", order(container_name="arcgis", file_name="b.tif"), by=by)
    ).status_code == 202


async def test_no_platform_is_called_like_the_container_of_another(idle_counter: Any) -> None:
    body = {"platform_id": "uploads", "display_name": "U", "required_refs": ["id"]}
    answer = await idle_counter.client.post("/api/platforms", json=body)
    assert "belongs to the platform 'ddh'" in problem(answer, 409, "conflict")["detail"]
    assert (await idle_counter.client.post("/api/platforms", json={**body, "platform_id": "my_app"})).status_code == 201
    await idle_counter.put("c.tif", TIFF, container="my-app")
    by = await idle_counter.key(Role.SUBMITTER, platform_id="my_app")
    own_order = order(platform_id="my_app", platform_refs={"id": "x"}, container_name="my-app", file_name="c.tif")
    assert (await idle_counter.post("submit", own_order, by=by)).status_code == 202


async def test_a_partner_does_not_learn_the_containers_of_others(idle_counter: Any) -> None:
    change = {"display_name": "A", "containers": ["very-secret"], "workflows": ["publish_file"]}
    assert (await idle_counter.client.patch("/api/platforms/arcgis", json=change)).status_code == 200
    by = await idle_counter.key(Role.SUBMITTER, platform_id="ddh")
    for path in ("/api/platforms", "/api/platforms/arcgis"):
        assert "very-secret" not in (await idle_counter.get(path, by=by)).text
    assert "uploads" in (await idle_counter.get("/api/platforms/ddh", by=by)).text
    own = await idle_counter.key(Role.SUBMITTER, platform_id="arcgis")
    assert "very-secret" in (await idle_counter.get("/api/platforms/arcgis", by=own)).text


async def test_a_partner_does_not_learn_from_where_the_house_decides(counter: Any) -> None:
    asset_id = (await counter.published())["asset"]["asset_id"]
    await counter.decide("approve", asset_id=asset_id, clearance_level="ouo")
    house = (await counter.get(f"/api/assets/{asset_id}")).json()
    assert any(entry["client_address"] for entry in house["audit"])
    by = await counter.key(Role.SUBMITTER, platform_id="ddh")
    theirs = (await counter.get(f"/api/assets/{asset_id}", by=by)).json()
    assert [entry["decision"] for entry in theirs["audit"]] == [entry["decision"] for entry in house["audit"]]
    assert {entry["client_address"] for entry in theirs["audit"]} == {None}
    assert (theirs["public_revision"], theirs["withdrawn_through"]) == (None, 0)


def contents(zones: dict[Zone, str], but: str) -> dict[str, str]:
    """The hash of every file."""
    paths = [(zone, Path(folder), path) for zone, folder in zones.items() for path in Path(folder).rglob("*")]
    return {
        f"{zone}/{name}": hashlib.sha256(path.read_bytes()).hexdigest()
        for zone, folder, path in paths
        if path.is_file()
        and not (name := str(path.relative_to(folder))).startswith(".")
        and f"/{but}/" not in f"/{name}"
    }


async def world(counter: Any, but: str) -> dict[str, Any]:
    """Every file of every zone, every row of others' assets, every table: all but what is under one asset's names."""
    rows = await counter.engine.rows(
        "SELECT to_jsonb(a) - 'updated_at' AS asset FROM app.geospatial_assets AS a WHERE platform_id = 'arcgis'"
    )
    tables = await counter.engine.rows("SELECT tablename FROM pg_tables WHERE schemaname = 'geo' ORDER BY 1")
    return {"files": contents(counter.storage.recipe.zones, but), "assets": rows, "tables": tables}


async def test_whatever_a_submitter_sends_nothing_but_its_own_asset_changes(counter: Any) -> None:
    """Seeded; TRUST_SEED and TRUST_COUNT look for more."""
    chance = random.Random(os.environ.get("TRUST_SEED", "trust"))
    await counter.put("b.tif", TIFF + b"secret", container="arcgis")
    theirs = {"platform_id": "arcgis", "platform_refs": OTHERS, "container_name": "arcgis", "file_name": "b.tif"}
    victim = (await counter.published(**theirs))["asset"]
    await counter.decide("approve", asset_id=victim["asset_id"], clearance_level="public")
    async with counter.engine.pool.connection() as conn:
        await conn.execute("CREATE SCHEMA IF NOT EXISTS geo")
        await conn.execute('CREATE TABLE geo."secret_0_r1" (a integer)')

    async def exported() -> bool:
        return bool((await counter.status(victim["asset_id"]))["export"]["status"] == "completed")

    await eventually(exported)
    by = await counter.key(Role.SUBMITTER, platform_id="ddh")
    own_refs = {"dataset_id": "mine", "resource_id": "mine", "version_id": "v1"}
    before = await world(counter, "mine")
    stem = "secret/0"
    values: dict[str, list[Any]] = {
        "asset_id": [victim["asset_id"]],
        "blob_stem": [stem],
        "blob_prefix": [f"{stem}/_r1", "../secret", "/"],
        "table_stem": ["secret_0"],
        "table_name": ["secret_0_r1"],
        "containers": [["published", "arcgis"]],
        "container_name": ["arcgis"],
        "file_name": ["b.tif"],
        "file_names": [["b.tif"]],
        "files": [[{"zone": "silver", "container": "published", "path": f"{stem}/_r1/b.tif", "sha256": "0" * 64}]],
        "previous_job_ids": [[]],
        "revision": [1, 99],
        "output_folder": [f"{stem}/_r1"],
        "target": ["x"],
        "name": ["x"],
    }
    accepted = 0
    for _ in range(int(os.environ.get("TRUST_COUNT", "200"))):
        options = {name: chance.choice(values[name]) for name in chance.sample(list(values), chance.randint(0, 4))}
        body = order(
            platform_refs={**own_refs, "version_id": chance.choice(["v1", "v2", "../../secret/0", "secret/0/_r1"])},
            workflow_id=chance.choice([*LIBRARY, *["publish_file"] * 4, None]),
            processing_options=options,
            container_name=chance.choice(["uploads", "arcgis", "published", "ddh"]),
            file_name=chance.choice(["a.tif", "b.tif", f"{stem}/_r1/b.tif", "../arcgis/b.tif"]),
            data_type=chance.choice(["raster", "vector"]),
            overwrite=chance.random() < 0.7,
        )
        answer = await counter.post("submit", body, by=by)
        assert answer.status_code in (202, 403, 404, 409, 422), answer.text
        if answer.status_code == 202:
            accepted += 1
            await counter.ended(answer.json()["request_id"])
    assert accepted, "nothing was tried"
    assert await world(counter, "mine") == before
