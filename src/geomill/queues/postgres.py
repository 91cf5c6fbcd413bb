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
from geomill.queues.floors import Floors
from geomill.queues.turns import HOUSE, TenantLine, TenantTurns
from geomill.sql import queries
from geomill.store.pool import Connection

NO_FLOORS: Mapping[TenantLine, int] = {}
LEASE_SECONDS = 60.0
"""Renewed at a third of it; the safety net behind the liveness of the process that holds it."""


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
    """Looked at, or taken: then it is completed as well, and the receiver's transaction stands for both."""

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
    """Leased. `lease_token` proves it. `body` is JSON text. The fields stand in the order of the columns."""

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


async def hand_in(conn: Connection, message: Outgoing, called: str) -> None:
    """Send one message, and wait for the disk only after `called` has heard of it. Not in a transaction.

    Nothing hangs in the air meanwhile: what others commit because of the message is behind it in the log, so no crash
    keeps the one without the other. Who hands in knows that the message is there to stay when this returns.
    """
    assert conn.autocommit, "what does not wait for the disk must be nothing but this"
    assert conn.pgconn.transaction_status == TransactionStatus.IDLE, "a transaction would commit without the disk"
    parameters = {
        "queue_name": message.queue_name,
        "message_id": message.message_id,
        "body": message.body,
        "priority": message.priority,
        "tenant": message.tenant,
        "called": called,
    }
    await conn.execute(queries("queue").hand_in, parameters)
    await conn.execute(queries("queue").flush)


async def lines(conn: Connection, queue_names: Sequence[str]) -> list[TenantLine]:
    """The lines in which something waits."""
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
    """Up to `limit` messages, of the tenants in turn. Only messages that have waited for `older_than` seconds: the
    younger ones are left to others."""
    turns, floors = turns or TenantTurns(), floors or Floors()
    bounded, begun = floors.bounded(queue_name), time.perf_counter()
    received: list[Received] = []
    exhausted: set[TenantLine] = set()
    while len(received) < limit:
        known = floors.lines([queue_name]) if bounded else dict.fromkeys(await lines(conn, [queue_name]), 0)
        waiting = [line for line in known if line not in exhausted]
        if not waiting:
            break
        shares = turns.shares(waiting, limit - len(received), [message.tenant for message in received])
        chosen = _columns(shares, known)
        cursor = await conn.execute(
            queries("queue").take, {"queue_name": queue_name, "older_than": older_than, **chosen}
        )
        batch = [Received(**row) for row in await cursor.fetchall()]
        received += batch
        floors.reached((queue_name, message.priority, message.tenant, message.sequence) for message in batch)
        given = Counter((message.priority, message.tenant) for message in batch)
        exhausted |= {line for line, share in shares.items() if given[line.priority, line.tenant] < share}
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
    """What `take` would take now. It stays where it is."""
    begun = time.perf_counter()
    cursor = await conn.execute(queries("queue").look, {"queue_name": queue_name, "limit": limit})
    waiting = [Received(**row) for row in await cursor.fetchall()]
    if floors:
        floors.looked([queue_name], time.perf_counter() - begun, len(waiting))
        floors.reached((queue_name, message.priority, message.tenant, message.sequence - 1) for message in waiting)
    return waiting


async def postpone(conn: Connection, sequence: int, delay_seconds: float) -> None:
    """Nobody receives this message for a while. It keeps its place in its line."""
    await conn.execute(queries("queue").postpone, {"sequence": sequence, "delay_seconds": delay_seconds})


