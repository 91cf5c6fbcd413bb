"""Rows that somebody outside holds: their jobs wait, and everybody else goes on."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import psycopg
import pytest

from geomill.domain.states import JobStatus
from tests.integration.engine.conftest import MakePlatform
from tests.integration.engine.platform import EnginePlatform

GATED = """
workflow_id: gated
name: Gated
nodes:
  START: {type: start, next: each}
  each:
    type: fan_out
    source: [1, 2, 3]
    task: {handler: sleep, params: {duration_seconds: 0.2}}
    next: after
  after: {type: task, handler: echo, params: {x: 1}, next: END}
  END: {type: end}
"""


@asynccontextmanager
async def holding(url: str, query: str, *arguments: object) -> AsyncIterator[None]:
    """A session outside that has locked rows, and says nothing more."""
    async with await psycopg.AsyncConnection.connect(url) as conn:
        await conn.execute(query.encode(), arguments)
        yield
        await conn.rollback()


async def begun(platform: EnginePlatform, count: int) -> list[str]:
    submitted = [await platform.submit("gated") for _ in range(count)]
    for job_id in submitted:
        await platform.until(job_id, lambda job: job is not None)
    return submitted


async def completed(platform: EnginePlatform, jobs: Sequence[str]) -> None:
    for job_id in jobs:
        assert (await platform.ended(job_id)).status is JobStatus.COMPLETED


ROWS = {
    "job": "SELECT FROM dagapp.dag_jobs WHERE job_id = ANY(%s) FOR UPDATE",
    "node": "SELECT FROM dagapp.dag_node_states WHERE job_id = ANY(%s) AND node_id = 'each' FOR UPDATE",
}


@pytest.mark.parametrize("row", ROWS)
async def test_a_locked_row_stalls_its_own_job_and_no_other(make_platform: MakePlatform, row: str) -> None:
    platform = make_platform(GATED)
    platform.orchestrator()
    locked, *others = await begun(platform, 12)
    async with holding(platform.url, ROWS[row], [locked]):
        platform.worker()
        await completed(platform, others)
        await platform.until(locked, lambda job: job.status is JobStatus.RUNNING)
        late = await platform.submit("gated")
        await completed(platform, [late])
        assert (await platform.until(locked, lambda _: True)).status is JobStatus.RUNNING
    await completed(platform, [locked])


async def test_many_locked_jobs_cost_the_others_no_more_than_one(make_platform: MakePlatform) -> None:
    """The search for locked rows waits once, and not once for each."""
    platform = make_platform(GATED)
    platform.orchestrator()
    jobs = await begun(platform, 40)
    locked, others = jobs[:30], jobs[30:]
    async with holding(platform.url, ROWS["job"], locked):
        platform.worker(concurrency=40)
        async with asyncio.timeout(12):  # 30 locks of half a second each, one after the other, would be 15 s
            await completed(platform, others)
    await completed(platform, locked)


async def test_a_locked_table_is_waited_for(make_platform: MakePlatform) -> None:
    """A lock as a migration takes it ends and parks no job."""
    platform = make_platform(GATED)
    orchestrator = platform.orchestrator()
    platform.worker()
    jobs = await begun(platform, 4)
    async with holding(platform.url, "LOCK TABLE dagapp.dag_jobs IN ACCESS EXCLUSIVE MODE"):
        await asyncio.sleep(2)  # longer than every lock_timeout: what is shown is that nothing happens meanwhile
    await completed(platform, jobs)
    assert not platform.running[orchestrator.instance_id].done()
    assert await platform.rows("SELECT 1 FROM dagapp.dag_jobs WHERE parked_at IS NOT NULL") == []


CHECKPOINTS = """
workflow_id: checkpoints
name: Checkpoints
nodes:
  START: {type: start, next: work}
  work: {type: task, handler: echo, params: {steps: 3}, next: END}
  END: {type: end}
"""


async def test_a_locked_job_does_not_stop_the_reports_of_its_worker(make_platform: MakePlatform) -> None:
    """A checkpoint refers to its job: while that is locked, the worker keeps it, and reports for the others."""
    platform = make_platform(CHECKPOINTS, GATED)
    platform.orchestrator()
    locked = await platform.submit("checkpoints")
    await platform.until(locked, lambda job: job is not None)
    async with holding(platform.url, ROWS["job"], [locked]):
        platform.worker()
        async with asyncio.timeout(15):
            await completed(platform, [await platform.submit("gated") for _ in range(3)])
    await completed(platform, [locked])
    assert await platform.rows("SELECT 1 FROM dagapp.dag_checkpoints") != []
