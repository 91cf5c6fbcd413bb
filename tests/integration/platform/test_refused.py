"""An asset's row that the database refuses: its job is parked with the reason, and everybody else goes on."""

from __future__ import annotations

import asyncio
from typing import Any

import psycopg
import pytest

from geomill.domain.engine.job import Job
from geomill.domain.states import JobStatus
from geomill.engine import control
from geomill.errors import ConflictError
from geomill.store import jobs
from tests.integration.platform.conftest import REFS, Office

ON_ASSETS = ("app.geospatial_assets", "NEW.processing_status IN ('completed', 'failed')")
ON_JOBS = ("dagapp.dag_jobs", "NEW.owner_id IS NOT NULL AND (NEW.completed_at IS NOT NULL)")
ON_EVERY_WRITE = ("dagapp.dag_jobs", "OLD.status = 'running'")


async def refuse(office: Office, table: str, condition: str) -> None:
    """The database takes no such row. What it says holds a name that nobody outside should read."""
    async with office.engine.pool.connection() as conn:
        await conn.execute(
            "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS"
            " $$ BEGIN RAISE 'secret_table says no' USING ERRCODE = 'P0001'; END $$"
        )
        await conn.execute(
            f"CREATE TRIGGER refuse BEFORE UPDATE ON {table} FOR EACH ROW WHEN ({condition}) EXECUTE FUNCTION refuse()"
        )


async def allow(office: Office, table: str) -> None:
    async with office.engine.pool.connection() as conn:
        await conn.execute(f"DROP TRIGGER refuse ON {table}")


async def parked(office: Office, job_id: str) -> Job:
    return await office.engine.until(job_id, lambda job: job is not None and job.parked_at is not None)


async def release(office: Office, job_id: str) -> Any:
    async with office.engine.pool.connection() as conn:
        return await control.release(conn, job_id, "ops")


@pytest.mark.parametrize("where", [ON_ASSETS, ON_JOBS], ids=["asset", "job"])
async def test_a_refused_job_is_parked_and_runs_on_when_it_is_released(office: Office, where: tuple[str, str]) -> None:
    await refuse(office, *where)
    orchestrators = [office.engine.orchestrator(scan_seconds=0.1) for _ in range(2)]
    office.engine.worker()
    bad = await office.submit()
    if where is ON_ASSETS:
        good = await office.engine.submit("hello_world")
        assert (await office.engine.ended(good)).status is JobStatus.COMPLETED
    job = await parked(office, bad.request.job_id)
    assert (job.status, job.owner_id) == (JobStatus.RUNNING, None)
    assert "the database refuses" in (job.parked_reason or "")
    assert "secret_table" not in (job.parked_reason or "")
    assert "job_parked" in await office.engine.history(job.job_id)
    assert all(not office.engine.running[orchestrator.instance_id].done() for orchestrator in orchestrators)

    await allow(office, where[0])
    assert (
        await office.engine.until(job.job_id, lambda current: current.parked_at is not None)
    ).status is JobStatus.RUNNING
    await release(office, job.job_id)
    ended = await office.ended(job.job_id)
    assert (ended.status, ended.parked_at, ended.parked_reason) == (JobStatus.COMPLETED, None, None)
    assert (await office.asset(bad.asset.asset_id)).processing_status.value == "completed"
    history = await office.engine.history(job.job_id)
    assert history.index("job_parked") < history.index("job_released")
    with pytest.raises(ConflictError, match="not parked"):
        await release(office, job.job_id)


async def test_a_job_released_too_early_is_parked_again(office: Office) -> None:
    await refuse(office, *ON_ASSETS)
    office.engine.orchestrator(scan_seconds=0.1)
    office.engine.worker()
    bad = await office.submit()
    first = await parked(office, bad.request.job_id)
    await release(office, first.job_id)
    second = await office.engine.until(
        first.job_id, lambda job: job.parked_at is not None and job.parked_at > first.parked_at
    )
    assert second.owner_epoch > first.owner_epoch


