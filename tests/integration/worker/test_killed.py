"""`kill -9` of a real worker: no child of it stays behind, and its task goes on elsewhere, soon."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from geomill.domain.states import JobStatus
from tests.integration.worker.conftest import HANDLERS, TaskBench
from tests.integration.worker.test_cancellation import running
from tests.integration.worker.waiting import gone, until, until_rows

ROOT = Path(__file__).parents[3]


def start(url: str, *arguments: str, **settings: str) -> subprocess.Popen[bytes]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "GEOMILL_DATABASE_URL": url, "GEOMILL_HANDLERS": HANDLERS}
    command = [sys.executable, "-c", "from geomill.cli.main import run; run()", "worker", *arguments]
    return subprocess.Popen(command, env=environment | settings)


@pytest.fixture
def process(bench: TaskBench) -> Iterator[subprocess.Popen[bytes]]:
    started = start(bench.url, "--concurrency", "50", "--queue", "functionapp-tasks=2", GEOMILL_TASK_PROCESSES="2")
    yield started
    started.kill()
    started.wait()


def children(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


async def test_a_killed_worker_leaves_no_child_and_its_task_resumes(
    bench: TaskBench, process: subprocess.Popen[bytes]
) -> None:
    job_id = await running(bench, "polite", steps=40)
    orphans = children(process.pid)
    assert len(orphans) == 2
    process.send_signal(signal.SIGKILL)
    killed = time.monotonic()
    for pid in orphans:
        await until(lambda pid=pid: gone(pid), 2)
    bench.worker(processes=1)
    await until_rows(bench, "SELECT 1 FROM dagapp.dag_queue WHERE delivery_count = 2")
    assert time.monotonic() - killed < 5  # nobody waited for the task's timeout, nor for its lease
    assert (await bench.ended(job_id)).status is JobStatus.COMPLETED


async def test_a_terminated_worker_drains(bench: TaskBench, process: subprocess.Popen[bytes]) -> None:
    await running(bench, "polite", steps=400)
    process.send_signal(signal.SIGTERM)
    await until(lambda: process.poll() is not None)
    assert process.returncode == 0
    assert await bench.rows("SELECT phase FROM dagapp.dag_checkpoints") == [{"phase": "interrupted"}]
    assert await bench.attempts() == []


async def test_three_connections_whatever_the_concurrency(bench: TaskBench, process: subprocess.Popen[bytes]) -> None:
    bench.offer("nap", {"seconds": 1})
    for _ in range(40):
        await bench.submit("nap")
    most = running_at_once = 0
    async with asyncio.timeout(15):
        while running_at_once < 40:
            (counts,) = await bench.rows(
                "SELECT count(*) FILTER (WHERE a.application_name = 'geomill worker') AS pooled,"
                " (SELECT count(*) FROM dagapp.dag_queue WHERE lease_token IS NOT NULL) AS leased"
                " FROM pg_stat_activity AS a WHERE a.datname = current_database()"
            )
            running_at_once = max(running_at_once, counts["leased"])
            most = max(most, counts["pooled"])
            await asyncio.sleep(0.02)
    assert most <= 2  # and the one that listens
