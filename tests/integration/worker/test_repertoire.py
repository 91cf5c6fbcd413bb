"""A worker gets tasks of handlers that it does not have: of another release, or of a package that only others have."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence

from geomill.domain.engine.job import Job
from geomill.domain.engine.message import TASK_QUEUES
from geomill.domain.states import JobStatus
from geomill.engine.control import cancel
from geomill.sdk.registry import Registry
from tests.integration.worker.conftest import TaskBench
from tests.integration.worker.waiting import until_rows

HANDLER = "inline_pid"
QUEUE = "functionapp-tasks"
FAN_OUT = {
    "workflow_id": "many",
    "name": "Many",
    "inputs": {"items": {"type": "integer", "default": 30}},
    "nodes": {
        "START": {"type": "start", "next": "each"},
        "each": {
            "type": "fan_out",
            "source": "{{ range(inputs.items) | list }}",
            "task": {"handler": HANDLER, "queue": QUEUE},
            "next": "all",
        },
        "all": {"type": "fan_in", "aggregation": "count", "next": "END"},
        "END": {"type": "end"},
    },
    "outputs": {"count": "{{ nodes.all.output.count }}"},
}
LONG = 600.0
FLOOD = 2000


def old_worker(bench: TaskBench, queues: Sequence[str] = TASK_QUEUES, **options: float) -> str:
    """Start a worker that has all handlers but one."""
    complete = bench.registry
    bench.registry = Registry({name: handler for name, handler in complete.items() if name != HANDLER})
    instance_id: str = bench.worker(queues=queues, **options).instance_id
    bench.registry = complete
    return instance_id


async def deferred(bench: TaskBench) -> None:
    """Wait until a worker has put a task back."""
    await until_rows(bench, "SELECT 1 FROM dagapp.dag_queue WHERE lease_token IS NULL AND visible_at > now()")


async def deliveries(bench: TaskBench) -> int:
    (row,) = await bench.rows("SELECT sum(delivery_count)::int AS deliveries FROM dagapp.dag_queue")
    return int(row["deliveries"])


async def completed(bench: TaskBench, job_id: str) -> Job:
    job = await bench.ended(job_id)
    assert job.status is JobStatus.COMPLETED, job.error_message
    return job


async def test_a_task_waits_for_a_worker_that_has_its_handler(bench: TaskBench) -> None:
    workflow_id = bench.offer(HANDLER)
    old_worker(bench)
    job_id = await bench.submit(workflow_id)
    await deferred(bench)
    bench.worker()
    await completed(bench, job_id)
    assert (await bench.only_attempt())["attempt"] == 1
    assert await bench.rows("SELECT 1 FROM dagapp.dag_queue") == []


async def test_workers_of_two_releases_share_a_fan_out(bench: TaskBench) -> None:
    bench.offer_workflow(json.dumps(FAN_OUT))
    old = old_worker(bench, concurrency=4)
    bench.worker(concurrency=4)
    job = await completed(bench, await bench.submit("many"))
    assert job.result_data == {"count": 30}
    rows = await bench.rows("SELECT worker_id, count(*) AS count FROM dagapp.dag_task_results GROUP BY 1")
    assert [row["count"] for row in rows if row["worker_id"] != old] == [30]


async def test_while_another_worker_has_the_handler_no_time_runs_out(bench: TaskBench) -> None:
    """The other worker is full for longer than a task would wait if nobody had its handler."""
    bench.worker(concurrency=1, spare=0)
    occupied = await bench.submit(bench.offer("nap", {"seconds": 3.0}))
    await until_rows(bench, "SELECT 1 FROM dagapp.dag_queue WHERE lease_token IS NOT NULL")
    old_worker(bench, handler_wait_seconds=0.3)
    await completed(bench, await bench.submit(bench.offer(HANDLER)))
    await completed(bench, occupied)


async def test_a_handler_that_no_worker_of_the_queue_has_fails_the_attempt_for_good(bench: TaskBench) -> None:
    workflow_id = bench.offer(HANDLER, retry={"max_attempts": 3}, queue="functionapp-tasks")
    old_worker(bench, ["functionapp-tasks"], handler_wait_seconds=0.5)
    bench.worker(queues=["container-tasks"])  # it has the handler, and will never see the task
    job = await bench.run(workflow_id)
    assert job.status is JobStatus.FAILED
    attempt = await bench.only_attempt()
    assert (attempt["error_code"], attempt["retryable"]) == ("unknown_handler", False)
    assert f"'{HANDLER}'" in attempt["error_message"]
    assert "functionapp-tasks" in attempt["error_message"]


async def test_a_second_job_of_a_missing_handler_does_not_wait_again(bench: TaskBench) -> None:
    workflow_id = bench.offer(HANDLER)
    old_worker(bench, handler_wait_seconds=3.0)
    assert (await bench.run(workflow_id)).status is JobStatus.FAILED
    begun = asyncio.get_running_loop().time()
    assert (await bench.run(workflow_id)).status is JobStatus.FAILED
    assert asyncio.get_running_loop().time() - begun < 2.0


async def test_a_waiting_task_keeps_no_other_from_running_and_can_be_cancelled(bench: TaskBench) -> None:
    old_worker(bench, concurrency=1, spare=0, handler_wait_seconds=LONG)
    job_id = await bench.submit(bench.offer(HANDLER))
    await deferred(bench)
    await completed(bench, await bench.submit(bench.offer("hello_world")))
    async with bench.pool.connection() as conn:
        await cancel(conn, "dag-jobs", job_id, "not wanted")
    assert (await bench.ended(job_id)).status is JobStatus.CANCELLED
    assert await bench.rows("SELECT 1 FROM dagapp.dag_queue") == []


async def test_a_flood_of_such_tasks_holds_nothing_up_and_is_not_leased_again_and_again(bench: TaskBench) -> None:
    bench.offer_workflow(json.dumps(FAN_OUT))
    old_worker(bench, handler_wait_seconds=LONG)
    job_id = await bench.submit("many", {"items": FLOOD})
    await until_rows(bench, f"SELECT FROM dagapp.dag_queue HAVING count(*) FILTER (WHERE delivery_count > 0) = {FLOOD}")
    before = await deliveries(bench)
    await asyncio.sleep(4)
    assert await deliveries(bench) - before < FLOOD
    async with bench.pool.connection() as conn:
        await conn.execute("UPDATE dagapp.dag_queue SET visible_at = now()")  # as if all came due at once
    await completed(bench, await bench.submit(bench.offer("hello_world", queue=QUEUE)))  # it waits behind them
    async with bench.pool.connection() as conn:
        await cancel(conn, "dag-jobs", job_id, "not wanted")
    assert (await bench.ended(job_id)).status is JobStatus.CANCELLED
    assert await bench.rows("SELECT 1 FROM dagapp.dag_queue") == []
