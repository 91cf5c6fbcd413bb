"""What the engine finds after a restoration.

Jobs that were under way go on: their owners and the holders of leases are gone, so leases are given back here, and the
first orchestrator takes the jobs over as those of a dead one. Tasks that ran begin again, from their last checkpoint,
with a greater token. Or the jobs are cancelled, if the operator says so.

Due times of schedules that passed since the backup are not made up for, whatever the schedule's policy: the platform
that was lost may have fired them, and their jobs would run twice. Calls that were not yet delivered are made; a
receiver tells by X-Geomill-Delivery which ones it knows.
"""

from __future__ import annotations

from dataclasses import dataclass

from geomill.engine.control import cancel
from geomill.errors import ConflictError, NotFoundError
from geomill.sql import queries
from geomill.store import schedules
from geomill.store.pool import Connection, transaction_time

_SQL = queries("backup")
REASON = "interrupted: the platform was restored from a backup"


@dataclass(frozen=True)
class Resumed:
    jobs: int
    """Under way when the backup was taken."""
    cancelled: int
    released: int
    postponed: tuple[str, ...]
    """Schedules whose due times passed since the backup."""


async def resume(conn: Connection, job_queue: str, *, cancel_jobs: bool) -> Resumed:
    """Within the transaction that loads the rows, so that no orchestrator sees them before."""
    released = (await conn.execute(_SQL.release_leases)).rowcount
    rows = await (await conn.execute(_SQL.open_jobs, {"job_queue": job_queue})).fetchall()
    open_jobs = [row["job_id"] for row in rows]
    cancelled = await _cancel(conn, job_queue, open_jobs) if cancel_jobs else 0
    return Resumed(len(open_jobs), cancelled, released, await _postpone(conn))


async def _cancel(conn: Connection, job_queue: str, job_ids: list[str]) -> int:
    cancelled = 0
    for job_id in job_ids:
        try:
            async with conn.transaction():
                await cancel(conn, job_queue, job_id, REASON)
            cancelled += 1
        except (ConflictError, NotFoundError):
            continue  # it has ended, or is a message that never becomes a job
    return cancelled


async def _postpone(conn: Connection) -> tuple[str, ...]:
    now = await transaction_time(conn)
    rows = await (await conn.execute(_SQL.overdue_schedules)).fetchall()
    for row in rows:
        schedule = await schedules.lock(conn, row["schedule_id"])
        due = {"schedule_id": schedule.schedule_id, "next_due_at": schedule.timing.after(now)}
        await conn.execute(_SQL.postpone_schedule, due)
    return tuple(row["schedule_id"] for row in rows)
