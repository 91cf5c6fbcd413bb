"""Looks at queues and dead letters for operators, page by page, and discards dead letters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, LiteralString

from geomill.queues.broker import Depth
from geomill.queues.postgres_broker import overview
from geomill.sql import queries
from geomill.store.pool import Connection

PATIENCE_SECONDS = 2.0
"""How long one of these statements may take. A queue may have millions of messages."""
LONGEST_BODY = 4096
"""Bytes of a message's body beyond which a page leaves it out."""


@dataclass(frozen=True, slots=True)
class PeekedMessage:
    """A message that stays in its queue. `body` is None if it is too long for a page."""

    message_id: str
    body: Any
    body_bytes: int
    priority: int
    tenant: str
    delivery_count: int
    enqueued_at: datetime
    visible_at: datetime
    expires_at: datetime | None


@dataclass(frozen=True, slots=True)
class LetterRow:
    """A dead letter. `body` is None if it is too long for a page."""

    sequence: int
    queue_name: str
    message_id: str
    body: Any
    body_bytes: int
    reason: str
    description: str
    delivery_count: int
    enqueued_at: datetime
    dead_lettered_at: datetime


async def depths(conn: Connection, queue_name: str | None = None) -> dict[str, Depth]:
    """Return the depth of every queue that has messages or dead letters, or of the named queue only."""
    async with conn.transaction():
        await _limit_time(conn)
        return await overview(conn, queue_name)


async def peek(conn: Connection, queue_name: str, limit: int) -> list[PeekedMessage]:
    """Return the messages that would be received next, then the scheduled ones."""
    parameters = {"queue_name": queue_name, "limit": limit, "longest_body": LONGEST_BODY}
    return [PeekedMessage(**row) for row in await _rows(conn, queries("queue").peek_page, parameters)]


async def message(conn: Connection, queue_name: str, message_id: str) -> PeekedMessage | None:
    """Return one waiting or leased message with its whole body."""
    parameters = {"queue_name": queue_name, "message_id": message_id}
    return next((PeekedMessage(**row) for row in await _rows(conn, queries("queue").message, parameters)), None)


async def letters(
    conn: Connection, *, queue_name: str | None, reason: str | None, limit: int, before: int | None = None
) -> list[LetterRow]:
    """Return dead letters, the latest first. `before` is the number of the last one of the page before."""
    parameters = {
        "queue_name": queue_name,
        "reason": reason,
        "limit": limit,
        "before": before,
        "longest_body": LONGEST_BODY,
    }
    return [LetterRow(**row) for row in await _rows(conn, queries("queue").letters_page, parameters)]


async def letter(conn: Connection, message_id: str, queue_name: str | None) -> LetterRow | None:
    """Return the latest dead letter with this id, with its whole body."""
    parameters = {"message_id": message_id, "queue_name": queue_name}
    return next((LetterRow(**row) for row in await _rows(conn, queries("queue").letter, parameters)), None)


async def letter_queues(conn: Connection, message_ids: Sequence[str], queue_name: str | None) -> dict[str, set[str]]:
    """Return the queues that have dead letters with these ids, each with the ids."""
    parameters = {"message_ids": list(message_ids), "queue_name": queue_name}
    ids_by_queue: dict[str, set[str]] = {}
    for row in await _rows(conn, queries("queue").letter_queues, parameters):
        ids_by_queue.setdefault(row["queue_name"], set()).add(row["message_id"])
    return ids_by_queue


async def discard(
    conn: Connection,
    *,
    queue_name: str | None,
    message_ids: Sequence[str] | None,
    actor: str,
    reason: str,
    limit: int,
) -> list[str]:
    """Delete dead letters with these ids, or those of the queue, and record each in the audit. Returns their ids."""
    parameters = {
        "queue_name": queue_name,
        "message_ids": None if message_ids is None else list(message_ids),
        "actor": actor,
        "why": reason,
        "limit": limit,
    }
    cursor = await conn.execute(queries("queue").discard, parameters)
    return [row["message_id"] for row in await cursor.fetchall()]


async def _rows(conn: Connection, statement: LiteralString, parameters: dict[str, Any]) -> list[dict[str, Any]]:
    async with conn.transaction():
        await _limit_time(conn)
        return await (await conn.execute(statement, parameters)).fetchall()


async def _limit_time(conn: Connection) -> None:
    await conn.execute(queries("metrics").limit_time, {"milliseconds": int(PATIENCE_SECONDS * 1000)})
