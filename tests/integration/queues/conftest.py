"""The brokers that must keep the promises of `queues/broker.py`. A new one is added to `BROKERS` and nothing else."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import pytest

from geomill.domain.engine.message import JobQueueMessage
from geomill.queues.broker import Broker, Message
from geomill.queues.postgres_broker import PostgresBroker
from geomill.store.pool import Pool

QUEUE = "dag-jobs"
MAX_DELIVERIES = 3


@dataclass(frozen=True)
class BrokerBench:
    """A broker as two processes see it, and what a test needs beside the protocol."""

    broker: Broker[Any]
    other: Broker[Any]
    transaction: Callable[[], Any]
    corrupt: Callable[[str], Awaitable[None]]
    """Put something on the queue that is no JobQueueMessage."""
    pass_time: Callable[[float], Awaitable[None]]
    """Let leases and times to live grow older by so many seconds."""

    async def send(self, *messages: Message, queue: str = QUEUE) -> None:
        async with self.transaction() as transaction:
            await self.broker.send(transaction, queue, messages)


async def _postgres(pool: Pool) -> BrokerBench:
    @asynccontextmanager
    async def transaction() -> AsyncIterator[Any]:
        async with pool.connection() as conn, conn.transaction():
            yield conn

    async def execute(query: str, *values: object) -> None:
        async with pool.connection() as conn:
            await conn.execute(query, values)

    async def corrupt(message_id: str) -> None:
        insert = "INSERT INTO dagapp.dag_queue (queue_name, message_id, body) VALUES (%s, %s, '[1]')"
        await execute(insert, QUEUE, message_id)

    async def pass_time(seconds: float) -> None:
        moved = ", ".join(f"{name} = {name} - past" for name in ("visible_at", "expires_at", "leased_until"))
        await execute(f"UPDATE dagapp.dag_queue SET {moved} FROM make_interval(secs => %s) AS past", seconds)

    brokers = [PostgresBroker(pool, consumer, max_deliveries=MAX_DELIVERIES) for consumer in ("one", "other")]
    return BrokerBench(*brokers, transaction=transaction, corrupt=corrupt, pass_time=pass_time)


BROKERS = {"postgres": _postgres}


@pytest.fixture(params=BROKERS)
async def bench(request: pytest.FixtureRequest, pool: Pool) -> BrokerBench:
    return await BROKERS[request.param](pool)


def job(job_id: str, **fields: Any) -> Message:
    return Message(job_id, JobQueueMessage(job_id=job_id, workflow_id="hello_world"), **fields)
