"""A worker that is told to stop: what can end, ends and counts; the rest is handed back and goes on elsewhere."""

from __future__ import annotations

import asyncio
import time

from geomill.domain.states import JobStatus
from geomill.worker.loop import Worker
from geomill.worker.options import WorkerOptions
from tests.integration.worker.conftest import TaskBench
from tests.integration.worker.test_cancellation import running
from tests.integration.worker.waiting import gone, until, until_rows


class Leaving:
    """A worker with a stop of its own."""

    def __init__(self, bench: TaskBench, **options: object) -> None:
        self.stop = asyncio.Event()
        worker_options = WorkerOptions(("functionapp-tasks",), processes=1, **options)  # type: ignore[arg-type]
        self.worker = Worker(bench.url, bench.pool, bench.registry, worker_options)
        self.task = asyncio.create_task(self.worker.run(self.stop))

    async def leave(self) -> float:
        begun = time.monotonic()
        self.stop.set()
        await self.task
        return time.monotonic() - begun


async def node(bench: TaskBench) -> dict[str, object]:
    (row,) = await bench.rows("SELECT attempt, retry_count FROM dagapp.dag_node_states WHERE node_id = 'work'")
    return row


async def test_a_handler_saves_where_it_is_and_the_next_worker_resumes(bench: TaskBench) -> None:
    leaving = Leaving(bench)
    job_id = await running(bench, "polite", steps=20)
    assert await leaving.leave() < 3
    saved = await bench.rows("SELECT data FROM dagapp.dag_checkpoints")
    assert saved[0]["data"]["done"] > 0
    assert await bench.attempts() == []
    bench.worker(processes=1)
    job = await bench.ended(job_id)
    assert job.result_data == {"work": {"done": 20, "resumed": True}}
    assert await node(bench) == {"attempt": 2, "retry_count": 0}


async def test_what_completes_while_draining_counts(bench: TaskBench) -> None:
    leaving = Leaving(bench)
    job_id = await bench.submit(bench.offer("finish_when_asked"))
    await until(lambda: any(slot.child for slot in leaving.worker._slots.values()))
    await leaving.leave()
    assert (await bench.ended(job_id)).result_data == {"work": {"finished": True}}
    assert await node(bench) == {"attempt": 1, "retry_count": 0}


async def test_who_does_not_listen_is_killed_at_the_end_and_handed_back(bench: TaskBench) -> None:
    leaving = Leaving(bench, drain_seconds=0.3)
    await running(bench, "hang")
    (pid,) = leaving.worker._children.pids
    assert 0.3 <= await leaving.leave() < 3
    assert gone(pid)
    assert await bench.attempts() == []
    assert await bench.rows("SELECT instance_id FROM dagapp.dag_instances WHERE role = 'worker'") == []
    await until_rows(bench, "SELECT 1 FROM dagapp.dag_node_states WHERE node_id = 'work' AND attempt = 2")
    (message,) = await bench.rows("SELECT lease_token FROM dagapp.dag_queue")
    assert message["lease_token"] is None


async def test_nothing_new_is_leased_while_draining(bench: TaskBench) -> None:
    leaving = Leaving(bench, drain_seconds=1)
    await running(bench, "hang")
    left = asyncio.create_task(leaving.leave())
    await asyncio.sleep(0.1)
    job_id = await bench.submit(bench.offer("hello_world"))
    await left
    other = bench.worker(drain_seconds=0)
    job = await bench.ended(job_id)
    assert job.status is JobStatus.COMPLETED
    assert await bench.rows(f"SELECT worker_id FROM dagapp.dag_task_results WHERE job_id = '{job_id}'") == [
        {"worker_id": other.instance_id}
    ]
