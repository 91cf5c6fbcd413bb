"""Callbacks to deliver, in the database."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from geomill.domain.engine.callback import Callback, CallbackStatus
from geomill.sql import queries
from geomill.store.pool import Connection


@dataclass(frozen=True, slots=True)
class CallbackAttempt:
    """A callback that this process has claimed, and when."""

    callback: Callback
    claimed_at: datetime


async def find(conn: Connection, limit: int) -> None:
    """Add the callbacks of jobs that have ended."""
    await conn.execute(queries("callbacks").find, {"limit": limit})


async def claim(conn: Connection, limit: int, lease_seconds: float) -> list[CallbackAttempt]:
    cursor = await conn.execute(queries("callbacks").claim, {"limit": limit, "lease_seconds": lease_seconds})
    rows = await cursor.fetchall()
    return [CallbackAttempt(claimed_at=row.pop("claimed_at"), callback=Callback.from_row(row)) for row in rows]


async def settle(
    conn: Connection, callback: Callback, status: CallbackStatus, *, error: str | None, due_at: datetime | None = None
) -> bool:
    """Store the outcome of an attempt. Returns False if it is no longer the current one."""
    parameters = {
        "delivery_id": callback.delivery_id,
        "attempts": callback.attempts,
        "status": status.value,
        "due_at": due_at,
        "error": error,
    }
    return await (await conn.execute(queries("callbacks").settle, parameters)).fetchone() is not None


async def of_job(conn: Connection, job_id: str) -> list[Callback]:
    cursor = await conn.execute(queries("callbacks").of_job, {"job_id": job_id})
    return [Callback.from_row(row) for row in await cursor.fetchall()]
