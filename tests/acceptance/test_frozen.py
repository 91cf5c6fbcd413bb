"""A process that is frozen for longer than the threshold, and then goes on, has lost its jobs and harms none."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import psycopg
import pytest
from psycopg.rows import dict_row

from geomill.domain.engine.message import JobQueueMessage
from geomill.engine.submit import submit
from geomill.store.pool import open_pool
from tests.acceptance.conftest import GEOMILL
from tests.integration.engine.platform import registry_of

pytestmark = pytest.mark.slow
WORKFLOW = """
    workflow_id: slow_chain
    name: Slow chain
    nodes:
      START: {type: start, next: a}
      a: {type: task, handler: sleep, params: {duration_seconds: 6}, next: b}
      b: {type: task, handler: echo, params: {x: "{{ nodes.a.output.slept_for }}"}, next: END}
      END: {type: end}
"""


@contextmanager
def role(*arguments: str, **environ: str) -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen([GEOMILL, *arguments], env={**os.environ, **environ}, stderr=subprocess.DEVNULL)
    try:
        yield process
    finally:
        process.send_signal(signal.SIGCONT)
        process.terminate()
        process.wait(300)


async def until(conn, query: str, true) -> list[dict]:
    async with asyncio.timeout(300):
        while True:
            rows = await (await conn.execute(query)).fetchall()
            if true(rows):
                return rows
            await asyncio.sleep(0.1)


@pytest.mark.parametrize("victim", ["orchestrator", "worker"])
async def test_who_was_frozen_finds_itself_fenced_out(database, tmp_path, victim):
    from geomill.sdk.registry import load_handlers

    (tmp_path / "slow_chain.yaml").write_text(WORKFLOW.replace("\n    ", "\n").strip() + "\n")
    environ = {
        "GEOMILL_DATABASE_URL": database,
        "GEOMILL_DATA": str(tmp_path / "data"),
        "GEOMILL_WORKFLOWS": str(tmp_path),
        "HEARTBEAT_INTERVAL_SEC": "0.5",
        "ORPHAN_THRESHOLD_SEC": "3",
    }
    kinds = {"orchestrator": ("orchestrator",), "worker": ("worker", "--concurrency", "4")}
    other = "worker" if victim == "orchestrator" else "orchestrator"
    with ExitStack() as stack:
        conn = await psycopg.AsyncConnection.connect(database, autocommit=True, row_factory=dict_row)
        stack.enter_context(role(*kinds[other], **environ))
        frozen = stack.enter_context(role(*kinds[victim], **environ))
        await until(conn, "SELECT FROM dagapp.dag_instances", lambda rows: len(rows) == 2)
        async with open_pool(database, size=1) as pool, pool.connection() as submitting:
            message = JobQueueMessage(workflow_id="slow_chain")
            await submit(submitting, registry_of(load_handlers(), WORKFLOW), "dag-jobs", message)
        leased = "SELECT leased_by FROM dagapp.dag_queue WHERE lease_token IS NOT NULL"
        await until(conn, leased, bool)
        [before] = await until(conn, "SELECT owner_id, owner_epoch FROM dagapp.dag_jobs", bool)
        [lease] = await until(conn, leased, bool)
        frozen.send_signal(signal.SIGSTOP)
        stack.enter_context(role(*kinds[victim], **environ))
        if victim == "orchestrator":
            owners = "SELECT owner_id, owner_epoch FROM dagapp.dag_jobs"
            [after] = await until(conn, owners, lambda rows: rows[0]["owner_id"] not in (None, before["owner_id"]))
            assert after["owner_epoch"] > before["owner_epoch"]
        else:
            await until(conn, leased, lambda rows: rows and rows[0]["leased_by"] != lease["leased_by"])
        frozen.send_signal(signal.SIGCONT)
        [job] = await until(
            conn, "SELECT status::text, result_data FROM dagapp.dag_jobs", lambda rows: rows[0]["status"] != "running"
        )
        assert job["status"] == "completed"
        nodes = await until(conn, "SELECT node_id, status::text, retry_count FROM dagapp.dag_node_states", bool)
        assert {(row["status"], row["retry_count"]) for row in nodes} == {("completed", 0)}
        ends = "SELECT FROM dagapp.dag_job_events WHERE event_type IN ('job_completed', 'job_failed')"
        assert len(await until(conn, ends, bool)) == 1
        assert frozen.poll() is None, "it lives on, without the job"
        await conn.close()
