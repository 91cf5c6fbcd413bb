"""Exports whose files a pipeline of Data Factory copies: a real engine, a server that speaks the recorded protocol."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from geomill.datafactory import running
from geomill.domain.objectname import Zone
from geomill.domain.states import ClearanceState, JobStatus
from geomill.errors import Forbidden
from geomill.handlers.blob.accept_files import accept_files
from geomill.handlers.blob.copy_by_pipeline import copy_by_pipeline
from geomill.handlers.blob.stop_pipelines import stop_pipelines
from geomill.identity import tokens
from geomill.platform import review
from geomill.platform.export import WorkflowExporter
from geomill.sdk.testing import run_handler
from tests.factory_server import FactoryServer, factory_server
from tests.identity_endpoint import IdentityEndpoint, identity_endpoint
from tests.integration.catalogue.test_export import ASSETS, ITEMS, outside, publish
from tests.integration.platform.conftest import ADA, BOB, Office

GEOMILL = str(Path(sys.executable).with_name("geomill"))
PUBLIC = ClearanceState.PUBLIC


@pytest.fixture
def identity(monkeypatch: pytest.MonkeyPatch) -> Iterator[IdentityEndpoint]:
    with identity_endpoint() as endpoint:
        for name, value in endpoint.environ.items():
            monkeypatch.setenv(name, value)
        tokens._credential.cache_clear()
        yield endpoint
        tokens._credential.cache_clear()


@pytest.fixture
def factory(
    office: Office, tmp_path: Path, identity: IdentityEndpoint, monkeypatch: pytest.MonkeyPatch
) -> Iterator[FactoryServer]:
    """Data Factory, which the office exports with."""
    monkeypatch.setattr(running, "LAG_SECONDS", 1.5)
    monkeypatch.setattr(running, "FIRST_PAUSE", 0.05)
    monkeypatch.setattr(running, "CHECK_SECONDS", 0.05)
    monkeypatch.setattr("geomill.store.jobs.QUIET_SECONDS", 1.0)
    with factory_server(tmp_path / "silver", tmp_path / "external") as server:
        exporter = WorkflowExporter(office.desk.workflow_registry, "dag-jobs", server.place, copies_by_factory=True)
        office.desk = replace(office.desk, exporter=exporter)
        yield server


@pytest.fixture
async def running_office(office: Office, factory: FactoryServer) -> Office:
    office.engine.orchestrator()
    office.engine.worker()
    return office


async def files_outside(office: Office) -> list[str]:
    return sorted([info.name.path async for info in office.storage.list(Zone.EXTERNAL, "public")])


async def approved(office: Office, asset_id: str) -> str:
    outcome = await office.decide(review.approve, asset_id, PUBLIC, BOB, None)
    assert outcome.export_job_id
    return outcome.export_job_id


async def until(true: Any, what: str) -> None:
    try:
        async with asyncio.timeout(20):
            while not true():  # noqa: ASYNC110  another thread or process changes it
                await asyncio.sleep(0.02)
    except TimeoutError:
        raise AssertionError(f"in vain: {what}") from None


async def test_the_pipeline_copies_and_the_entry_appears_when_all_is_checked(
    running_office: Office, factory: FactoryServer, identity: IdentityEndpoint, external_database: str
) -> None:
    office = running_office
    asset = await publish(office)
    factory.gate.clear()
    job_id = await approved(office, asset.asset_id)
    await until(lambda: factory.statuses() == ["InProgress"], "the run")
    assert outside(external_database, ASSETS) == []
    factory.gate.set()
    job = await office.ended(job_id)
    assert job.status is JobStatus.COMPLETED, job.error_message
    stem = asset.blob_stem
    assert await files_outside(office) == [f"{stem}/_manifest.json", f"{stem}/_r1/a.tif"]
    (row,) = outside(external_database, ASSETS)
    assert row["blob_path"] == f"public/{stem}/_r1/a.tif"
    assert len(outside(external_database, ITEMS)) == 1
    (run,) = factory.runs
    assert run.parameters["exportId"] == f"{job_id}.0"
    assert (job.result_data or {})["runs"][0]["run_id"] == run.run_id
    assert (await office.asset(asset.asset_id)).external_revision == 1
    assert {request["resource"] for request in identity.requests} == {"https://management.azure.com"}


async def test_a_revoke_cancels_the_run_and_nothing_stays_outside(
    running_office: Office, factory: FactoryServer, external_database: str
) -> None:
    office = running_office
    asset = await publish(office)
    factory.gate.clear()
    exported = await approved(office, asset.asset_id)
    await until(lambda: factory.statuses() == ["InProgress"], "the run")
    outcome = await office.decide(review.revoke, asset.asset_id, "wrong", BOB, None)
    assert (await office.ended(outcome.export_job_id or "")).status is JobStatus.COMPLETED
    assert (await office.ended(exported)).status is JobStatus.CANCELLED
    assert factory.statuses() == ["Cancelled"]
    factory.gate.set()
    await asyncio.sleep(0.2)
    assert await files_outside(office) == outside(external_database, ASSETS) == []


async def test_a_revoke_after_the_export_withdraws_the_copies(
    running_office: Office, factory: FactoryServer, external_database: str
) -> None:
    office = running_office
    asset = await publish(office)
    assert (await office.ended(await approved(office, asset.asset_id))).status is JobStatus.COMPLETED
    outcome = await office.decide(review.revoke, asset.asset_id, "wrong", BOB, None)
    job = await office.ended(outcome.export_job_id or "")
    assert (job.status, job.result_data) == (JobStatus.COMPLETED, {"removed": 1})
    assert await files_outside(office) == outside(external_database, ASSETS) == []
    assert factory.statuses() == ["Succeeded"]


@pytest.mark.slow
async def test_a_run_that_the_list_shows_late_is_cancelled_too(
    running_office: Office, factory: FactoryServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The answer to its start was lost, and the withdrawal looks before the list shows it."""
    monkeypatch.setattr(running, "LAG_SECONDS", 17.0)
    monkeypatch.setattr("tests.integration.engine.platform.PATIENCE", 60.0)
    office = running_office
    asset = await publish(office)
    factory.lose_answers, factory.lag = 1, 16.0
    factory.gate.clear()
    await approved(office, asset.asset_id)
    await until(lambda: len(factory.runs) == 1, "the run")
    outcome = await office.decide(review.revoke, asset.asset_id, "wrong", BOB, None)
    assert (await office.ended(outcome.export_job_id or "")).status is JobStatus.COMPLETED
    assert factory.statuses() == ["Cancelled"]
    factory.gate.set()
    await asyncio.sleep(0.2)
    assert await files_outside(office) == []


