"""The message broker that geomill needs, as a protocol.

    send ─► waiting ─► receive ─► leased ─► complete                     gone
               ▲                    ├─────► abandon, or the lease ends    waiting again, maybe later
               │                    └─────► dead_letter                   kept with its reason
               └── redrive ──────────────────────────────────────────────┘

Delivery is at least once. A receipt proves a lease and is new at each delivery, so a consumer that lost its lease
cannot settle the message that another consumer has by now. Each settling call returns the receipts whose leases were
valid.

A send is part of the sender's transaction, and `Transaction` is the type that the broker needs for that. On PostgreSQL
it is the connection whose transaction is open. Receiving and settling never need the sender's database, so they take
none. Azure Service Bus is no broker in this sense: it only says when to receive (queues/servicebus).

Messages are Pydantic models, sent as JSON. A message that is not valid for the receiver's model is dead-lettered with
the reason `MalformedMessage` and not delivered. A second message with the id of one that still waits is not stored.
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
    """A message to send. A higher priority (0 to 10) is received sooner. Nobody receives it before `visible_at`."""

    message_id: str
    body: BaseModel
    priority: int = 0
    visible_at: datetime | None = None
    ttl_seconds: float | None = None


@dataclass(frozen=True, slots=True)
class Delivered(Generic[Body]):
    """A message that is leased to this consumer. `receipt` proves the lease and has no other meaning."""

    queue_name: str
    message_id: str
    body: Body
    delivery_count: int
    receipt: str


@dataclass(frozen=True, slots=True)
class Waiting:
    """A message that was looked at and stays in its queue."""

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
    """The number of messages of a queue: `waiting` can be received now, `scheduled` later."""

    waiting: int = 0
    scheduled: int = 0
    leased: int = 0
    dead: int = 0
    oldest: datetime | None = None
    oldest_seconds: float | None = None


class Broker(Protocol[Transaction_contra]):
    """A connection to a broker, which any number of processes use at the same time."""

    async def send(self, transaction: Transaction_contra, queue_name: str, messages: Sequence[Message]) -> None:
        """Send all messages when the transaction commits, and none if it does not."""

    async def receive(
        self, queue_name: str, model: type[Body], limit: int, lease_seconds: float = LEASE_SECONDS
    ) -> list[Delivered[Body]]:
        """Lease waiting messages. Returns at once, with an empty list if no message waits."""

    async def renew(self, leased: Sequence[Delivered[Any]], lease_seconds: float = LEASE_SECONDS) -> set[str]:
        """Extend the leases to `lease_seconds` from now."""

    async def complete(self, leased: Sequence[Delivered[Any]]) -> set[str]: ...

    async def abandon(self, leased: Sequence[Delivered[Any]], delay_seconds: float = 0.0) -> set[str]:
        """Give messages back. The delivery counts: after the last one allowed, the message is dead-lettered."""

    async def dead_letter(self, leased: Sequence[Delivered[Any]], reason: str, description: str) -> set[str]: ...

    async def depth(self, queue_name: str) -> Depth: ...

    async def peek(self, queue_name: str, limit: int) -> list[Waiting]:
        """Return the messages that would be received next, then the scheduled ones. Changes nothing."""

    async def peek_dead_letters(self, queue_name: str | None, limit: int) -> list[Dead]:
        """Return dead letters, the latest first. Without a queue name, those of all queues."""

    async def redrive(
        self, transaction: Transaction_contra, queue_name: str, message_ids: Sequence[str] | None, limit: int
    ) -> list[Dead]:
        """Send dead letters again, as new messages without a time to live. Returns those that were sent.

        Without ids, all dead letters of the queue are sent, up to the limit. A dead letter whose id waits in the queue
        again stays dead.
        """
