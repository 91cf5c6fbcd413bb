"""PostgreSQL goes away and comes back while everybody else lives: no task begins again."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import Awaitable, Callable

import psycopg
import pytest

from geomill.embedded.cluster import StopMode
from geomill.store.connection import connect
from tests.integration.liveness.stage import LivenessStage, within

pytestmark = pytest.mark.slow
TASKS = 24
DOWN_SECONDS = float(os.environ.get("LIVENESS_DOWN_SECONDS", "3"))
"""How long PostgreSQL is away. The promise is 60 s; the suite has no time for that."""


@pytest.mark.parametrize("mode", ["fast", "immediate"])
async def test_no_task_begins_again_after_a_restart(stage: LivenessStage, mode: StopMode) -> None:
    async def restart() -> None:
        await asyncio.to_thread(stage.cluster.stop, mode)
        await asyncio.sleep(DOWN_SECONDS)
        await asyncio.to_thread(stage.cluster.start)

    await no_task_begins_again(stage, restart)


async def test_no_task_begins_again_after_a_crash_of_one_backend(stage: LivenessStage) -> None:
    """PostgreSQL ends all its sessions and recovers, under the same postmaster."""

    async def crash() -> None:
        async with await connect(stage.url) as conn:
            os.kill(conn.info.backend_pid, signal.SIGKILL)
            with pytest.raises(psycopg.OperationalError):
                await conn.execute("SELECT 1")

    await no_task_begins_again(stage, crash)


async def no_task_begins_again(stage: LivenessStage, trouble: Callable[[], Awaitable[None]]) -> None:
    for _ in range(2):
        stage.start("orchestrator")
        stage.start("worker", "--concurrency", "12")
    await stage.ready(4)
    seconds = DOWN_SECONDS + 15  # longer than everybody is given to come back
    jobs = await stage.submit("nap", *(f"n{n}" for n in range(TASKS - 4)), seconds=seconds)
    jobs += await stage.submit("nap_aside", *(f"a{n}" for n in range(4)), seconds=seconds)
    await stage.until_begun(TASKS)
    await stage.until_rows("SELECT 1 FROM dagapp.dag_node_states WHERE status = 'running' HAVING count(*) = 24")
    await trouble()
    ended = await stage.ended(jobs)
    assert {row["status"] for row in ended.values()} == {"completed"}, stage.log()
    again = {key: count for key, count in stage.counts("begun").items() if count > 1}
    assert not again, stage.log()


@pytest.mark.parametrize("role", ["worker", "orchestrator"])
async def test_a_kill_is_noticed_within_two_seconds(stage: LivenessStage, role: str) -> None:
    processes = {name: [stage.start(name) for _ in range(2)] for name in ("orchestrator", "worker")}
    await stage.ready(4)
    await settled(stage)
    for victim in processes[role]:
        await stage.ready(4)
        (row,) = await stage.rows("SELECT instance_id FROM dagapp.dag_instances WHERE pid = %(pid)s", pid=victim.pid)
        victim.kill()
        killed = time.monotonic()
        await stage.until_rows(
            "SELECT 1 WHERE NOT EXISTS (SELECT FROM dagapp.dag_instances WHERE instance_id = %(instance_id)s)", **row
        )
        assert time.monotonic() - killed < within(2.5)  # two, and what the test takes to look
        stage.start(role)


async def settled(stage: LivenessStage) -> None:
    """Wait until the server has run long enough that a free lock proves that a process is gone."""
    await stage.until_rows("SELECT 1 WHERE pg_postmaster_start_time() < now() - interval '11 s'")
