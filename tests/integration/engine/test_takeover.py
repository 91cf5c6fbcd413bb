"""The work of a process that is gone continues elsewhere, and nothing is done twice."""

from __future__ import annotations

import asyncio

import pytest

from geomill.domain.engine.job import Job
from geomill.domain.states import JobStatus
from geomill.engine.large import LargeOutputs
from geomill.engine.owned import Graphs, OwnedJob, load
from geomill.store.pool import Connection
from tests.integration.engine.conftest import MakePlatform
from tests.integration.worker.waiting import until_rows

STEPS = """
workflow_id: steps
name: Steps
nodes:
  START: {type: start, next: work}
  work: {type: task, handler: echo, params: {steps: 4, step_delay: 0.15}, next: each}
  each:
    type: fan_out
    source: [1, 2, 3]
    task: {handler: sleep, params: {duration_seconds: 0.2}}
    next: all
  all: {type: fan_in, aggregation: count, next: END}
  END: {type: end}
"""

FANNED = """
workflow_id: fanned
name: Fanned
nodes:
  START: {type: start, next: each}
  each: {type: fan_out, source: [1, 2, 3], task: {handler: echo}, next: all}
  all: {type: fan_in, aggregation: count, next: END}
  END: {type: end}
"""


async def test_another_orchestrator_takes_over_a_dead_ones_jobs(make_platform: MakePlatform) -> None:
    platform = make_platform(STEPS)
    first = platform.orchestrator()
    platform.worker()
    job_id = await platform.submit("steps")
    await platform.until(job_id, lambda job: job is not None and job.owner_id == first.instance_id)
    await platform.crash(first)
    second = platform.orchestrator(scan_seconds=0.1)
    job = await platform.ended(job_id)
    assert job.status is JobStatus.COMPLETED
    assert (job.owner_id, job.owner_epoch) == (second.instance_id, 2)
    assert job.result_data == {"all": {"count": 3}}
    assert {row["instance_id"] for row in await platform.rows("SELECT instance_id FROM dagapp.dag_instances")} == set(
        platform.running
    )


async def test_items_that_were_only_sent_have_no_rows_and_a_successor_knows_them(make_platform: MakePlatform) -> None:
    platform = make_platform(FANNED)
    first = platform.orchestrator()
    job_id = await platform.submit("fanned")
    sent = "SELECT 1 FROM dagapp.dag_node_states WHERE node_id = 'each' AND items_total = 3 AND items_sent = 3"
    await until_rows(platform, sent)
    await platform.crash(first)
    assert not await platform.rows("SELECT 1 FROM dagapp.dag_node_states WHERE item_index >= 0")
    platform.orchestrator(scan_seconds=0.1)
    platform.worker()
    assert (await platform.ended(job_id)).result_data == {"all": {"count": 3}}
    items = await platform.rows(
        "SELECT item_index, status::text, attempt, dispatched_at <= started_at AND started_at < completed_at"
        " FROM dagapp.dag_node_states WHERE item_index >= 0 ORDER BY item_index"
    )
    assert [tuple(item.values()) for item in items] == [(index, "completed", 1, True) for index in range(3)]


