"""Log lines of handlers, in the database."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass

from geomill.domain.engine.log import TaskLog
from geomill.domain.engine.message import TaskMessage
from geomill.sql import queries
from geomill.store.pool import Connection

EXAMINED = 10_000
"""The most lines that a page reads."""


@dataclass(frozen=True, slots=True)
class LogFilter:
    node_id: str | None = None
    item_index: int | None = None
    attempt: int | None = None
    levels: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class LinePage:
    lines: list[TaskLog]
    end: int
    """The id of the last line that was read."""
    more: bool


@dataclass(frozen=True, slots=True)
class LogWrite:
    message: TaskMessage
    level: str
    text: str


async def insert(conn: Connection, writes: Sequence[LogWrite]) -> None:
    if writes:
        await conn.execute(
            queries("logs").insert,
            {
                "job_ids": [write.message.job_id for write in writes],
                "node_ids": [write.message.node_id for write in writes],
                "item_indexes": [write.message.item_index for write in writes],
                "attempts": [write.message.attempt for write in writes],
                "levels": [write.level for write in writes],
                "messages": [write.text for write in writes],
            },
        )


async def of_job(
    conn: Connection, job_id: str, *, node_id: str | None = None, after: int = 0, limit: int = 1000
) -> list[TaskLog]:
    parameters = {"job_id": job_id, "node_id": node_id, "after": after, "limit": limit}
    cursor = await conn.execute(queries("logs").of_job, parameters)
    return [TaskLog.from_row(row) for row in await cursor.fetchall()]


async def page(conn: Connection, job_id: str, chosen: LogFilter, *, after: int, limit: int) -> LinePage:
    """Return the lines of a job that pass the filter. The page is short if `EXAMINED` lines did not fill it."""
    source = queries("logs").examined
    levels = None if chosen.levels is None else list(chosen.levels)
    examined = max(EXAMINED, limit + 1)
    parameters = {
        **asdict(chosen), "levels": levels, "job_id": job_id, "after": after, "limit": limit + 1, "examined": examined
    }  # fmt: skip
    question = queries("logs").page
    cursor = await conn.execute(f"WITH examined AS ({source}) {question}", parameters, prepare=False)
    lines = [TaskLog.from_row(row) for row in await cursor.fetchall()]
    if len(lines) > limit:
        return LinePage(lines[:limit], lines[limit - 1].log_id, more=True)
    question = queries("logs").edge
    row = await (await conn.execute(f"WITH examined AS ({source}) {question}", parameters, prepare=False)).fetchone()
    assert row is not None
    if row["lines"] < examined:  # a line that was written since the first statement is on the next page
        return LinePage(lines, lines[-1].log_id if lines else after, more=False)
    return LinePage([line for line in lines if line.log_id <= row["log_id"]], row["log_id"], more=True)


async def latest(conn: Connection, job_id: str) -> int:
    """Return the id of the job's newest line; 0 if there is none."""
    row = await (await conn.execute(queries("logs").latest, {"job_id": job_id})).fetchone()
    return int(row["latest"]) if row else 0
