"""Log lines of handlers, in the database."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from geomill.domain.engine.log import TaskLog
from geomill.domain.engine.message import TaskMessage
from geomill.sql import queries
from geomill.store.pool import Connection


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
