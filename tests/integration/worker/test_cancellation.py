"""A cancelled task is not worked on for long, whether its handler listens or not."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import pytest

from geomill.domain.states import JobStatus
from geomill.engine.control import cancel
from tests.integration.worker.conftest import TaskBench
from tests.integration.worker.waiting import gone, until, until_rows


async def running(bench: TaskBench, handler: str, **params: object) -> str:
    job_id = await bench.submit(bench.offer(handler, dict(params)))
    await until_rows(bench, "SELECT 1 FROM dagapp.dag_queue WHERE progress IS NOT NULL")
    return job_id


async def cancel_job(bench: TaskBench, job_id: str) -> None:
    async with bench.pool.connection() as conn:
        await cancel(conn, "dag-jobs", job_id, "not wanted")


@pytest.mark.parametrize("handler", ["hang", "hang_inline", "polite"])
async def test_a_cancelled_task_ends_within_two_seconds(bench: TaskBench, handler: str, tmp_path: Path) -> None:
    worker = bench.worker(processes=1)
    place = tmp_path / "pids"
    job_id = await running(bench, handler, place=str(place), steps=1000)
    begun = time.monotonic()
    await cancel_job(bench, job_id)
    await until(lambda: not worker._slots)
    assert time.monotonic() - begun < 2
    if place.exists():
        for pid in map(int, place.read_text().split()):
            await until(lambda pid=pid: gone(pid))
    assert (await bench.ended(job_id)).status is JobStatus.CANCELLED
    assert await bench.attempts() == []


async def test_a_handler_that_looks_stops_before_it_is_made_to(bench: TaskBench) -> None:
    worker = bench.worker(processes=1, grace_seconds=30)
    job_id = await running(bench, "polite", steps=1000)
    (pid,) = worker._children.pids
    begun = time.monotonic()
    await cancel_job(bench, job_id)
    await until(lambda: not worker._slots)
    assert time.monotonic() - begun < 2
    await until(lambda: gone(pid))  # its task failed: a fresh one takes its place


async def test_a_handler_that_swallows_its_cancellation_does_not_keep_its_slot(
    bench: TaskBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("geomill.worker.watch.STUBBORN_SECONDS", 0.6)
    worker = bench.worker(concurrency=1)
    await bench.try_out("stubborn", timeout_seconds=0.3)
    assert (await bench.only_attempt())["error_code"] == "timeout"
    assert worker._slots == {}
    assert (await bench.try_out("hello_world")).status is JobStatus.COMPLETED


async def test_a_handler_that_cancels_itself_has_failed(bench: TaskBench) -> None:
    bench.worker()
    await bench.try_out("cancel_yourself")
    assert (await bench.only_attempt())["error_message"] == "the handler cancelled itself"


async def test_a_worker_that_only_has_short_tasks_never_checks_its_leases(
    bench: TaskBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    worker = bench.worker()
    checks = []
    monkeypatch.setattr("geomill.worker.keeper.queue.lost", lambda *args: checks.append(args))
    for _ in range(3):
        await bench.try_out("hello_world")
        await asyncio.sleep(0.3)
    assert checks == []
    assert worker._keeper._due(time.monotonic()) == []
