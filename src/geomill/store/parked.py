"""Parked jobs in the database."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from geomill.sql import queries
from geomill.store.pool import Connection


@dataclass(frozen=True, slots=True)
class ParkedRow:
    job_id: str
    workflow_id: str
    status: str
    asset_id: str | None
    submitted_by: str | None
    created_at: datetime
    parked_at: datetime
    parked_reason: str | None


async def page(conn: Connection, *, limit: int, after: tuple[datetime, str] | None = None) -> list[ParkedRow]:
    """Return parked jobs, the longest parked first. `after` is the time and id of the last one of the page before."""
    moment, job_id = after or (None, None)
    cursor = await conn.execute(queries("parked").page, {"limit": limit, "after": moment, "after_id": job_id})
    return [ParkedRow(**row) for row in await cursor.fetchall()]