async def test_nobody_takes_over_a_parked_job_and_reports_wait_for_its_release(office: Office) -> None:
    """The owner dies. Its successors leave the job alone, and a report that arrives meanwhile is there on release."""
    await refuse(office, *ON_ASSETS)
    first = office.engine.orchestrator(scan_seconds=0.1)
    office.engine.worker()
    bad = await office.submit()
    job = await parked(office, bad.request.job_id)
    await office.engine.crash(first)
    office.engine.orchestrator(scan_seconds=0.05)
    good = await office.engine.submit("hello_world")
    assert (await office.engine.ended(good)).status is JobStatus.COMPLETED
    async with office.engine.pool.connection() as conn:
        await control.cancel(conn, "dag-jobs", job.job_id, "not needed any more")
        assert (await jobs.get(conn, job.job_id)).owner_epoch == job.owner_epoch
    await allow(office, ON_ASSETS[0])
    await release(office, job.job_id)
    ended = await office.ended(job.job_id)
    assert ended.status in (JobStatus.CANCELLED, JobStatus.COMPLETED)


async def test_a_job_that_cannot_even_be_parked_is_left_aside_and_seen(office: Office) -> None:
    """The last resort needs nothing of the database: the orchestrator lives, says so in /health, and tries again."""
    orchestrator = office.engine.orchestrator(scan_seconds=0.1)
    office.engine.worker()
    slow = await office.submit(processing_options={"pause": 0.3})
    await office.engine.until(slow.request.job_id, lambda job: job is not None and job.status is JobStatus.RUNNING)
    await refuse(office, *ON_EVERY_WRITE)
    async with asyncio.timeout(20):
        while not await office.rows("SELECT 1 FROM dagapp.dag_instances WHERE duties ? 'parking'"):
            assert not office.engine.running[orchestrator.instance_id].done()
            await asyncio.sleep(0.02)
    await allow(office, ON_EVERY_WRITE[0])
    job = await office.engine.until(
        slow.request.job_id, lambda current: current.parked_at is not None or current.status is JobStatus.COMPLETED
    )
    if job.parked_at is not None:
        await release(office, job.job_id)
    assert (await office.ended(job.job_id)).status is JobStatus.COMPLETED


async def test_a_job_that_cannot_be_read_is_parked(office: Office) -> None:
    """A definition that no longer compiles would end every orchestrator that takes the job over."""
    first = office.engine.orchestrator(scan_seconds=0.1)
    accepted = await office.submit()
    await office.engine.until(accepted.request.job_id, lambda job: job is not None)
    await office.engine.crash(first)
    await office.rows("UPDATE dagapp.dag_definitions SET body = '{\"nodes\": 7}' RETURNING 1 AS broken")
    second = office.engine.orchestrator(scan_seconds=0.1)
    job = await parked(office, accepted.request.job_id)
    assert "cannot be read" in (job.parked_reason or "")
    assert not office.engine.running[second.instance_id].done()


async def test_a_locked_asset_stalls_neither_submissions_nor_verdicts_of_others(office: Office) -> None:
    """One session outside holds the rows of two assets: of one the job is to be claimed, of the other it is to end."""
    office.engine.orchestrator(scan_seconds=0.1)
    ending = await office.submit()
    await office.engine.until(ending.request.job_id, lambda job: job is not None)
    beginning = await office.submit(platform_refs={**REFS, "resource_id": "bandung"})
    async with await psycopg.AsyncConnection.connect(office.engine.url) as outside:
        await office.engine.until(beginning.request.job_id, lambda job: job is not None)
        await outside.execute("SELECT FROM app.geospatial_assets FOR UPDATE")
        late = await office.engine.submit("hello_world")
        office.engine.worker()
        assert (await office.engine.ended(late)).status is JobStatus.COMPLETED
        await outside.rollback()
    for accepted in (ending, beginning):
        assert (await office.ended(accepted.request.job_id)).status is JobStatus.COMPLETED


async def test_a_submission_whose_asset_is_locked_does_not_stop_the_queue(office: Office) -> None:
    waiting = await office.submit()
    async with await psycopg.AsyncConnection.connect(office.engine.url) as outside:
        await outside.execute("SELECT FROM app.geospatial_assets FOR UPDATE")
        orchestrator = office.engine.orchestrator(scan_seconds=0.1)
        office.engine.worker()
        others = [await office.engine.submit("hello_world") for _ in range(5)]
        for job_id in others:
            assert (await office.engine.ended(job_id)).status is JobStatus.COMPLETED
        assert not office.engine.running[orchestrator.instance_id].done()
        await outside.rollback()
    assert (await office.ended(waiting.request.job_id)).status is JobStatus.COMPLETED
    assert await office.rows("SELECT 1 FROM dagapp.dag_dead_letters") == []
