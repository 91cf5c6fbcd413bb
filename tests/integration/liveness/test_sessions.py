"""A worker that loses its listening session, and nothing else, keeps its tasks."""

from __future__ import annotations

import asyncio

import psycopg
import pytest

from tests.integration.liveness.stage import LivenessStage, within
from tests.integration.liveness.test_restarts import settled

pytestmark = pytest.mark.slow
NIGHT_SECONDS = 600
"""Longer than any test: tasks end when they are woken."""
OTHERS_LOOK_SECONDS = 3
"""Others notice a process without its session within two seconds."""
LISTENERS = """
    SELECT l.pid, pg_terminate_backend(l.pid)
    FROM dagapp.dag_instances AS i
    JOIN pg_locks AS l ON l.locktype = 'advisory' AND (l.classid::bigint << 32) + l.objid::bigint = i.lock_key
    WHERE i.role = 'worker'
"""


async def test_a_worker_without_its_listener_keeps_its_tasks(stage: LivenessStage) -> None:
    stage.start("orchestrator")
    stage.start("worker")
    await stage.ready(2)
    await settled(stage)
    jobs = await stage.submit("nap", *(f"n{n}" for n in range(6)), seconds=NIGHT_SECONDS)
    await stage.until_begun(6)
    for _ in range(4):
        await stage.until_rows(LISTENERS)
        await asyncio.sleep(1)
    await stage.until_rows(LISTENERS.replace("pg_terminate_backend(l.pid)", "true"))
    await asyncio.sleep(within(OTHERS_LOOK_SECONDS))
    stage.wake()
    ended = await stage.ended(jobs)
    assert {row["status"] for row in ended.values()} == {"completed"}
    assert set(stage.counts("begun").values()) == {1}, stage.log()


async def test_a_listener_that_cannot_be_opened_for_a_while_costs_no_task(stage: LivenessStage) -> None:
    """The server takes no new session for some seconds; those of the pool stay."""
    stage.start("orchestrator")
    stage.start("worker")
    await stage.ready(2)
    await settled(stage)
    jobs = await stage.submit("nap", *(f"n{n}" for n in range(6)), seconds=NIGHT_SECONDS)
    await stage.until_begun(6)
    url = stage.cluster.url("postgres")
    async with await psycopg.AsyncConnection.connect(url, autocommit=True) as admin:
        name = psycopg.conninfo.conninfo_to_dict(stage.url)["dbname"]
        (listener,) = await stage.rows(LISTENERS.replace("pg_terminate_backend(l.pid)", "true"))
        await admin.execute(f'ALTER DATABASE "{name}" ALLOW_CONNECTIONS false')
        try:
            await admin.execute("SELECT pg_terminate_backend(%s)", (listener["pid"],))
            await asyncio.sleep(5)
        finally:
            await admin.execute(f'ALTER DATABASE "{name}" ALLOW_CONNECTIONS true')
    await asyncio.sleep(within(OTHERS_LOOK_SECONDS))
    stage.wake()
    ended = await stage.ended(jobs)
    assert {row["status"] for row in ended.values()} == {"completed"}
    assert set(stage.counts("begun").values()) == {1}, stage.log()
