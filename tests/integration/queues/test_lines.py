"""Lines of one queue: what is leased and taken when tenants and priorities meet, and whose a message stays."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any

import pytest

from geomill.domain.engine.message import JobQueueMessage
from geomill.queues import postgres as queue
from geomill.queues.broker import Message
from geomill.queues.postgres import Outgoing
from geomill.queues.postgres_broker import PostgresBroker
from geomill.queues.turns import TenantTurns
from geomill.store.pool import Connection, Pool

QUEUE = "functionapp-tasks"


async def fill(conn: Connection, *waiting: tuple[str, int, int]) -> None:
    """Send messages for each (tenant, priority, count). Their ids name all three."""
    await queue.send(
        conn,
        [
            Outgoing(QUEUE, f"{tenant}{priority}:{number}", "{}", priority, tenant=tenant)
            for tenant, priority, count in waiting
            for number in range(count)
        ],
    )


async def leased(conn: Connection, count: int, turns: TenantTurns | None = None, by: str = "w") -> list[str]:
    lease = await queue.lease(conn, {QUEUE: count}, by, turns=turns)
    return [delivery.message_id for delivery in lease.deliveries]


async def tenants(conn: Connection) -> list[dict[str, Any]]:
    return await (await conn.execute("SELECT message_id, tenant FROM dagapp.dag_queue ORDER BY message_id")).fetchall()


async def test_one_line_is_first_come_first_served(pool: Pool) -> None:
    async with pool.connection() as conn:
        await fill(conn, ("a", 0, 5))
        assert [await leased(conn, 2) for _ in range(3)] == [["a0:0", "a0:1"], ["a0:2", "a0:3"], ["a0:4"]]


async def test_slots_are_shared_out_and_what_one_has_not_the_other_gets(pool: Pool) -> None:
    async with pool.connection() as conn:
        await fill(conn, ("a", 0, 10), ("b", 0, 2))
        assert set(await leased(conn, 6)) == {"a0:0", "a0:1", "a0:2", "a0:3", "b0:0", "b0:1"}


async def test_a_higher_priority_goes_first_whoever_waits(pool: Pool) -> None:
    async with pool.connection() as conn:
        await fill(conn, ("a", 0, 3), ("b", 5, 2), ("c", -5, 1))
        turns = TenantTurns()
        assert [await leased(conn, 1, turns) for _ in range(6)] == [
            ["b5:0"], ["b5:1"], ["a0:0"], ["a0:1"], ["a0:2"], ["c-5:0"],
        ]  # fmt: skip
        await fill(conn, ("d", 0, 1), ("d", 5, 1))
        assert await leased(conn, 9) == ["d0:0", "d5:0"], "all of it, in one go"


async def test_a_line_that_somebody_is_taking_from_does_not_hold_up_the_next(pool: Pool) -> None:
    async with pool.connection() as conn, pool.connection() as other:
        await fill(conn, ("a", 0, 1), ("b", 0, 1))
        async with other.transaction():
            await other.execute("SELECT FROM dagapp.dag_queue WHERE tenant = 'a' FOR UPDATE")
            assert await leased(conn, 1) == ["b0:0"]


async def test_many_at_once_lease_each_message_once_and_leave_none(pool: Pool) -> None:
    async with pool.connection() as conn:
        await fill(conn, ("", 0, 50), ("a", 0, 200), ("b", 0, 100), ("b", 3, 30))

    async def consume(name: str) -> list[str]:
        message_ids: list[str] = []
        async with pool.connection() as conn:
            turns, idle = TenantTurns(), 0
            while idle < 3:
                batch = await leased(conn, 7, turns, name)
                idle = 0 if batch else idle + 1
                message_ids += batch
        return message_ids

    consumed = await asyncio.gather(*(consume(f"w{number}") for number in range(4)))
    counts = Counter(message for messages in consumed for message in messages)
    assert (len(counts), set(counts.values())) == (380, {1})


async def test_submissions_are_taken_in_turn_and_all_of_them(pool: Pool) -> None:
    async with pool.connection() as conn:
        await fill(conn, ("a", 0, 40), ("b", 0, 1), ("c", 0, 3), ("d", -1, 2))
        turns = TenantTurns()
        batches = []
        for _ in range(3):
            received = await queue.take(conn, QUEUE, 20, turns=turns)
            turns.given([QUEUE])
            batches.append(Counter(message.tenant for message in received))
        assert batches == [{"a": 16, "b": 1, "c": 3}, {"a": 20}, {"a": 4, "d": 2}]


async def test_young_submissions_are_left_alone(pool: Pool) -> None:
    async with pool.connection() as conn:
        await fill(conn, ("a", 0, 2), ("b", 0, 2))
        assert await queue.take(conn, QUEUE, 9, 60.0) == []
        await conn.execute("UPDATE dagapp.dag_queue SET enqueued_at = now() - interval '2 minutes' WHERE tenant = 'b'")
        assert [message.tenant for message in await queue.take(conn, QUEUE, 9, 60.0)] == ["b", "b"]


async def test_a_message_stays_its_tenants(pool: Pool) -> None:
    """The tenant stays when a message is deferred, given back by a dead worker, or sent again from the dead letters."""
    async with pool.connection() as conn:
        await fill(conn, ("a", 0, 1), ("b", 0, 1))
        deliveries = (await queue.lease(conn, {QUEUE: 2}, "w")).deliveries
        await queue.defer(conn, [delivery for delivery in deliveries if delivery.tenant == "a"], 0)
        await queue.release(conn, ["w"])
        assert await tenants(conn) == [{"message_id": "a0:0", "tenant": "a"}, {"message_id": "b0:0", "tenant": "b"}]


@pytest.mark.parametrize("tenant", ["ddh", ""])
async def test_a_submission_that_is_sent_again_stays_its_tenants(pool: Pool, tenant: str) -> None:
    broker = PostgresBroker(pool, "test")
    message = JobQueueMessage(job_id="j", workflow_id="w", tenant=tenant)
    async with pool.connection() as conn:
        await broker.send(conn, "dag-jobs", [Message("j", message)])
        assert await tenants(conn) == [{"message_id": "j", "tenant": tenant}]
        await broker.dead_letter(await broker.receive("dag-jobs", JobQueueMessage, 1), "Unwanted", "for a test")
        await broker.redrive(conn, "dag-jobs", None, 10)
        assert await tenants(conn) == [{"message_id": "j", "tenant": tenant}]
