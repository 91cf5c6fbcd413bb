"""The broker on PostgreSQL: `dag_queue` and `dag_dead_letters`, through the same statements as everybody else.

The engine and the worker do not come through here. There a queue operation is one part of a larger statement or
transaction: a claim takes the message and creates the job, a worker's report deletes the message and keeps the result.
Two steps, as on any broker, would cost each task a commit and each crash a case. They call the functions of
`queues/postgres.py` themselves; this is for everything else, and the shape for a broker without such transactions.

Leases that were not renewed and messages past their time to live are dealt with at each receive, so that a queue needs
no janitor. Queues of tasks are left out of both limits: there the job's owner has to be told, and the orchestrators'
duty `engine/maintenance/reclaim.py` does so.
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
    """With the row behind the receipt."""

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

    async def renew(self, held: Sequence[Delivered[Any]], lease_seconds: float = LEASE_SECONDS) -> set[str]:
        async with self.pool.connection() as conn:
            return _receipts(held, await queue.renew(conn, _deliveries(held), lease_seconds))

    async def complete(self, held: Sequence[Delivered[Any]]) -> set[str]:
        async with self.pool.connection() as conn:
            return _receipts(held, await queue.complete(conn, _deliveries(held)))

    async def abandon(self, held: Sequence[Delivered[Any]], delay_seconds: float = 0.0) -> set[str]:
        async with self.pool.connection() as conn:
            done = await queue.abandon(conn, _deliveries(held), delay_seconds)
            if not delay_seconds:
                await notify(conn, {queue_channel(one.queue_name) for one in held})
            return _receipts(held, done)

    async def dead_letter(self, held: Sequence[Delivered[Any]], reason: str, description: str) -> set[str]:
        async with self.pool.connection() as conn:
            return _receipts(held, await queue.bury_leased(conn, _deliveries(held), reason, description))

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
    """Every queue that has something, or the one."""
    cursor = await conn.execute(queries("queue").overview, {"queue_name": queue_name})
    return {row.pop("queue_name"): Depth(**row) for row in await cursor.fetchall()}


async def _understood(conn: Connection, leased: Sequence[Delivery], model: type[Body]) -> list[Delivered[Body]]:
    good: list[Delivered[Body]] = []
    refused: list[tuple[Delivery, str]] = []
    for one in leased:
        try:
            body = model.model_validate(json.loads(one.body))
        except ValidationError as error:
            refused.append((one, _first_fault(error)))
        else:
            receipt = f"{one.sequence}:{one.lease_token}"
            good.append(BrokerLease(one.queue_name, one.message_id, body, one.delivery_count, receipt, one))
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


def _deliveries(held: Sequence[Delivered[Any]]) -> list[Delivery]:
    return [one.delivery for one in held if isinstance(one, BrokerLease)]


def _receipts(held: Sequence[Delivered[Any]], done: set[int]) -> set[str]:
    return {one.receipt for one in held if isinstance(one, BrokerLease) and one.delivery.sequence in done}
