"""`kill -9` of orchestrator and worker at every border of a stage job: it goes on, and each stage advances once.

One job is held at each border, all by the same two processes, so that each kill hits every border at once.
"""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from geomill.domain.engine.stage_job import StageStatus
from tests.integration.stages.conftest import MODULES, StagePlatform

ROOT = Path(__file__).parents[3]
GEOMILL = str(Path(sys.executable).with_name("geomill"))
BORDERS = [f"{step}{stage}" for stage in (1, 2) for step in ("plan", "tasks", "aggregate")]
Process = subprocess.Popen[bytes]


@pytest.fixture
def start(database: str, tmp_path: Path) -> Iterator[Callable[..., Process]]:
    """A role, as a process of its own."""
    environ = {
        **os.environ,
        "PYTHONPATH": str(ROOT),
        "GEOMILL_DATABASE_URL": database,
        "GEOMILL_DATA": str(tmp_path / "data"),
        "GEOMILL_HANDLERS": ",".join(MODULES),
        "GEOMILL_TASK_PROCESSES": "1",
        "GEOMILL_LOG_LEVEL": "warning",
    }
    started: list[Process] = []

    def run(*command: str) -> Process:
        started.append(subprocess.Popen([GEOMILL, *command], env=environ))
        return started[-1]

    yield run
    for process in started:
        process.kill()
    for process in started:
        process.wait()


async def until(true: Callable[[], bool], what: str) -> None:
    try:
        async with asyncio.timeout(30):
            while not true():  # noqa: ASYNC110  other processes do the work
                await asyncio.sleep(0.02)
    except TimeoutError:
        raise AssertionError(f"never: {what}") from None


async def held_by(worker: Process, folder: Path) -> None:
    """Wait until each of the jobs waits at its border, in this worker."""
    waiting = [folder / f"{border}.{worker.pid}" for border in BORDERS]
    await until(lambda: all(file.exists() for file in waiting), f"all held by {worker.pid}")


def kill(*processes: Process) -> None:
    for process in processes:
        os.kill(process.pid, signal.SIGKILL)
    for process in processes:
        process.wait()


@pytest.mark.slow
async def test_kill_9_at_every_border(
    make_stages: Callable[[], StagePlatform], start: Callable[..., Process], tmp_path: Path
) -> None:
    platform = make_stages()
    folder = tmp_path / "gates"
    folder.mkdir()
    orchestrator, worker = start("orchestrator"), start("worker", "--concurrency", "50")
    orders = [await platform.order("held", {"folder": str(folder), "hold_at": border}) for border in BORDERS]

    await held_by(worker, folder)  # the steps have been sent, and run
    kill(orchestrator, worker)
    orchestrator, worker = start("orchestrator"), start("worker", "--concurrency", "50")
    await held_by(worker, folder)

    os.kill(orchestrator.pid, signal.SIGSTOP)  # so the steps end, and nothing follows from it
    (folder / "open").touch()
    await _reported(platform, len(BORDERS))
    kill(orchestrator)
    start("orchestrator")

    for order in orders:
        await platform.ended(order.run.run_id)
        view = await platform.view(order.run.job_id)
        assert view.latest.status is StageStatus.COMPLETED, view.latest.error
        assert view.result == {"stage_1": {"sum": 6}, "stage_2": {"sum": 21}}
        assert [stage.completed for stage in view.stages] == [3, 6]
    await _check_once(platform, len(orders))


async def _reported(platform: StagePlatform, expected: int) -> None:
    """Wait until the ends of all held steps are in the inbox of an orchestrator that does not look."""
    async with asyncio.timeout(30):
        while True:
            (row,) = await platform.rows("SELECT count(DISTINCT job_id) AS jobs FROM dagapp.dag_inbox")
            if row["jobs"] == expected:
                return
            await asyncio.sleep(0.02)


async def _check_once(platform: StagePlatform, jobs: int) -> None:
    """Each step and each task of each job has come to an end once."""
    steps = await platform.rows("""
        SELECT job_id, node_id, count(*) AS ended FROM dagapp.dag_job_events
        WHERE node_id LIKE 'stage%' AND item_index = -1 AND event_type = 'node_completed' GROUP BY 1, 2""")
    assert len(steps) == jobs * 8
    assert {row["ended"] for row in steps} == {1}
    tasks = await platform.rows("""
        SELECT job_id, node_id, item_index, count(*) AS ended FROM dagapp.dag_task_results
        WHERE status = 'completed' AND item_index >= 0 GROUP BY 1, 2, 3""")
    assert len(tasks) == jobs * (3 + 6)
    assert {row["ended"] for row in tasks} == {1}
