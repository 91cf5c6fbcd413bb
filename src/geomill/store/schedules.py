"""Schedules in the database."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from geomill.domain.engine.job import Job
from geomill.domain.engine.schedule import Schedule
from geomill.domain.jsonvalue import to_json
from geomill.errors import ConflictError, NotFoundError, nearest
from geomill.sql import queries
from geomill.store.pool import Connection

CHANGEABLE = {
    "input_params",
    "cron",
    "interval_seconds",
    "timezone",
    "catch_up",
    "max_concurrent",
    "paused",
    "next_due_at",
}
"""The fields that a change of a schedule writes."""


@dataclass(frozen=True, slots=True)
class ScheduleWrite:
    """The changes to the row of a schedule that was due."""

    schedule_id: str
    next_due_at: datetime | None
    fired_at: datetime | None = None
    error: str | None = None
    hold_seconds: float | None = None
    open_jobs: list[str] = field(default_factory=list)


async def create(conn: Connection, schedule: Schedule) -> Schedule:
    fields = schedule.model_dump(exclude={"input_params", "catch_up"})
    values = {"input_params": to_json(schedule.input_params), "catch_up": schedule.catch_up.value}
    row = await (await conn.execute(queries("schedules").create, fields | values)).fetchone()
    if row is None:
        raise ConflictError(
            f"there is already a schedule '{schedule.schedule_id}'", remedy="choose another id, or delete it first"
        )
    return Schedule.from_row(row)


async def everything(conn: Connection) -> list[Schedule]:
    cursor = await conn.execute(queries("schedules").all)
    return [Schedule.from_row(row) for row in await cursor.fetchall()]


async def lock(conn: Connection, schedule_id: str) -> Schedule:
    """Return the schedule, locked until the transaction ends."""
    row = await (await conn.execute(queries("schedules").lock, {"schedule_id": schedule_id})).fetchone()
    if row is None:
        raise await _unknown(conn, schedule_id)
    return Schedule.from_row(row)


async def delete(conn: Connection, schedule_id: str) -> None:
    row = await (await conn.execute(queries("schedules").delete, {"schedule_id": schedule_id})).fetchone()
    if row is None:
        raise await _unknown(conn, schedule_id)


async def _unknown(conn: Connection, schedule_id: str) -> NotFoundError:
    ids = [schedule.schedule_id for schedule in await everything(conn)]
    return NotFoundError(f"there is no schedule '{schedule_id}'", remedy=nearest(schedule_id, ids))


async def set_paused(conn: Connection, schedule_id: str, next_due_at: datetime | None, *, paused: bool) -> Schedule:
    parameters = {"schedule_id": schedule_id, "paused": paused, "next_due_at": next_due_at}
    row = await (await conn.execute(queries("schedules").set_paused, parameters)).fetchone()
    assert row is not None  # its row is locked
    return Schedule.from_row(row)


async def due(conn: Connection, limit: int) -> list[Schedule]:
    """Return the schedules that are due, locked until the transaction ends."""
    cursor = await conn.execute(queries("schedules").due, {"limit": limit})
    return [Schedule.from_row(row) for row in await cursor.fetchall()]


async def still_open(conn: Connection, job_queue: str, job_ids: Iterable[str]) -> set[str]:
    """Return the jobs that wait or run."""
    ids = list(job_ids)
    if not ids:
        return set()
    cursor = await conn.execute(queries("schedules").still_open, {"job_ids": ids, "queue_name": job_queue})
    return {row["job_id"] for row in await cursor.fetchall()}


async def advance(conn: Connection, writes: Sequence[ScheduleWrite]) -> None:
    if writes:
        await conn.execute(
            queries("schedules").advance,
            {
                "schedule_ids": [write.schedule_id for write in writes],
                "next_due_at": [write.next_due_at for write in writes],
                "fired_at": [write.fired_at for write in writes],
                "last_errors": [write.error for write in writes],
                "hold_seconds": [write.hold_seconds for write in writes],
                "open_jobs": [to_json(write.open_jobs) for write in writes],
            },
        )


async def get(conn: Connection, schedule_id: str) -> Schedule:
    row = await (await conn.execute(queries("schedules").get, {"schedule_id": schedule_id})).fetchone()
    if row is None:
        raise await _unknown(conn, schedule_id)
    return Schedule.from_row(row)


async def page(conn: Connection, *, workflow_id: str | None, limit: int, after: str | None = None) -> list[Schedule]:
    """Return schedules, ordered by id. `after` is the id of the last one of the page before."""
    parameters = {"workflow_id": workflow_id, "limit": limit, "after": after}
    cursor = await conn.execute(queries("schedules").page, parameters)
    return [Schedule.from_row(row) for row in await cursor.fetchall()]


async def change(conn: Connection, schedule: Schedule) -> Schedule:
    """Write the fields that an operator may change. The caller has locked the row."""
    parameters = {
        **schedule.model_dump(include=CHANGEABLE),
        "schedule_id": schedule.schedule_id,
        "input_params": to_json(schedule.input_params),
        "catch_up": schedule.catch_up.value,
    }
    row = await (await conn.execute(queries("schedules").change, parameters)).fetchone()
    assert row is not None  # its row is locked
    return Schedule.from_row(row)


async def jobs(
    conn: Connection, schedule_id: str, *, limit: int, before: tuple[datetime, str] | None = None
) -> list[Job]:
    """Return the jobs that a schedule has started, the newest first, without inputs and results."""
    moment, job_id = before or (None, None)
    parameters = {"schedule_id": schedule_id, "limit": limit, "before": moment, "before_id": job_id}
    cursor = await conn.execute(queries("schedules").jobs, parameters)
    return [Job.from_row(row) for row in await cursor.fetchall()]
