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
    conn: Connection,
    callback: Callback,
    status: CallbackStatus,
    *,
    error: str | None,
    due_at: datetime | None = None,
    last_status: int | None = None,
) -> bool:
    """Store the outcome of an attempt. Returns False if it is no longer the current one."""
    parameters = {
        "delivery_id": callback.delivery_id,
        "attempts": callback.attempts,
        "status": status.value,
        "due_at": due_at,
        "error": error,
        "last_status": last_status,
    }
    return await (await conn.execute(queries("callbacks").settle, parameters)).fetchone() is not None


async def of_job(conn: Connection, job_id: str) -> list[Callback]:
    cursor = await conn.execute(queries("callbacks").of_job, {"job_id": job_id})
    return [Callback.from_row(row) for row in await cursor.fetchall()]


async def page(
    conn: Connection,
    *,
    platform_id: str | None,
    status: CallbackStatus | None,
    limit: int,
    before: tuple[datetime, str] | None = None,
) -> list[Callback]:
    """Return callbacks, the newest first. `before` is the creation time and id of the last one of the page before."""
    moment, delivery_id = before or (None, None)
    parameters = {
        "platform_id": platform_id,
        "status": status.value if status else None,
        "limit": limit,
        "before": moment,
        "before_id": delivery_id,
    }
    cursor = await conn.execute(queries("callbacks").page, parameters)
    return [Callback.from_row(row) for row in await cursor.fetchall()]


async def latest(conn: Connection, job_id: str, platform_id: str | None) -> Callback | None:
    """Return the callback of the latest run of a job. With a platform, only if the job works for a request of it."""
    parameters = {"job_id": job_id, "platform_id": platform_id}
    row = await (await conn.execute(queries("callbacks").latest, parameters)).fetchone()
    return Callback.from_row(row) if row else None


async def send_again(conn: Connection, callback: Callback, soon_seconds: float) -> Callback | None:
    """Make a callback due now. Returns None if it is due within `soon_seconds` anyway."""
    parameters = {"delivery_id": callback.delivery_id, "soon_seconds": soon_seconds}
    row = await (await conn.execute(queries("callbacks").send_again, parameters)).fetchone()
    return Callback.from_row(row) if row else None