@dataclass(frozen=True, slots=True)
class Leased:
    deliveries: list[Delivery]
    empty: set[str]
    """Queues that had less than they were asked for."""


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
    """As many messages as the shares of the queues add up to. What one queue has not, the others give, up to their
    limits. Tenants who wait in the same queue take turns.

    Queues whose looks are dear are read from their `floors` most of the time, and are never said to be empty then.

    `relaxed`: the transaction does not wait for the disk. Only for one that does nothing else.
    """
    turns, floors = turns or TenantTurns(), floors or Floors()
    bounded = {name for name in shares if floors.bounded(name)}
    lessee = Lessee(leased_by, lease_seconds, relaxed)
    found: list[Delivery] = []
    empty: set[str] = set()
    exhausted: set[TenantLine] = set()
    wanted = sum(shares.values())
    asked = {name: share for name, share in shares.items() if share}
    while asked:
        leased, shared = await _lease_from_heads(conn, lessee, _without(asked, bounded), floors)
        turns.alone({delivery.queue_name: delivery.tenant for delivery in leased})
        known = floors.lines(bounded & asked.keys()) if bounded else NO_FLOORS
        waiting = [line for line in (*shared, *known) if line not in exhausted]
        if waiting:
            chosen = _in_turn(waiting, asked, turns, found)
            in_turn = await lease_lines(conn, lessee, chosen, known)
            turns.given({line.queue_name for line in chosen})
            exhausted |= _exhausted(chosen, in_turn)
            leased += in_turn
        found += leased
        floors.reached((one.queue_name, one.priority, one.tenant, one.sequence) for one in leased)
        given = Counter(delivery.queue_name for delivery in leased)
        willing = {line.queue_name for line in waiting if line not in exhausted}
        empty |= {name for name, share in asked.items() if given[name] < share and name not in willing}
        asked = _rest(wanted - len(found), [name for name in shares if name not in empty], _room(limits, found))
    found.sort(key=attrgetter("sequence"))
    return Leased(found, empty - bounded)


@dataclass(frozen=True, slots=True)
class Lessee:
    leased_by: str
    lease_seconds: float = LEASE_SECONDS
    relaxed: bool = False


async def lease_lines(
    conn: Connection, lessee: Lessee, chosen: Mapping[TenantLine, int], floors: Mapping[TenantLine, int] = NO_FLOORS
) -> list[Delivery]:
    """Of each line its share, if it has so many from its floor on."""
    queue_names = [line.queue_name for line in chosen]
    parameters = {"queue_names": queue_names, **_columns(chosen, floors), **asdict(lessee)}
    cursor = await conn.cursor(row_factory=args_row(Delivery)).execute(lease_lines_statement(), parameters)
    return await cursor.fetchall()


def _without(asked: Mapping[str, int], bounded: Collection[str]) -> Mapping[str, int]:
    return {name: share for name, share in asked.items() if name not in bounded} if bounded else asked


async def _lease_from_heads(
    conn: Connection, lessee: Lessee, asked: Mapping[str, int], floors: Floors
) -> tuple[list[Delivery], list[TenantLine]]:
    """Queues whose looks are dear are looked at one by one, to learn which it is."""
    leased: list[Delivery] = []
    shared: list[TenantLine] = []
    dear = [name for name in asked if floors.dear(name)]
    for part in (_without(asked, dear), *({name: asked[name]} for name in dear)):
        if part:
            begun = time.perf_counter()
            deliveries, lines_of_shared = await _lease(conn, lessee, part)
            floors.looked(part, time.perf_counter() - begun, len(deliveries))
            leased += deliveries
            shared += lines_of_shared
    return leased, shared


