"""The queue on PostgreSQL: a send is part of the sender's transaction, a lease is a row's state."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from functools import cache
from operator import attrgetter
from typing import Any, LiteralString, Protocol

from psycopg.pq import TransactionStatus
from psycopg.rows import args_row

from geomill.domain.ids import canonical_json
from geomill.domain.jsonvalue import to_json
from geomill.queues.floors import Floors
from geomill.queues.turns import HOUSE, TenantLine, TenantTurns
from geomill.sql import queries
from geomill.store.pool import Connection

NO_FLOORS: Mapping[TenantLine, int] = {}
LEASE_SECONDS = 60.0
"""Workers renew a lease after a third of it. It is the safety net for when a dead process is not noticed."""


@dataclass(frozen=True, slots=True)
class Outgoing:
    queue_name: str
    message_id: str
    body: str
    priority: int = 0
    visible_at: datetime | None = None
    ttl_seconds: float | None = None
    tenant: str = HOUSE


@dataclass(frozen=True, slots=True)
class Received:
    """A message that was looked at, or taken. Taking deletes it, in the transaction of the receiver."""

    sequence: int
    message_id: str
    body: Any
    priority: int
    tenant: str
    delivery_count: int
    enqueued_at: datetime
    now: datetime


@dataclass(slots=True)
class Delivery:
    """A leased message. `lease_token` proves it. `body` is JSON text. The fields have the order of the columns."""

    sequence: int
    queue_name: str
    message_id: str
    body: str
    lease_token: int
    delivery_count: int
    started_at: datetime
    waited: float = 0.0
    tenant: str = HOUSE
    priority: int = 0

    @property
    def line(self) -> TenantLine:
        return TenantLine(self.queue_name, self.priority, self.tenant)


async def send(conn: Connection, messages: Sequence[Outgoing]) -> None:
    if messages:
        await conn.execute(
            queries("queue").send,
            {
                "queue_names": [message.queue_name for message in messages],
                "message_ids": [message.message_id for message in messages],
                "bodies": [message.body for message in messages],
                "priorities": [message.priority for message in messages],
                "tenants": [message.tenant for message in messages],
                "visible_at": [message.visible_at for message in messages],
                "ttl_seconds": [message.ttl_seconds for message in messages],
            },
        )


async def hand_in(conn: Connection, message: Outgoing, called: str) -> datetime:
    """Send one message, and wait for the disk only after the channel `called` was notified. Not in a transaction.

    That is safe: what others commit because of the message comes after it in the log, so no crash keeps their commit
    without the message. When this function returns, the message is on disk. It returns when the message
    was sent, by the clock of the database.
    """
    assert conn.autocommit, "the commit that does not wait for the disk must contain only this message"
    assert conn.pgconn.transaction_status == TransactionStatus.IDLE, "a transaction would commit without the disk"
    parameters = {
        "queue_name": message.queue_name,
        "message_id": message.message_id,
        "body": message.body,
        "priority": message.priority,
        "tenant": message.tenant,
        "called": called,
    }
    row = await (await conn.execute(queries("queue").hand_in, parameters)).fetchone()
    await conn.execute(queries("queue").flush)
    assert row is not None
    sent_at: datetime = row["sent_at"]
    return sent_at


async def lines(conn: Connection, queue_names: Sequence[str]) -> list[TenantLine]:
    """Return the lines in which a message waits."""
    cursor = await conn.execute(lines_statement(), {"queue_names": list(queue_names)})
    return [TenantLine(**row) for row in await cursor.fetchall()]


async def take(
    conn: Connection,
    queue_name: str,
    limit: int,
    older_than: float = 0.0,
    *,
    turns: TenantTurns | None = None,
    floors: Floors | None = None,
) -> list[Received]:
    """Take up to `limit` messages, from the tenants in turn. Messages that have waited for less than `older_than`
    seconds are left to others."""
    turns, floors = turns or TenantTurns(), floors or Floors()
    bounded, begun = floors.bounded(queue_name), time.perf_counter()
    received: list[Received] = []
    exhausted: set[TenantLine] = set()
    while len(received) < limit:
        floor_of = floors.lines([queue_name]) if bounded else dict.fromkeys(await lines(conn, [queue_name]), 0)
        waiting = [line for line in floor_of if line not in exhausted]
        if not waiting:
            break
        shares = turns.shares(waiting, limit - len(received), [message.tenant for message in received])
        chosen = _columns(shares, floor_of)
        cursor = await conn.execute(
            queries("queue").take, {"queue_name": queue_name, "older_than": older_than, **chosen}
        )
        batch = [Received(**row) for row in await cursor.fetchall()]
        received += batch
        floors.reached((queue_name, message.priority, message.tenant, message.sequence) for message in batch)
        counts = Counter((message.priority, message.tenant) for message in batch)
        exhausted |= {line for line, share in shares.items() if counts[line.priority, line.tenant] < share}
        if exhausted.issuperset(waiting):
            break
    if not bounded:
        floors.looked([queue_name], time.perf_counter() - begun, len(received))
    return received


def _columns(shares: Mapping[TenantLine, int], floors: Mapping[TenantLine, int] = NO_FLOORS) -> dict[str, list[Any]]:
    return {
        "priorities": [line.priority for line in shares],
        "tenants": [line.tenant for line in shares],
        "shares": list(shares.values()),
        "floors": [floors.get(line, 0) for line in shares],
    }


async def look(conn: Connection, queue_name: str, limit: int, floors: Floors | None = None) -> list[Received]:
    """Return the messages that `take` would take now. They stay in the queue."""
    begun = time.perf_counter()
    cursor = await conn.execute(queries("queue").look, {"queue_name": queue_name, "limit": limit})
    waiting = [Received(**row) for row in await cursor.fetchall()]
    if floors:
        floors.looked([queue_name], time.perf_counter() - begun, len(waiting))
        floors.reached((queue_name, message.priority, message.tenant, message.sequence - 1) for message in waiting)
    return waiting


async def postpone(conn: Connection, sequence: int, delay_seconds: float) -> None:
    """Let nobody receive this message for a while. It keeps its place in its line."""
    await conn.execute(queries("queue").postpone, {"sequence": sequence, "delay_seconds": delay_seconds})


@dataclass(frozen=True, slots=True)
class Leased:
    deliveries: list[Delivery]
    empty: set[str]
    """Queues that had fewer messages than requested."""


async def lease(
    conn: Connection,
    shares: Mapping[str, int],
    leased_by: str,
    lease_seconds: float = LEASE_SECONDS,
    *,
    limits: Mapping[str, int] | None = None,
    turns: TenantTurns | None = None,
    floors: Floors | None = None,
    relaxed: bool = False,
) -> Leased:
    """Lease as many messages as the shares of the queues add up to. If a queue has too few, the others give more, up to
    their limits. Tenants who wait in the same queue take turns.

    Queues whose looks are slow are read from their `floors` most of the time, and are not reported as empty then.

    With `relaxed`, the transaction does not wait for the disk. It must do nothing else.
    """
    turns, floors = turns or TenantTurns(), floors or Floors()
    bounded = {name for name in shares if floors.bounded(name)}
    lessee = Lessee(leased_by, lease_seconds, relaxed)
    deliveries: list[Delivery] = []
    empty: set[str] = set()
    exhausted: set[TenantLine] = set()
    total = sum(shares.values())
    requested = {name: share for name, share in shares.items() if share}
    while requested:
        leased, shared = await _lease_from_heads(conn, lessee, _without(requested, bounded), floors)
        turns.alone({delivery.queue_name: delivery.tenant for delivery in leased})
        floor_of = floors.lines(bounded & requested.keys()) if bounded else NO_FLOORS
        waiting = [line for line in (*shared, *floor_of) if line not in exhausted]
        if waiting:
            chosen = _in_turn(waiting, requested, turns, deliveries)
            in_turn = await lease_lines(conn, lessee, chosen, floor_of)
            turns.given({line.queue_name for line in chosen})
            exhausted |= _exhausted(chosen, in_turn)
            leased += in_turn
        deliveries += leased
        floors.reached((lease.queue_name, lease.priority, lease.tenant, lease.sequence) for lease in leased)
        counts = Counter(delivery.queue_name for delivery in leased)
        willing = {line.queue_name for line in waiting if line not in exhausted}
        empty |= {name for name, share in requested.items() if counts[name] < share and name not in willing}
        willing_queues = [name for name in shares if name not in empty]
        requested = _rest(total - len(deliveries), willing_queues, _room(limits, deliveries))
    deliveries.sort(key=attrgetter("sequence"))
    return Leased(deliveries, empty - bounded)


@dataclass(frozen=True, slots=True)
class Lessee:
    leased_by: str
    lease_seconds: float = LEASE_SECONDS
    relaxed: bool = False


async def lease_lines(
    conn: Connection, lessee: Lessee, chosen: Mapping[TenantLine, int], floors: Mapping[TenantLine, int] = NO_FLOORS
) -> list[Delivery]:
    """Lease from each line its share, or what it has from its floor on."""
    queue_names = [line.queue_name for line in chosen]
    parameters = {"queue_names": queue_names, **_columns(chosen, floors), **asdict(lessee)}
    cursor = await conn.cursor(row_factory=args_row(Delivery)).execute(lease_lines_statement(), parameters)
    return await cursor.fetchall()


def _without(requested: Mapping[str, int], bounded: Collection[str]) -> Mapping[str, int]:
    return {name: share for name, share in requested.items() if name not in bounded} if bounded else requested


async def _lease_from_heads(
    conn: Connection, lessee: Lessee, requested: Mapping[str, int], floors: Floors
) -> tuple[list[Delivery], list[TenantLine]]:
    """Look at queues whose looks are slow one by one, to measure each."""
    leased: list[Delivery] = []
    shared: list[TenantLine] = []
    dear = [name for name in requested if floors.dear(name)]
    for part in (_without(requested, dear), *({name: requested[name]} for name in dear)):
        if part:
            begun = time.perf_counter()
            deliveries, lines_of_shared = await _lease(conn, lessee, part)
            floors.looked(part, time.perf_counter() - begun, len(deliveries))
            leased += deliveries
            shared += lines_of_shared
    return leased, shared


async def _lease(
    conn: Connection, lessee: Lessee, requested: Mapping[str, int]
) -> tuple[list[Delivery], list[TenantLine]]:
    """Lease from queues with one line. Returns the deliveries, and the lines of the queues that have several."""
    parameters = {
        "queue_names": list(requested),
        "shares": list(requested.values()),
        "leased_by": lessee.leased_by,
        "lease_seconds": lessee.lease_seconds,
        "relaxed": lessee.relaxed,
    }
    cursor = await conn.cursor(row_factory=args_row(Delivery)).execute(lease_statement(), parameters)
    rows = await cursor.fetchall()
    if not rows or rows[-1].sequence:
        return rows, []
    shared = [row.queue_name for row in rows if not row.sequence]
    return [row for row in rows if row.sequence], await lines(conn, shared)


@cache
def lines_statement() -> LiteralString:
    line, lines = queries("queue").line, queries("queue").lines
    return f"WITH RECURSIVE line AS ({line}) {lines}"


@cache
def lease_statement() -> LiteralString:
    relaxed, head = queries("queue").relaxed, queries("queue").head
    chosen, leased = queries("queue").alone, queries("queue").leased
    answer = queries("queue").leased_or_shared
    return (
        f"WITH relaxed AS MATERIALIZED ({relaxed}), head AS MATERIALIZED ({head}),"
        f" chosen AS ({chosen}), leased AS ({leased}) {answer}"
    )


@cache
def lease_lines_statement() -> LiteralString:
    relaxed, chosen, leased = queries("queue").relaxed, queries("queue").chosen, queries("queue").leased
    answer = queries("queue").leased_only
    return f"WITH relaxed AS MATERIALIZED ({relaxed}), chosen AS ({chosen}), leased AS ({leased}) {answer}"


def _in_turn(
    waiting: Sequence[TenantLine], requested: Mapping[str, int], turns: TenantTurns, leased: Sequence[Delivery]
) -> dict[TenantLine, int]:
    """Return the shares for the lines of each queue that has several."""
    chosen: dict[TenantLine, int] = {}
    for name in {line.queue_name for line in waiting}:
        received = [delivery.tenant for delivery in leased if delivery.queue_name == name]
        chosen |= turns.shares([line for line in waiting if line.queue_name == name], requested[name], received)
    return chosen


def _exhausted(chosen: Mapping[TenantLine, int], leased: Sequence[Delivery]) -> set[TenantLine]:
    """Return the lines that gave less than their share: they are at their end, or others are taking from them."""
    counts = Counter(delivery.line for delivery in leased)
    return {line for line, share in chosen.items() if counts[line] < share}


def _room(limits: Mapping[str, int] | None, leased: Sequence[Delivery]) -> dict[str, int]:
    counts = Counter(delivery.queue_name for delivery in leased)
    return {name: limit - counts[name] for name, limit in (limits or {}).items()}


def _rest(left: int, willing: Sequence[str], room: Mapping[str, int]) -> dict[str, int]:
    """Divide the messages that are still missing among the queues that may have more."""
    able = [name for name in willing if room.get(name, left) > 0]
    if not left or not able:
        return {}
    each, more = divmod(left, len(able))
    rest = {name: min(each + (place < more), room.get(name, left)) for place, name in enumerate(able)}
    return {name: share for name, share in rest.items() if share}


async def renew(conn: Connection, leases: Sequence[Delivery], lease_seconds: float = LEASE_SECONDS) -> set[int]:
    """Extend the leases. Returns the sequences of those that were still valid."""
    cursor = await conn.execute(queries("queue").renew, {**_leases(leases), "lease_seconds": lease_seconds})
    return {row["sequence"] for row in await cursor.fetchall()}


class Held(Protocol):
    """The proof of a lease: the sequence of the message and the token of the delivery."""

    @property
    def sequence(self) -> int: ...
    @property
    def lease_token(self) -> int: ...


async def take_back(
    conn: Connection, leased_by: str, lost: Sequence[Held], lease_seconds: float = LEASE_SECONDS
) -> set[int]:
    """Lease these messages again unless somebody else has. Returns the sequences of those that were leased."""
    parameters = {**_leases(lost), "leased_by": leased_by, "lease_seconds": lease_seconds}
    cursor = await conn.execute(queries("queue").take_back, parameters)
    return {row["sequence"] for row in await cursor.fetchall()}


async def lost(conn: Connection, leases: Sequence[Held]) -> set[int]:
    """Return the sequences of the leases that are no longer valid."""
    cursor = await conn.execute(queries("queue").lost, _leases(leases))
    return {row["sequence"] for row in await cursor.fetchall()}


async def refuse(conn: Connection, refused: Sequence[tuple[Delivery, str]]) -> None:
    """Dead-letter leased messages that cannot be understood, each with the reason."""
    if refused:
        descriptions = [description for _, description in refused]
        parameters = {**_leases([delivery for delivery, _ in refused]), "descriptions": descriptions}
        await conn.execute(queries("queue").refuse, parameters)


async def defer(conn: Connection, leases: Sequence[Delivery], delay_seconds: float) -> None:
    """Put leased messages back for a while. They count as delivered, and no loss is charged."""
    await conn.execute(queries("queue").defer, {**_leases(leases), "delay_seconds": delay_seconds})


@dataclass(frozen=True, slots=True)
class Precedent:
    """The facts about earlier attempts at a leased task."""

    sequence: int
    suspect: bool
    """Whether the task may take down its worker. Then it does not count as started before it is put on trial."""
    handler_version: str | None
    """The code version that ran in the previous attempt, if that has a result."""


async def precedents(conn: Connection, leased: Sequence[tuple[Delivery, str]]) -> dict[int, Precedent]:
    """Return the precedents of leased tasks, by sequence. Each task comes with the task id of the attempt before."""
    if not leased:
        return {}
    parameters = {**_leases([delivery for delivery, _ in leased]), "before": [before for _, before in leased]}
    cursor = await conn.execute(queries("queue").precedents, parameters)
    return {row["sequence"]: Precedent(**row) for row in await cursor.fetchall()}


async def put_on_trial(conn: Connection, lease: Held) -> bool:
    """Start a suspected task. Returns whether its lease was still valid."""
    parameters = {"sequence": lease.sequence, "lease_token": lease.lease_token}
    return await (await conn.execute(queries("queue").put_on_trial, parameters)).fetchone() is not None


async def acquit(conn: Connection, leases: Sequence[Held]) -> None:
    await conn.execute(queries("queue").acquit, _leases(leases))


async def tried(conn: Connection, dead: Sequence[str], *, lapsed: bool = True) -> list[str]:
    """Return the dead consumers that had a task on trial: only that task is charged with the loss."""
    cursor = await conn.execute(queries("queue").tried, {"dead": list(dead), "lapsed": lapsed})
    return [row["leased_by"] for row in await cursor.fetchall()]


async def forgive(conn: Connection, sequences: Collection[int]) -> None:
    """Charge these messages one loss less, because their worker came back."""
    if sequences:
        await conn.execute(queries("queue").forgive, {"sequences": list(sequences)})


def _leases(leases: Sequence[Held]) -> dict[str, list[int]]:
    return {
        "sequences": [lease.sequence for lease in leases],
        "tokens": [lease.lease_token for lease in leases],
    }


async def report_progress(conn: Connection, reports: Sequence[tuple[int, int, float, str]]) -> None:
    """Store the progress of running tasks: (sequence, lease token, fraction, message)."""
    if reports:
        sequences, tokens, progress, messages = (list(column) for column in zip(*reports, strict=True))
        parameters = {"sequences": sequences, "tokens": tokens, "progress": progress, "messages": messages}
        await conn.execute(queries("queue").report_progress, parameters)


async def withdraw(conn: Connection, messages: Sequence[tuple[str, str]]) -> int:
    """Delete messages by (queue, id), because nobody needs them any more. Returns how many were still there."""
    if not messages:
        return 0
    parameters = {
        "queue_names": [queue for queue, _ in messages],
        "message_ids": [message_id for _, message_id in messages],
    }
    cursor = await conn.execute(queries("queue").withdraw, parameters)
    return cursor.rowcount


async def dead_letter(conn: Connection, queue_name: str, message: Received, reason: str, description: str) -> None:
    await conn.execute(
        queries("queue").dead_letter,
        {
            "queue_name": queue_name,
            "message_id": message.message_id,
            "body": canonical_json(message.body),
            "priority": message.priority,
            "reason": reason,
            "description": description,
            "delivery_count": message.delivery_count,
            "enqueued_at": message.enqueued_at,
        },
    )


async def refuse_foreign(
    conn: Connection, queue_name: str, message_id: str, text: str, reason: str, description: str
) -> None:
    """Keep a message from outside that was refused, as text. If it is sent again from there, it is refused again:
    nobody has checked it."""
    parameters = {
        "queue_name": queue_name,
        "message_id": message_id,
        "body": to_json({"refused": text}),
        "reason": reason,
        "description": description,
    }
    await conn.execute(queries("queue").dead_letter_once, parameters)


async def release(
    conn: Connection, dead: Sequence[str], *, lapsed: bool = True, tried: Sequence[str] = ()
) -> list[str]:
    """End the leases of dead consumers and, with `lapsed`, those that were not renewed in time. Returns the queues
    of their messages."""
    parameters = {"dead": list(dead), "lapsed": lapsed, "tried": list(tried)}
    cursor = await conn.execute(queries("queue").release, parameters)
    return [row["queue_name"] for row in await cursor.fetchall()]


async def disown(conn: Connection, leased_by: str, sequences: Collection[int]) -> list[str]:
    """End all leases of this consumer but those of `sequences`. Returns the queues of their messages."""
    cursor = await conn.execute(queries("queue").disown, {"leased_by": leased_by, "known": list(sequences)})
    return [row["queue_name"] for row in await cursor.fetchall()]


async def give_up(
    conn: Connection, dead: Sequence[str], max_deliveries: int, *, lapsed: bool = True, tried: Sequence[str] = ()
) -> list[str]:
    """Fail tasks that waited too long or took down their workers. Returns the owners to notify."""
    parameters = {"dead": list(dead), "max_deliveries": max_deliveries, "lapsed": lapsed, "tried": list(tried)}
    cursor = await conn.execute(queries("queue").give_up, parameters)
    return [row["owner_id"] for row in await cursor.fetchall()]


async def bury(conn: Connection) -> None:
    """Dead-letter submissions whose time to live is over."""
    await conn.execute(queries("queue").bury)


# Only the broker needs these.


async def expire(conn: Connection, queue_name: str) -> None:
    """Dead-letter the messages that nobody received within their time to live."""
    await conn.execute(queries("queue").expire, {"queue_name": queue_name})


async def lapse(conn: Connection, queue_name: str) -> None:
    """End the leases that were not renewed in time. Their messages wait again."""
    await conn.execute(queries("queue").lapse, {"queue_name": queue_name})


async def complete(conn: Connection, leases: Sequence[Delivery]) -> set[int]:
    cursor = await conn.execute(queries("queue").complete, _leases(leases))
    return {row["sequence"] for row in await cursor.fetchall()}


async def abandon(conn: Connection, leases: Sequence[Delivery], delay_seconds: float) -> set[int]:
    cursor = await conn.execute(queries("queue").abandon, {**_leases(leases), "delay_seconds": delay_seconds})
    return {row["sequence"] for row in await cursor.fetchall()}


async def bury_leased(conn: Connection, leases: Sequence[Delivery], reason: str, description: str) -> set[int]:
    parameters = {**_leases(leases), "reason": reason, "description": description}
    cursor = await conn.execute(queries("queue").bury_leased, parameters)
    return {row["sequence"] for row in await cursor.fetchall()}


async def forget_refused(conn: Connection, job_ids: Sequence[str]) -> None:
    """Delete the records of submissions that were refused at the door, because they are sent again."""
    if job_ids:
        await conn.execute(queries("queue").forget_refused, {"job_ids": list(job_ids)})
