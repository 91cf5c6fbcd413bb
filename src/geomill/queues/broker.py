"""What geomill asks of a message broker, in words that PostgreSQL and a service on the network can both keep.

    send ─► waiting ─► receive ─► leased ─► complete                     gone
               ▲                    ├─────► abandon, or the lease ends    waiting again, maybe later
               │                    └─────► dead_letter                   kept with its reason
               └── redrive ──────────────────────────────────────────────┘

Delivery is at least once. A lease is proved by its receipt, which is new at each delivery, so whoever lost a lease
cannot settle the message that somebody else has by now. Each settling call answers with the receipts that still held.

A send is part of the sender's transaction: `Transaction` is whatever the broker needs for that. On PostgreSQL it is
the connection whose transaction is open. A broker on the network writes to an outbox through it, and a relay sends
after the commit; receiving and settling never need the sender's database, so they take none.

Messages are Pydantic models, sent as JSON. One that does not fit the model it is received as is dead-lettered with the
reason `MalformedMessage` and not handed out. A message sent twice with one id is stored once, as long as it is there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Generic, Protocol, TypeVar

from pydantic import BaseModel

MALFORMED = "MalformedMessage"
TOO_MANY_DELIVERIES = "MaxDeliveryCountExceeded"
EXPIRED = "TTLExpired"

LEASE_SECONDS = 60.0
MAX_DELIVERIES = 10

Body = TypeVar("Body", bound=BaseModel)
Transaction_contra = TypeVar("Transaction_contra", contravariant=True)


@dataclass(frozen=True, slots=True)
class Message:
    """To be sent. A higher priority, of 0 to 10, is received sooner; nobody sees it before `visible_at`."""

    message_id: str
    body: BaseModel
    priority: int = 0
    visible_at: datetime | None = None
    ttl_seconds: float | None = None


@dataclass(frozen=True, slots=True)
class Delivered(Generic[Body]):
    """Leased to us. `receipt` proves it, and means nothing else."""

    queue_name: str
    message_id: str
    body: Body
    delivery_count: int
    receipt: str


@dataclass(frozen=True, slots=True)
class Waiting:
    """Seen, not received."""

    message_id: str
    body: Any
    priority: int
    delivery_count: int
    enqueued_at: datetime
    visible_at: datetime
    expires_at: datetime | None


@dataclass(frozen=True, slots=True)
class Dead:
    queue_name: str
    message_id: str
    body: Any
    reason: str
    description: str
    delivery_count: int
    enqueued_at: datetime
    dead_lettered_at: datetime


@dataclass(frozen=True, slots=True)
class Depth:
    """`waiting` may be received now, `scheduled` later."""

    waiting: int = 0
    scheduled: int = 0
    leased: int = 0
    dead: int = 0
    oldest: datetime | None = None
    oldest_seconds: float | None = None


class Broker(Protocol[Transaction_contra]):
    """One connection to one broker. Any number of processes use it at once."""

    async def send(self, transaction: Transaction_contra, queue_name: str, messages: Sequence[Message]) -> None:
        """All of them when the transaction commits, none when it does not."""

    async def receive(
        self, queue_name: str, model: type[Body], limit: int, lease_seconds: float = LEASE_SECONDS
    ) -> list[Delivered[Body]]:
        """What waits, at once: an empty list when nothing does."""

    async def renew(self, held: Sequence[Delivered[Any]], lease_seconds: float = LEASE_SECONDS) -> set[str]:
        """Counted from now."""

    async def complete(self, held: Sequence[Delivered[Any]]) -> set[str]: ...

    async def abandon(self, held: Sequence[Delivered[Any]], delay_seconds: float = 0.0) -> set[str]:
        """Give back. It counts: after the last delivery allowed, the message is dead-lettered instead of delivered."""

    async def dead_letter(self, held: Sequence[Delivered[Any]], reason: str, description: str) -> set[str]: ...

    async def depth(self, queue_name: str) -> Depth: ...

    async def peek(self, queue_name: str, limit: int) -> list[Waiting]:
        """Those that would be received next, then those that are scheduled. Changes nothing."""

    async def peek_dead_letters(self, queue_name: str | None, limit: int) -> list[Dead]:
        """The latest first, of all queues when none is named."""

    async def redrive(
        self, transaction: Transaction_contra, queue_name: str, message_ids: Sequence[str] | None, limit: int
    ) -> list[Dead]:
        """Send dead letters again, as new messages without a time to live. Returns those that were sent.

        All of the queue, up to the limit, when no ids are given. One whose id waits on the queue again stays dead.
        """