async def test_a_job_that_is_read_slowly_is_not_older_than_its_rounds(
    make_platform: MakePlatform, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Reports arrive while the job is read. The new owner must not end up with the state before them."""
    platform = make_platform(STEPS)
    first = platform.orchestrator()
    fanned = "SELECT 1 FROM dagapp.dag_node_states WHERE node_id = 'each' AND items_sent = 3"
    slow = iter([True])

    async def read_slowly(conn: Connection, job: Job, graphs: Graphs, large: LargeOutputs) -> OwnedJob:
        loaded = await load(conn, job, graphs, large)
        if next(slow, False):
            for _ in range(100):
                if await platform.rows(fanned):
                    break
                await asyncio.sleep(0.02)
        return loaded

    monkeypatch.setattr("geomill.engine.orchestrator.load", read_slowly)
    job_id = await platform.submit("steps")
    await platform.until(job_id, lambda job: job is not None and job.owner_id == first.instance_id)
    second = platform.orchestrator(scan_seconds=0.1)
    await asyncio.wait_for(second._signals.connected.wait(), 10)
    await asyncio.sleep(0.3)  # it has looked round once, and found nothing to take over
    platform.worker()
    await platform.crash(first)
    job = await platform.ended(job_id)
    assert (job.status, job.owner_id) == (JobStatus.COMPLETED, second.instance_id)
    assert next(slow, None) is None


async def test_another_worker_resumes_a_dead_ones_task_from_its_checkpoint(make_platform: MakePlatform) -> None:
    platform = make_platform(STEPS)
    platform.orchestrator(scan_seconds=0.1)
    first = platform.worker()
    job_id = await platform.submit("steps")
    while not await platform.rows("SELECT 1 FROM dagapp.dag_checkpoints WHERE phase = 'step_2'"):  # noqa: ASYNC110
        await asyncio.sleep(0.01)
    await platform.crash(first)
    platform.worker()
    job = await platform.ended(job_id)
    assert job.status is JobStatus.COMPLETED
    results = await platform.rows("SELECT output FROM dagapp.dag_task_results WHERE node_id = 'work'")
    assert [row["output"]["completed_steps"] for row in results] == [["step_1", "step_2", "step_3", "step_4"]]


async def test_a_stopped_worker_hands_its_tasks_back_and_it_costs_no_retry(make_platform: MakePlatform) -> None:
    platform = make_platform(STEPS)
    platform.orchestrator()
    first = make_platform(STEPS)
    first.worker()
    job_id = await platform.submit("steps")
    while not await platform.rows("SELECT 1 FROM dagapp.dag_checkpoints"):  # noqa: ASYNC110
        await asyncio.sleep(0.01)
    await first.shutdown()
    platform.worker()
    job = await platform.ended(job_id)
    assert job.status is JobStatus.COMPLETED
    node = await platform.rows("SELECT attempt, retry_count FROM dagapp.dag_node_states WHERE node_id = 'work'")
    assert node == [{"attempt": 2, "retry_count": 0}]


async def test_a_stopped_orchestrator_leaves_its_jobs_to_others_at_once(make_platform: MakePlatform) -> None:
    platform, leaving = make_platform(STEPS), make_platform(STEPS)
    leaving.orchestrator()
    job_id = await platform.submit("steps")
    await leaving.until(job_id, lambda job: job is not None)
    await leaving.shutdown()
    assert await platform.rows("SELECT owner_id FROM dagapp.dag_jobs") == [{"owner_id": None}]
    platform.orchestrator(scan_seconds=0.1)
    platform.worker()
    assert (await platform.ended(job_id)).status is JobStatus.COMPLETED


async def test_who_lost_a_job_writes_nothing_and_drops_it(make_platform: MakePlatform) -> None:
    platform = make_platform(STEPS)
    first = platform.orchestrator(scan_seconds=3600)
    job_id = await platform.submit("steps")
    await platform.until(job_id, lambda job: job is not None)
    await platform.rows("UPDATE dagapp.dag_jobs SET owner_id = 'thief', owner_epoch = 2 RETURNING 1 AS one")
    platform.worker()
    while not await platform.rows("SELECT 1 FROM dagapp.dag_inbox WHERE owner_id = 'thief'"):  # noqa: ASYNC110
        await asyncio.sleep(0.01)
    await platform.rows(f"UPDATE dagapp.dag_inbox SET owner_id = '{first.instance_id}' RETURNING 1 AS one")
    first._signals.poke(first._inbox_channel)
    async with asyncio.timeout(5):
        while first.owned:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
    assert (await platform.statuses(job_id))["work"] == "dispatched"
    assert await platform.rows("SELECT 1 FROM dagapp.dag_inbox")
