"""The broker on PostgreSQL. It uses `dag_queue` and `dag_dead_letters` through the same statements as the engine.

The engine and the worker do not use it. For them a queue operation is one part of a larger statement or
transaction: a claim takes the message and creates the job, a worker's report deletes the message and keeps the result.
Two steps, as on any broker, would cost each task one more commit and need a recovery for a crash between them. So they
call the functions of `queues/postgres.py`. This class serves all other code, and shows what another broker must do.

Each receive also ends leases that were not renewed and dead-letters messages past their time to live, so a queue needs
no maintenance. Both limits leave out queues of tasks: the owner of the job must be told about a lost task, and the
orchestrators' duty `engine/maintenance/reclaim.py` does so.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Any

from pydantic import ValidationError

from geomill.domain.engine.message import TASK_QUEUES
from geomill.domain.jsonvalue import to_json
from geomill.queues import postgres as queue
from geomill.queues.broker import (
    LEASE_SECONDS,
    MAX_DELIVERIES,
    TOO_MANY_DELIVERIES,
    Body,
    Dead,
    Delivered,
    Depth,
    Message,
    Waiting,
)
from geomill.queues.postgres import Delivery, Outgoing
from geomill.queues.turns import HOUSE, TenantTurns
from geomill.sql import queries
from geomill.store.pool import Connection, Pool
from geomill.store.signals import notify, queue_channel


@dataclass(frozen=True, slots=True)
class BrokerLease(Delivered[Body]):
    """A delivered message with the row of the queue that its receipt stands for."""

    delivery: Delivery


@dataclass(frozen=True)
class PostgresBroker:
    pool: Pool
    consumer: str
    task_queues: Collection[str] = TASK_QUEUES
    max_deliveries: int = MAX_DELIVERIES
    turns: TenantTurns = field(default_factory=TenantTurns)

    async def send(self, transaction: Connection, queue_name: str, messages: Sequence[Message]) -> None:
        await queue.send(transaction, [_outgoing(queue_name, message) for message in messages])

    async def receive(
        self, queue_name: str, model: type[Body], limit: int, lease_seconds: float = LEASE_SECONDS
    ) -> list[Delivered[Body]]:
        async with self.pool.connection() as conn, conn.transaction():
            if queue_name not in self.task_queues:
                await queue.expire(conn, queue_name)
            await queue.lapse(conn, queue_name)
            while leased := await self._lease(conn, queue_name, limit, lease_seconds):
                fresh = await self._without_worn_out(conn, queue_name, leased)
                if good := await _understood(conn, fresh, model):
                    return good
        return []

    async def _lease(self, conn: Connection, queue_name: str, limit: int, lease_seconds: float) -> list[Delivery]:
        leased = await queue.lease(conn, {queue_name: limit}, self.consumer, lease_seconds, turns=self.turns)
        return leased.deliveries

    async def _without_worn_out(self, conn: Connection, queue_name: str, leased: list[Delivery]) -> list[Delivery]:
        if queue_name in self.task_queues:
            return leased
        worn_out = [delivery for delivery in leased if delivery.delivery_count > self.max_deliveries]
        if worn_out:
            description = f"it was delivered {self.max_deliveries} times and never completed"
            await queue.bury_leased(conn, worn_out, TOO_MANY_DELIVERIES, description)
        return [delivery for delivery in leased if delivery.delivery_count <= self.max_deliveries]

    async def renew(self, leased: Sequence[Delivered[Any]], lease_seconds: float = LEASE_SECONDS) -> set[str]:
        async with self.pool.connection() as conn:
            return _receipts(leased, await queue.renew(conn, _deliveries(leased), lease_seconds))

    async def complete(self, leased: Sequence[Delivered[Any]]) -> set[str]:
        async with self.pool.connection() as conn:
            return _receipts(leased, await queue.complete(conn, _deliveries(leased)))

    async def abandon(self, leased: Sequence[Delivered[Any]], delay_seconds: float = 0.0) -> set[str]:
        async with self.pool.connection() as conn:
            done = await queue.abandon(conn, _deliveries(leased), delay_seconds)
            if not delay_seconds:
                await notify(conn, {queue_channel(delivered.queue_name) for delivered in leased})
            return _receipts(leased, done)

    async def dead_letter(self, leased: Sequence[Delivered[Any]], reason: str, description: str) -> set[str]:
        async with self.pool.connection() as conn:
            return _receipts(leased, await queue.bury_leased(conn, _deliveries(leased), reason, description))

    async def depth(self, queue_name: str) -> Depth:
        async with self.pool.connection() as conn:
            return (await overview(conn, queue_name)).get(queue_name, Depth())

    async def peek(self, queue_name: str, limit: int) -> list[Waiting]:
        async with self.pool.connection() as conn:
            cursor = await conn.execute(queries("queue").peek, {"queue_name": queue_name, "limit": limit})
            return [Waiting(**row) for row in await cursor.fetchall()]

    async def peek_dead_letters(self, queue_name: str | None, limit: int) -> list[Dead]:
        async with self.pool.connection() as conn:
            cursor = await conn.execute(queries("queue").dead_letters, {"queue_name": queue_name, "limit": limit})
            return [Dead(**row) for row in await cursor.fetchall()]

    async def redrive(
        self, transaction: Connection, queue_name: str, message_ids: Sequence[str] | None, limit: int
    ) -> list[Dead]:
        ids = None if message_ids is None else list(message_ids)
        parameters = {"queue_name": queue_name, "message_ids": ids, "limit": limit}
        cursor = await transaction.execute(queries("queue").redrive, parameters)
        return [Dead(**row) for row in await cursor.fetchall()]


async def overview(conn: Connection, queue_name: str | None = None) -> dict[str, Depth]:
    """Return the depth of every queue that has messages or dead letters, or of the named queue only."""
    cursor = await conn.execute(queries("queue").overview, {"queue_name": queue_name})
    return {row.pop("queue_name"): Depth(**row) for row in await cursor.fetchall()}


async def _understood(conn: Connection, leased: Sequence[Delivery], model: type[Body]) -> list[Delivered[Body]]:
    good: list[Delivered[Body]] = []
    refused: list[tuple[Delivery, str]] = []
    for delivery in leased:
        try:
            body = model.model_validate(json.loads(delivery.body))
        except ValidationError as error:
            refused.append((delivery, _first_fault(error)))
        else:
            receipt = f"{delivery.sequence}:{delivery.lease_token}"
            name, count = delivery.queue_name, delivery.delivery_count
            good.append(BrokerLease(name, delivery.message_id, body, count, receipt, delivery))
    await queue.refuse(conn, refused)
    return good


def _first_fault(error: ValidationError) -> str:
    first = error.errors(include_url=False)[0]
    place = ".".join(map(str, first["loc"]))
    return f"{place}: {first['msg']}" if place else str(first["msg"])


def _outgoing(queue_name: str, message: Message) -> Outgoing:
    return Outgoing(
        queue_name,
        message.message_id,
        to_json(message.body.model_dump(mode="json")),
        message.priority,
        message.visible_at,
        message.ttl_seconds,
        getattr(message.body, "tenant", HOUSE),
    )


def _deliveries(leased: Sequence[Delivered[Any]]) -> list[Delivery]:
    return [delivered.delivery for delivered in leased if isinstance(delivered, BrokerLease)]


def _receipts(leased: Sequence[Delivered[Any]], done: set[int]) -> set[str]:
    leases = [delivered for delivered in leased if isinstance(delivered, BrokerLease)]
    return {lease.receipt for lease in leases if lease.delivery.sequence in done}
