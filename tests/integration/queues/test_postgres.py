"""The parts that only PostgreSQL has: locks, plans, the records of refused submissions, the commands."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from typer.testing import CliRunner

from geomill.cli.queues import app
from geomill.domain.engine.message import JobQueueMessage
from geomill.domain.states import JobStatus
from geomill.engine.redrive import redrive
from geomill.errors import InputError, NotFoundError
from geomill.queues import postgres as queue
from geomill.queues.postgres import Outgoing
from geomill.queues.postgres_broker import PostgresBroker
from geomill.store.pool import Pool
from tests.integration.engine.conftest import MakePlatform, make_platform
from tests.integration.queues.conftest import QUEUE, BrokerBench, job

__all__ = ["make_platform"]


async def test_a_locked_message_is_passed_by(bench: BrokerBench, pool: Pool) -> None:
    await bench.send(job("first"), job("second"))
    async with pool.connection() as holder, holder.transaction():
        await holder.execute("SELECT FROM dagapp.dag_queue WHERE message_id = 'first' FOR UPDATE")
        async with asyncio.timeout(5):
            (got,) = await bench.other.receive(QUEUE, JobQueueMessage, 1)
        assert got.message_id == "second"
    (got,) = await bench.other.receive(QUEUE, JobQueueMessage, 1)
    assert got.message_id == "first"


async def test_who_waits_for_a_lock_finds_the_lease_gone(bench: BrokerBench, pool: Pool) -> None:
    """The old holder's completion waits for the row while it is given to somebody else, then does nothing."""
    await bench.send(job("a"))
    (old,) = await bench.broker.receive(QUEUE, JobQueueMessage, 1)
    async with pool.connection() as conn:
        async with conn.transaction():
            await conn.execute("UPDATE dagapp.dag_queue SET lease_token = 2, delivery_count = 2, leased_by = 'other'")
            late = asyncio.create_task(bench.broker.complete([old]))
            await _until_somebody_waits(pool)
        assert await late == set()
        row = await (await conn.execute("SELECT lease_token FROM dagapp.dag_queue")).fetchone()
    assert row == {"lease_token": 2}


async def test_a_message_that_is_put_back_while_it_is_withdrawn_is_gone(bench: BrokerBench, pool: Pool) -> None:
    """A withdrawal waits for the row that a worker puts back. Afterwards nobody may find the message."""
    await bench.send(job("a"))
    async with pool.connection() as conn, pool.connection() as other:
        leased = await queue.lease(conn, {QUEUE: 1}, "worker", 30.0)
        async with conn.transaction():
            await queue.defer(conn, leased.deliveries, 0.0)
            late = asyncio.create_task(queue.withdraw(other, [(QUEUE, "a")]))
            await _until_somebody_waits(pool)
        assert await late == 1
        cursor = await conn.execute("SELECT message_id FROM dagapp.dag_queue")
        assert await cursor.fetchall() == []


async def test_a_message_that_was_put_back_is_leased_under_another_token(bench: BrokerBench, pool: Pool) -> None:
    await bench.send(job("a"))
    async with pool.connection() as conn:
        first = (await queue.lease(conn, {QUEUE: 1}, "worker", 30.0)).deliveries
        await queue.defer(conn, first, 0.0)
        (again,) = (await queue.lease(conn, {QUEUE: 1}, "worker", 30.0)).deliveries
        await queue.defer(conn, first, 60.0)  # a repeated report under the old token
        cursor = await conn.execute("SELECT lease_token FROM dagapp.dag_queue")
        assert await cursor.fetchall() == [{"lease_token": again.lease_token}]


async def _until_somebody_waits(pool: Pool) -> None:
    query = (
        "SELECT count(*) AS waiting FROM pg_stat_activity "
        "WHERE wait_event_type = 'Lock' AND datname = current_database()"
    )
    async with asyncio.timeout(5), pool.connection() as conn:
        while True:
            row = await (await conn.execute(query)).fetchone()
            if row and row["waiting"]:
                return
            await asyncio.sleep(0.005)