@pytest.mark.slow
async def test_what_is_public_goes_even_if_data_factory_is_away(
    running_office: Office, factory: FactoryServer, external_database: str
) -> None:
    office = running_office
    asset = await publish(office)
    await office.ended(await approved(office, asset.asset_id))
    factory.refuse = [503] * 3
    outcome = await office.decide(review.revoke, asset.asset_id, "wrong", BOB, None)
    async with asyncio.timeout(20):
        while await files_outside(office):  # noqa: ASYNC110
            await asyncio.sleep(0.02)
    assert factory.refuse, "the files are gone before Data Factory has answered"
    assert (await office.ended(outcome.export_job_id or "")).status is JobStatus.COMPLETED


@pytest.mark.slow
async def test_a_lost_answer_starts_no_second_run(
    running_office: Office, factory: FactoryServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next attempt comes after two seconds, and the list shows the run after five."""
    monkeypatch.setattr(running, "LAG_SECONDS", 10.0)
    office = running_office
    factory.lose_answers, factory.lag = 1, 5.0
    asset = await publish(office)
    job = await office.ended(await approved(office, asset.asset_id))
    assert job.status is JobStatus.COMPLETED, job.error_message
    assert factory.statuses() == ["Succeeded"]
    assert sum(call.endswith("createRun") for call in factory.calls) == 1


async def test_of_two_runs_of_an_export_one_counts_and_the_other_is_cancelled(
    running_office: Office, factory: FactoryServer
) -> None:
    """The second worker looked before the list showed the first run, and did not know of the note."""
    office = running_office
    asset = await publish(office)
    factory.lose_answers, factory.lag = 1, 0.5
    factory.gate.clear()
    job_id = await approved(office, asset.asset_id)
    await until(lambda: len(factory.runs) == 1, "the run")
    factory.start(factory.runs[0].parameters)
    await until(lambda: factory.statuses() == ["InProgress", "Cancelled"], "one of two is cancelled")
    factory.gate.set()
    assert (await office.ended(job_id)).status is JobStatus.COMPLETED
    assert factory.statuses() == ["Succeeded", "Cancelled"]


async def test_a_failed_run_is_run_again_and_at_last_the_asset_says_why(
    running_office: Office, factory: FactoryServer, external_database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(running, "LAG_SECONDS", 0.1)
    office = running_office
    asset = await publish(office)
    factory.fail = ["the sink is full"]
    assert (await office.ended(await approved(office, asset.asset_id))).status is JobStatus.COMPLETED
    assert factory.statuses() == ["Failed", "Succeeded"]


@pytest.mark.parametrize(("how", "message"), [("damage", "has the SHA-256"), ("leave_out", "has not copied")])
async def test_a_copy_that_is_not_the_file_is_not_published(
    running_office: Office, factory: FactoryServer, external_database: str, how: str, message: str
) -> None:
    office = running_office
    asset = await publish(office)
    setattr(factory, how, True)
    job = await office.ended(await approved(office, asset.asset_id))
    assert job.status is JobStatus.FAILED
    assert message in (job.error_message or "")
    assert outside(external_database, ASSETS) == []
    assert not [path for path in await files_outside(office) if not path.startswith("_arriving/")]
    setattr(factory, how, False)
    again = await office.decide(review.retry_export, asset.asset_id, ADA)
    assert (await office.ended(again.export_job_id or "")).status is JobStatus.COMPLETED
    stem = asset.blob_stem
    assert await files_outside(office) == [f"{stem}/_manifest.json", f"{stem}/_r1/a.tif"]


async def test_a_run_that_somebody_cancels_ends_the_export_with_a_reason(
    running_office: Office, factory: FactoryServer
) -> None:
    office = running_office
    asset = await publish(office)
    factory.gate.clear()
    job_id = await approved(office, asset.asset_id)
    await until(lambda: factory.statuses() == ["InProgress"], "the run")
    factory.runs[0].cancelled.set()
    job = await office.ended(job_id)
    assert job.status is JobStatus.FAILED
    assert "was cancelled" in (job.error_message or "")


async def test_a_refusal_is_told_with_the_role_that_is_needed(running_office: Office, factory: FactoryServer) -> None:
    office = running_office
    asset = await publish(office)
    factory.refuse = [403]
    job = await office.ended(await approved(office, asset.asset_id))
    assert job.status is JobStatus.FAILED
    assert "403: Refused: not now" in (job.error_message or "")
    assert "Data Factory Contributor" in (job.error_message or "")


async def test_a_busy_data_factory_is_asked_again(running_office: Office, factory: FactoryServer) -> None:
    office = running_office
    asset = await publish(office)
    factory.refuse = [429, 500]
    assert (await office.ended(await approved(office, asset.asset_id))).status is JobStatus.COMPLETED
    assert factory.statuses() == ["Succeeded"]


async def test_workers_that_are_killed_start_one_run(
    office: Office, factory: FactoryServer, identity: IdentityEndpoint, external_database: str
) -> None:
    """Each of the first workers dies while the run is under way; the last one sees its end."""
    office.engine.orchestrator()
    publisher = office.engine.worker()
    asset = await publish(office)
    await office.engine.crash(publisher)
    factory.gate.clear()
    environ = {
        "PATH": os.environ["PATH"],
        "GEOMILL_DATABASE_URL": office.engine.url,
        "GEOMILL_EXTERNAL_DATABASE_URL": external_database,
        "GEOMILL_DATA": office.storage.recipe.data or "",
        **identity.environ,
    }
    job_id = await approved(office, asset.asset_id)
    for number in (1, 2):
        process = await asyncio.create_subprocess_exec(GEOMILL, "worker", env=environ)
        try:
            asked = len(factory.calls)
            await until(lambda: any("GET /pipelineruns" in call for call in factory.calls[asked:]), f"worker {number}")  # noqa: B023
        finally:
            process.kill()
            await process.wait()
    factory.gate.set()
    office.engine.worker()
    job = await office.ended(job_id)
    assert job.status is JobStatus.COMPLETED, job.error_message
    assert factory.statuses() == ["Succeeded"]
    assert len(outside(external_database, ASSETS)) == 1


async def test_an_export_by_geomill_is_withdrawn_by_the_same_workflow(
    running_office: Office, factory: FactoryServer
) -> None:
    """The setting was changed back, and the factory is still named."""
    office = running_office
    exporter = WorkflowExporter(office.desk.workflow_registry, "dag-jobs", factory.place)
    office.desk = replace(office.desk, exporter=exporter)
    asset = await publish(office)
    job = await office.ended(await approved(office, asset.asset_id))
    assert (job.workflow_id, job.status) == ("export_asset", JobStatus.COMPLETED)
    outcome = await office.decide(review.revoke, asset.asset_id, "wrong", BOB, None)
    job = await office.ended(outcome.export_job_id or "")
    assert (job.workflow_id, job.status) == ("withdraw_by_data_factory", JobStatus.COMPLETED)
    assert await files_outside(office) == []


@pytest.mark.parametrize("handler", [copy_by_pipeline, stop_pipelines, accept_files])
async def test_without_an_order_a_handler_calls_nobody(
    running_office: Office, factory: FactoryServer, handler: Any
) -> None:
    """Somebody who may write workflows names an asset and runs the handlers on it."""
    office = running_office
    asset = await publish(office)
    inputs = {"asset_id": asset.asset_id, "factory": factory.place.model_dump(), "first": 0, "count": 1}
    done = run_handler(handler, {**inputs, "purpose": "export", "previous_job_ids": ["x"]}, storage=office.storage)
    assert (done.success, done.ended.error_code) == (False, "order_superseded")
    with pytest.raises(Forbidden, match="started by geomill only"):
        await office.engine.submit(
            "export_by_data_factory", {"asset_id": asset.asset_id, "factory": factory.place.model_dump()}
        )
    assert factory.calls == []


@pytest.mark.slow
async def test_decisions_at_any_moment_leave_outside_what_was_decided_last(
    running_office: Office, factory: FactoryServer, external_database: str
) -> None:
    office = running_office
    asset = await publish(office)
    for number in range(6):
        job_id = await approved(office, asset.asset_id)
        await asyncio.sleep(0.15 * number)
        outcome = await office.decide(review.revoke, asset.asset_id, "wrong", BOB, None)
        await office.ended(outcome.export_job_id or "")
        job = await office.ended(job_id)
        assert job.status is not JobStatus.FAILED or "another decision" in (job.error_message or "")
        await asyncio.sleep(0.3)
        assert await files_outside(office) == outside(external_database, ASSETS) == []
        await publish(office, overwrite=True)
    assert not {"Queued", "InProgress", "Canceling"} & set(factory.statuses())
