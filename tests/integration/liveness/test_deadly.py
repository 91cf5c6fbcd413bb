"""A task that takes its workers down: its job ends with a clear reason, and nobody else's job fails."""

from __future__ import annotations

import asyncio
import subprocess

import pytest

from tests.integration.liveness.stage import LivenessStage

pytestmark = pytest.mark.slow
INNOCENTS = 24
WORKERS = 2


async def test_only_the_guilty_task_is_charged(stage: LivenessStage) -> None:
    stage.start("orchestrator")
    workers = [stage.start("worker") for _ in range(WORKERS)]
    await stage.ready(1 + WORKERS)
    innocent = await stage.submit("nap", *(f"n{n}" for n in range(INNOCENTS // 2)), seconds=1.5)
    (guilty,) = await stage.submit("deadly", "guilty", seconds=0.5)
    innocent += await stage.submit("nap", *(f"m{n}" for n in range(INNOCENTS // 2)), seconds=1.5)
    supervisor = asyncio.create_task(keep_alive(stage, workers))
    try:
        ended = await stage.ended([*innocent, guilty])
    finally:
        supervisor.cancel()
    assert {ended[job_id]["status"] for job_id in innocent} == {"completed"}, stage.log()
    assert ended[guilty]["status"] == "failed"
    assert "its worker was lost 4 times while it ran the task" in ended[guilty]["error_message"]
    assert stage.counts("begun")["guilty"] == 6  # an attempt of four, and one that begins as a suspect
    assert max(stage.counts("begun").values()) == 6
    results = await stage.rows(
        "SELECT attempt, error_code, retryable FROM dagapp.dag_task_results WHERE job_id = %(job_id)s ORDER BY attempt",
        job_id=guilty,
    )
    assert [tuple(row.values()) for row in results] == [(1, "worker_lost", True), (2, "worker_lost", True)]


async def keep_alive(stage: LivenessStage, workers: list[subprocess.Popen[bytes]]) -> None:
    """Start workers again, as a supervisor does."""
    while True:
        for number, worker in enumerate(workers):
            if worker.poll() is not None:
                workers[number] = stage.start("worker")
        await asyncio.sleep(0.1)
