"""Connections that break at the worst moment, and a server that restarts: reconnect, and nothing is stuck."""

from __future__ import annotations

import asyncio
import time

import psycopg

from geomill.domain.engine.job import Job
from geomill.domain.states import JobStatus
from geomill.queues import postgres as queue
from tests.integration.engine.conftest import MakePlatform
from tests.integration.engine.platform import EnginePlatform

QUICK = """
workflow_id: quick
name: Quick
nodes:
  START: {type: start, next: work}
  work: {type: task, handler: hello_world, next: END}
  END: {type: end}
"""


async def test_a_lease_whose_answer_was_lost_goes_back_at_once(make_platform: MakePlatform) -> None:
    platform = make_platform(QUICK)
    platform.orchestrator()
    worker = platform.worker()
    job_id = await platform.submit("quick")
    await platform.ended(job_id)
    async with platform.pool.connection() as conn:
        await queue.send(conn, [queue.Outgoing("functionapp-tasks", "never-heard-of", "{}", 0)])
        await queue.lease(conn, {"functionapp-tasks": 1}, worker.instance_id)  # as if the connection broke right then
    worker._unsure = True
    worker._shares.called()
    worker._poke()
    async with asyncio.timeout(5):  # it is leased again, found malformed, and buried
        while not await platform.rows("SELECT 1 FROM dagapp.dag_dead_letters"):  # noqa: ASYNC110
            await asyncio.sleep(0.02)


async def _run(platform: EnginePlatform) -> Job:
    """The test's own sessions were killed too."""
    while True:
        try:
            return await platform.run("quick")
        except psycopg.OperationalError:
            await asyncio.sleep(0.05)


async def test_killed_sessions_are_replaced_and_work_goes_on(make_platform: MakePlatform) -> None:
    platform = make_platform(QUICK)
    platform.orchestrator(scan_seconds=0.2)
    platform.worker(poll_seconds=0.2)
    assert (await platform.run("quick")).status is JobStatus.COMPLETED
    for _ in range(3):
        with psycopg.connect(platform.url, autocommit=True) as admin:
            admin.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                " WHERE datname = current_database() AND pid <> pg_backend_pid()"
            )
        begun = time.monotonic()
        assert (await _run(platform)).status is JobStatus.COMPLETED
        assert time.monotonic() - begun < 10
    owners = await platform.rows("SELECT role::text FROM dagapp.dag_instances ORDER BY 1")
    assert [row["role"] for row in owners] == ["orchestrator", "worker"]