async def test_a_refused_submission_becomes_its_job_when_sent_again(make_platform: MakePlatform) -> None:
    platform = make_platform()
    platform.orchestrator()
    platform.worker()
    pool = platform.pool
    message = JobQueueMessage(workflow_id="not a name", idempotency_key="once", input_params={})
    async with pool.connection() as conn:
        await queue.send(conn, [Outgoing(QUEUE, message.job_id, message.model_dump_json())])
    refused = await platform.ended(message.job_id)
    assert (refused.status, refused.definition_hash) == (JobStatus.FAILED, None)

    async with pool.connection() as conn:  # as when the workflow has been installed meanwhile
        await conn.execute('UPDATE dagapp.dag_dead_letters SET body = body || \'{"workflow_id": "hello_world"}\'')
        sent = await redrive(conn, PostgresBroker(pool, "test"), QUEUE, [message.job_id])
    assert [letter.reason for letter in sent] == ["WorkflowNotFound"]
    done = await platform.until(message.job_id, lambda job: job is not None and job.status is JobStatus.COMPLETED)
    assert done.workflow_id == "hello_world"
    assert (await platform.history(message.job_id))[0] == "job_created"


async def test_only_records_of_refusals_are_forgotten(pool: Pool) -> None:
    async with pool.connection() as conn:
        await conn.execute("INSERT INTO dagapp.dag_definitions VALUES ('h', 'w', 1, '{}')")
        await conn.execute(
            "INSERT INTO dagapp.dag_jobs (job_id, workflow_id, status, definition_hash, completed_at) VALUES "
            "('refused', 'w', 'failed', NULL, now()), ('cancelled', 'w', 'cancelled', NULL, now()), "
            "('failed', 'w', 'failed', 'h', now()), ('unasked', 'w', 'failed', NULL, now())"
        )
        await queue.forget_refused(conn, ["refused", "cancelled", "failed"])
        rows = await (await conn.execute("SELECT job_id FROM dagapp.dag_jobs")).fetchall()
    assert {row["job_id"] for row in rows} == {"cancelled", "failed", "unasked"}


# Commands


@pytest.fixture
def run(database: str, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setenv("GEOMILL_DATABASE_URL", database)
    monkeypatch.setenv("COLUMNS", "200")

    async def command(*arguments: str) -> Any:
        return await asyncio.to_thread(CliRunner().invoke, app, list(arguments), catch_exceptions=True)

    return command


async def test_list(run: Any, bench: BrokerBench) -> None:
    await bench.send(job("a"), job("b"))
    await bench.broker.receive(QUEUE, JobQueueMessage, 1)
    await bench.send(job("x"), queue="elsewhere")
    lines = (await run("list")).output.splitlines()
    assert lines[0].split() == ["queue", "waiting", "scheduled", "leased", "oldest", "dead", "letters", "served", "by"]
    assert [QUEUE, "1", "0", "1"] in [line.split()[:4] for line in lines]
    queues = {entry["queue_name"]: entry for entry in json.loads((await run("list", "--json")).output)}
    assert {"functionapp-tasks", "elsewhere", QUEUE} <= set(queues)
    assert queues[QUEUE]["leased"] == 1


async def test_peek(run: Any, bench: BrokerBench) -> None:
    await bench.send(job("a"))
    assert "hello_world" in (await run("peek", QUEUE)).output
    assert json.loads((await run("peek", QUEUE, "--json")).output)[0]["message_id"] == "a"
    assert (await bench.broker.depth(QUEUE)).waiting == 1


async def test_dead_letters_and_redrive(run: Any, bench: BrokerBench) -> None:
    await bench.send(job("a"), job("b"), job("c"))
    await bench.broker.dead_letter(await bench.broker.receive(QUEUE, JobQueueMessage, 9), "Unwanted", "for a test")
    assert "Unwanted: for a test" in (await run("dead-letters")).output
    assert len(json.loads((await run("dead-letters", QUEUE, "--limit", "2", "--json")).output)) == 2
    assert json.loads((await run("redrive", QUEUE, "--id", "b", "--json")).output)["sent"] == ["b"]
    assert (await run("redrive", QUEUE, "--all")).output == "2 dead letters sent again to dag-jobs\n"
    assert (await run("dead-letters", QUEUE)).output == ""


async def test_what_is_not_there(run: Any) -> None:
    for command in (["peek", "dag-job"], ["dead-letters", "dag-job"], ["redrive", "dag-job", "--all"]):
        error = (await run(*command)).exception
        assert isinstance(error, NotFoundError)
        assert "did you mean 'dag-jobs'" in str(error)
    assert isinstance((await run("redrive", QUEUE, "--id", "nobody")).exception, NotFoundError)
    assert isinstance((await run("redrive", QUEUE)).exception, InputError)
    assert isinstance((await run("redrive", QUEUE, "--all", "--id", "a")).exception, InputError)
