"""A machine at load 20: nobody is taken for dead, and no task begins again. By default settings."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from geomill.store.instances import SILENT_SECONDS
from tests.integration.liveness.stage import LivenessStage

BUSY = int(os.environ.get("LIVENESS_LOAD", "0"))
SECONDS = 60.0


@contextmanager
def busy_loops() -> Iterator[None]:
    loops = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(BUSY)]
    try:
        yield
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()


@pytest.mark.skipif(not BUSY, reason="slows everything else down; set LIVENESS_LOAD=20")
async def test_a_busy_machine_is_no_reason_to_take_anybody_for_dead(stage: LivenessStage) -> None:
    for _ in range(2):
        stage.start("orchestrator")
        stage.start("worker")
    await stage.ready(4)
    jobs = await stage.submit("nap", *(f"n{n}" for n in range(16)), seconds=SECONDS)
    jobs += await stage.submit("nap_aside", *(f"a{n}" for n in range(4)), seconds=SECONDS)
    await stage.until_begun(20)
    before = await stage.rows("SELECT instance_id, started_at FROM dagapp.dag_instances ORDER BY 1")
    ages = []
    with busy_loops():
        for _ in range(int(SECONDS // 5)):
            await asyncio.sleep(5)
            (oldest,) = await stage.rows("SELECT max(now() - heartbeat_at) AS age FROM dagapp.dag_instances")
            ages.append(oldest["age"].total_seconds())
        ended = await stage.ended(jobs, 180)
    assert max(ages) < SILENT_SECONDS / 2, ages
    assert {row["status"] for row in ended.values()} == {"completed"}
    assert set(stage.counts("begun").values()) == {1}, stage.log()
    assert await stage.rows("SELECT instance_id, started_at FROM dagapp.dag_instances ORDER BY 1") == before
    assert await stage.rows("SELECT 1 FROM dagapp.dag_job_events WHERE event_type = 'job_reclaimed'") == []