async def _lease(conn: Connection, lessee: Lessee, asked: Mapping[str, int]) -> tuple[list[Delivery], list[TenantLine]]:
    """What was leased, and the lines of the queues that have several: of those nothing was leased."""
    parameters = {
        "queue_names": list(asked),
        "shares": list(asked.values()),
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
    part = queries("queue")
    return f"WITH RECURSIVE line AS ({part.line}) {part.lines}"


@cache
def lease_statement() -> LiteralString:
    part = queries("queue")
    return (
        f"WITH relaxed AS MATERIALIZED ({part.relaxed}), head AS MATERIALIZED ({part.head}),"
        f" chosen AS ({part.alone}), leased AS ({part.leased}) {part.leased_or_shared}"
    )


@cache
def lease_lines_statement() -> LiteralString:
    part = queries("queue")
    return (
        f"WITH relaxed AS MATERIALIZED ({part.relaxed}), chosen AS ({part.chosen}), leased AS ({part.leased})"
        f" {part.leased_only}"
    )


def _in_turn(
    waiting: Sequence[TenantLine], asked: Mapping[str, int], turns: TenantTurns, found: Sequence[Delivery]
) -> dict[TenantLine, int]:
    """Shares for the lines of each queue that has several."""
    chosen: dict[TenantLine, int] = {}
    for name in {line.queue_name for line in waiting}:
        received = [delivery.tenant for delivery in found if delivery.queue_name == name]
        chosen |= turns.shares([line for line in waiting if line.queue_name == name], asked[name], received)
    return chosen


def _exhausted(chosen: Mapping[TenantLine, int], leased: Sequence[Delivery]) -> set[TenantLine]:
    """Lines that gave less than was asked for: they are at their end, or others are just taking from them."""
    given = Counter(delivery.line for delivery in leased)
    return {line for line, share in chosen.items() if given[line] < share}


def _room(limits: Mapping[str, int] | None, found: Sequence[Delivery]) -> dict[str, int]:
    given = Counter(delivery.queue_name for delivery in found)
    return {name: limit - given[name] for name, limit in (limits or {}).items()}


def _rest(left: int, willing: Sequence[str], room: Mapping[str, int]) -> dict[str, int]:
    """What is still wanted, divided among the queues that may have more."""
    able = [name for name in willing if room.get(name, left) > 0]
    if not left or not able:
        return {}
    each, more = divmod(left, len(able))
    rest = {name: min(each + (place < more), room.get(name, left)) for place, name in enumerate(able)}
    return {name: share for name, share in rest.items() if share}


async def renew(conn: Connection, held: Sequence[Delivery], lease_seconds: float = LEASE_SECONDS) -> set[int]:
    """The sequences that are still ours."""
    cursor = await conn.execute(queries("queue").renew, {**_leases(held), "lease_seconds": lease_seconds})
    return {row["sequence"] for row in await cursor.fetchall()}


class Held(Protocol):
    """What proves a lease."""

    @property
    def sequence(self) -> int: ...
    @property
    def lease_token(self) -> int: ...


async def take_back(
    conn: Connection, leased_by: str, lost: Sequence[Held], lease_seconds: float = LEASE_SECONDS
) -> set[int]:
    """The sequences that are ours again: nobody had leased them since."""
    parameters = {**_leases(lost), "leased_by": leased_by, "lease_seconds": lease_seconds}
    cursor = await conn.execute(queries("queue").take_back, parameters)
    return {row["sequence"] for row in await cursor.fetchall()}


async def lost(conn: Connection, held: Sequence[Held]) -> set[int]:
    """The sequences that are no longer ours."""
    cursor = await conn.execute(queries("queue").lost, _leases(held))
    return {row["sequence"] for row in await cursor.fetchall()}


async def refuse(conn: Connection, refused: Sequence[tuple[Delivery, str]]) -> None:
    """Dead-letter leased messages that cannot be understood, each with the reason."""
    if refused:
        descriptions = [description for _, description in refused]
        parameters = {**_leases([delivery for delivery, _ in refused]), "descriptions": descriptions}
        await conn.execute(queries("queue").refuse, parameters)


async def defer(conn: Connection, held: Sequence[Delivery], delay_seconds: float) -> None:
    """Put leased messages back for a while, as if they had not been delivered this time."""
    await conn.execute(queries("queue").defer, {**_leases(held), "delay_seconds": delay_seconds})


async def suspects(conn: Connection, leased: Sequence[tuple[Delivery, str]]) -> set[int]:
    """Those of the leased tasks that may take down their worker; each is given with the task id of the attempt before.
    They do not count as started before they are put on trial."""
    if not leased:
        return set()
    parameters = {**_leases([delivery for delivery, _ in leased]), "before": [before for _, before in leased]}
    cursor = await conn.execute(queries("queue").suspects, parameters)
    return {row["sequence"] for row in await cursor.fetchall()}


async def put_on_trial(conn: Connection, held: Held) -> bool:
    """Whether the lease still held. The task starts."""
    parameters = {"sequence": held.sequence, "lease_token": held.lease_token}
    return await (await conn.execute(queries("queue").put_on_trial, parameters)).fetchone() is not None


async def acquit(conn: Connection, held: Sequence[Held]) -> None:
    await conn.execute(queries("queue").acquit, _leases(held))


async def tried(conn: Connection, dead: Sequence[str], *, lapsed: bool = True) -> list[str]:
    """Those of the dead consumers who had a task on trial: it alone is charged."""
    cursor = await conn.execute(queries("queue").tried, {"dead": list(dead), "lapsed": lapsed})
    return [row["leased_by"] for row in await cursor.fetchall()]


async def forgive(conn: Connection, sequences: Collection[int]) -> None:
    """Charge these messages one loss less: their worker came back."""
    if sequences:
        await conn.execute(queries("queue").forgive, {"sequences": list(sequences)})


def _leases(held: Sequence[Held]) -> dict[str, list[int]]:
    return {
        "sequences": [delivery.sequence for delivery in held],
        "tokens": [delivery.lease_token for delivery in held],
    }


async def report_progress(conn: Connection, reports: Sequence[tuple[int, int, float, str]]) -> None:
    """(sequence, lease token, fraction, message) of running tasks."""
    if reports:
        sequences, tokens, progress, messages = (list(column) for column in zip(*reports, strict=True))
        parameters = {"sequences": sequences, "tokens": tokens, "progress": progress, "messages": messages}
        await conn.execute(queries("queue").report_progress, parameters)


async def withdraw(conn: Connection, messages: Sequence[tuple[str, str]]) -> int:
    """Delete messages by (queue, id): they are no longer wanted. Returns how many were still there."""
    if not messages:
        return 0
    parameters = {"queue_names": [queue for queue, _ in messages], "message_ids": [one for _, one in messages]}
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


async def release(
    conn: Connection, dead: Sequence[str], *, lapsed: bool = True, tried: Sequence[str] = ()
) -> list[str]:
    """Give back what dead consumers held and, with `lapsed`, what was not renewed in time. Returns the queues
    concerned."""
    parameters = {"dead": list(dead), "lapsed": lapsed, "tried": list(tried)}
    cursor = await conn.execute(queries("queue").release, parameters)
    return [row["queue_name"] for row in await cursor.fetchall()]


async def disown(conn: Connection, leased_by: str, known: Collection[int]) -> list[str]:
    """Give back the leases of this consumer that it does not know of. Returns the queues concerned."""
    cursor = await conn.execute(queries("queue").disown, {"leased_by": leased_by, "known": list(known)})
    return [row["queue_name"] for row in await cursor.fetchall()]


async def give_up(
    conn: Connection, dead: Sequence[str], max_deliveries: int, *, lapsed: bool = True, tried: Sequence[str] = ()
) -> list[str]:
    """Fail what waited too long or took down its workers. Returns the owners to tell."""
    parameters = {"dead": list(dead), "max_deliveries": max_deliveries, "lapsed": lapsed, "tried": list(tried)}
    cursor = await conn.execute(queries("queue").give_up, parameters)
    return [row["owner_id"] for row in await cursor.fetchall()]


async def bury(conn: Connection) -> None:
    """Dead-letter submissions whose time to live is over."""
    await conn.execute(queries("queue").bury)


# What only the broker's face needs


async def expire(conn: Connection, queue_name: str) -> None:
    """Dead-letter what nobody received within its time to live."""
    await conn.execute(queries("queue").expire, {"queue_name": queue_name})


async def lapse(conn: Connection, queue_name: str) -> None:
    """What was not renewed in time waits again."""
    await conn.execute(queries("queue").lapse, {"queue_name": queue_name})


async def complete(conn: Connection, held: Sequence[Delivery]) -> set[int]:
    cursor = await conn.execute(queries("queue").complete, _leases(held))
    return {row["sequence"] for row in await cursor.fetchall()}


async def abandon(conn: Connection, held: Sequence[Delivery], delay_seconds: float) -> set[int]:
    cursor = await conn.execute(queries("queue").abandon, {**_leases(held), "delay_seconds": delay_seconds})
    return {row["sequence"] for row in await cursor.fetchall()}


async def bury_leased(conn: Connection, held: Sequence[Delivery], reason: str, description: str) -> set[int]:
    parameters = {**_leases(held), "reason": reason, "description": description}
    cursor = await conn.execute(queries("queue").bury_leased, parameters)
    return {row["sequence"] for row in await cursor.fetchall()}


async def forget_refused(conn: Connection, job_ids: Sequence[str]) -> None:
    """Delete the records of submissions that were refused at the door: they are sent again."""
    if job_ids:
        await conn.execute(queries("queue").forget_refused, {"job_ids": list(job_ids)})
