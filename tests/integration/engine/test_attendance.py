"""Work that nobody can do: a queue without a worker, a workflow that no orchestrator knows."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from geomill.domain.engine.message import HEAVY_QUEUE, LIGHT_QUEUE
from geomill.domain.states import JobStatus
from geomill.engine import control
from geomill.engine.maintenance.attendance import AttendanceOptions
from geomill.store import attendance, jobs, progress
from tests.integration.engine.conftest import MakePlatform

ONE = """
workflow_id: one
name: One
nodes:
  START: {type: start, next: say}
  say: {type: task, handler: echo, queue: container-tasks, params: {message: hello}, next: END}
  END: {type: end}
"""
FAN = """
workflow_id: fan
name: Fan
nodes:
  START: {type: start, next: each}
  each:
    type: fan_out
    source: [1, 2, 3]
    task: {handler: echo, queue: container-tasks, params: {message: "{{ item }}"}}
    next: all
  all: {type: fan_in, next: END}
  END: {type: end}
"""
QUICK = AttendanceOptions(look_seconds=0.05)


async def eventually(true: Callable[[], Awaitable[bool]]) -> None:
    async with asyncio.timeout(20):
        while not await true():  # noqa: ASYNC110  what is looked at is in the database
            await asyncio.sleep(0.02)


async def unserved(platform) -> list[str]:
    async with platform.pool.connection() as conn:
        return [queue.queue_name for queue in await attendance.unserved(conn)]


async def test_a_queue_that_nobody_serves_is_known_until_somebody_does(make_platform: MakePlatform) -> None:
    platform = make_platform(ONE)
    platform.orchestrator(attendance=QUICK)
    platform.worker(queues=(LIGHT_QUEUE,))
    job_id = await platform.submit("one")
    await eventually(lambda: _is(unserved(platform), [HEAVY_QUEUE]))
    async with platform.pool.connection() as conn:
        job_progress = await progress.find(conn, job_id)
    assert job_progress is not None
    assert job_progress.waits == ("the step 'say' waits for a worker of the queue 'container-tasks': there is none",)
    platform.worker(queues=(HEAVY_QUEUE,))
    assert (await platform.ended(job_id)).status is JobStatus.COMPLETED
    await eventually(lambda: _is(unserved(platform), []))


async def test_the_items_of_a_fan_out_wait_with_the_same_reason(make_platform: MakePlatform) -> None:
    platform = make_platform(FAN)
    platform.orchestrator(attendance=QUICK)
    platform.worker(queues=(LIGHT_QUEUE,))
    job_id = await platform.submit("fan")
    await eventually(lambda: _is(unserved(platform), [HEAVY_QUEUE]))
    async with platform.pool.connection() as conn:
        job_progress = await progress.find(conn, job_id)
    assert job_progress is not None
    assert job_progress.waits == ("the step 'each' waits for a worker of the queue 'container-tasks': there is none",)


async def test_what_nobody_serves_fails_when_its_time_is_over(make_platform: MakePlatform) -> None:
    platform = make_platform(ONE)
    platform.orchestrator(attendance=AttendanceOptions(look_seconds=0.05, timeout_seconds=0.3))
    platform.worker(queues=(LIGHT_QUEUE,))
    job = await platform.run("one")
    assert job.status is JobStatus.FAILED
    assert "no worker served the queue 'container-tasks'" in (job.error_message or "")
    (result,) = await platform.rows("SELECT attempt, error_code, retryable FROM dagapp.dag_task_results")
    assert result == {"attempt": 1, "error_code": "dispatch_timeout", "retryable": False}


async def test_a_long_line_before_a_busy_worker_does_not_fail(make_platform: MakePlatform) -> None:
    """The queue is served, however slowly: the time counts only while no worker serves it."""
    platform = make_platform(ONE)
    platform.worker(queues=(HEAVY_QUEUE,))
    await eventually(lambda: _registered(platform))
    async with platform.pool.connection() as conn:
        await conn.execute(
            "INSERT INTO dagapp.dag_queue (queue_name, message_id, body, enqueued_at, visible_at) "
            "SELECT 'container-tasks', 'x:' || n, jsonb_build_object('task_id', 'x:' || n), "
            "       now() - interval '9 days', now() - interval '9 days' FROM generate_series(1, 3) AS n"
        )
        attended = await attendance.note(conn)
        assert await attendance.give_up(conn, 60.0) == []
    assert attended == []


async def test_the_time_begins_when_the_last_worker_leaves(make_platform: MakePlatform) -> None:
    """The time does not begin when the task was sent: a backlog of days outlives a restart of its only worker."""
    platform = make_platform(ONE)
    async with platform.pool.connection() as conn:
        await conn.execute(
            "INSERT INTO dagapp.dag_queue (queue_name, message_id, body, enqueued_at, visible_at) "
            "VALUES ('container-tasks', 'x', '{\"task_id\": \"x\"}', now() - interval '9 days', now())"
        )
        (noted,) = await attendance.note(conn)
        assert noted.queue_name == HEAVY_QUEUE
        assert await attendance.give_up(conn, 60.0) == []
        (again,) = await attendance.note(conn)
        assert again.since == noted.since
        (row,) = await (await conn.execute("SELECT count(*) AS messages FROM dagapp.dag_queue")).fetchall()
    assert row["messages"] == 1


async def test_a_submission_waits_for_an_orchestrator_that_knows_its_workflow(make_platform: MakePlatform) -> None:
    elsewhere, here = make_platform(ONE), make_platform(FAN)
    here.orchestrator(attendance=QUICK)
    elsewhere.worker()
    job_id = await elsewhere.submit("one")
    await eventually(lambda: _is(_reasons(here), ["no orchestrator knows the workflow 'one': its submissions wait"]))
    async with here.pool.connection() as conn:
        message = await jobs.waiting(conn, "dag-jobs", job_id)
        assert message is not None
        reason = await attendance.why_queued(conn, "dag-jobs", job_id)
    assert reason == "no orchestrator knows the workflow 'one'"
    assert await here.rows("SELECT reason FROM dagapp.dag_dead_letters") == []
    assert await here.rows("SELECT job_id FROM dagapp.dag_jobs") == []
    elsewhere.orchestrator(attendance=QUICK)
    assert (await elsewhere.ended(job_id)).status is JobStatus.COMPLETED
    await eventually(lambda: _is(_reasons(here), []))


async def test_those_in_the_same_batch_that_are_known_go_on(make_platform: MakePlatform) -> None:
    elsewhere, here = make_platform(ONE), make_platform(FAN)
    unknown = [await elsewhere.submit("one") for _ in range(6)]
    job_ids = [await here.submit("fan") for _ in range(6)]
    here.orchestrator(attendance=QUICK)
    here.worker()
    for job_id in job_ids:
        assert (await here.ended(job_id)).status is JobStatus.COMPLETED
    waiting = await here.rows("SELECT message_id FROM dagapp.dag_queue WHERE queue_name = 'dag-jobs.unknown'")
    assert {row["message_id"] for row in waiting} == set(unknown)


async def test_one_that_waits_so_is_stored_once_and_can_be_cancelled(make_platform: MakePlatform) -> None:
    elsewhere, here = make_platform(ONE), make_platform(FAN)
    here.orchestrator(attendance=QUICK)
    job_id = await elsewhere.submit("one")
    await eventually(lambda: _is(unserved(here), ["dag-jobs.unknown"]))
    await elsewhere.submit("one", job_id=job_id)
    waiting = "SELECT queue_name FROM dagapp.dag_queue"
    await eventually(lambda: _is(here.rows(waiting), [{"queue_name": "dag-jobs.unknown"}]))
    async with here.pool.connection() as conn:
        await control.cancel(conn, "dag-jobs", job_id, "not wanted")
    assert (await here.ended(job_id)).status is JobStatus.CANCELLED
    assert await here.rows(waiting) == []


async def _is(awaitable, expected) -> bool:
    return await awaitable == expected


async def _reasons(platform) -> list[str]:
    async with platform.pool.connection() as conn:
        return [queue.reason for queue in await attendance.unserved(conn)]


async def _registered(platform) -> bool:
    return await platform.rows("SELECT role::text FROM dagapp.dag_instances") == [{"role": "worker"}]
