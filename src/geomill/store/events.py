"""The history of jobs in the database."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from geomill.domain.engine.event import EventStatus, EventType, JobEvent
from geomill.domain.ids import SINGLE
from geomill.sql import queries
from geomill.store.pool import Connection
from geomill.store.recordset import recordset


@dataclass(slots=True)
class EventWrite:
    job_id: str
    type: EventType
    status: EventStatus = EventStatus.INFO
    node_id: str | None = None
    item_index: int = SINGLE
    data: Mapping[str, Any] | None = None


async def insert(conn: Connection, writes: Sequence[EventWrite]) -> None:
    if writes:
        fence, noted = queries("rounds").open_fence, queries("rounds").noted
        await conn.execute(f"WITH fence AS ({fence}) {noted}", {"noted": recordset(writes)})


async def of_job(conn: Connection, job_id: str, *, after: int = 0, limit: int = 1000) -> list[JobEvent]:
    cursor = await conn.execute(queries("events").of_job, {"job_id": job_id, "after": after, "limit": limit})
    return [JobEvent.from_row(row) for row in await cursor.fetchall()]


async def latest(conn: Connection, job_id: str) -> int:
    """Return the number of the job's newest event; 0 if there is none."""
    row = await (await conn.execute(queries("events").latest, {"job_id": job_id})).fetchone()
    return int(row["latest"]) if row else 0


@dataclass(frozen=True, slots=True)
class EventMark:
    """That something has happened to a job."""

    event_id: int
    job_id: str
    created_at: datetime


async def newest(conn: Connection) -> int:
    """Return the number of the newest event of all jobs; 0 if there is none."""
    row = await (await conn.execute(queries("events").newest)).fetchone()
    return int(row["newest"]) if row else 0


async def after(conn: Connection, event_id: int, *, limit: int) -> list[EventMark]:
    cursor = await conn.execute(queries("events").after, {"after": event_id, "limit": limit})
    return [EventMark(**row) for row in await cursor.fetchall()]
