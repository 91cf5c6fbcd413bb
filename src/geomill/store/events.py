"""The history of jobs in the database."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from geomill.domain.event import EventStatus, EventType, JobEvent
from geomill.domain.ids import SINGLE, canonical_json
from geomill.sql import queries
from geomill.store.pool import Connection


@dataclass(frozen=True, slots=True)
class EventWrite:
    job_id: str
    type: EventType
    status: EventStatus = EventStatus.INFO
    node_id: str | None = None
    item_index: int = SINGLE
    data: dict[str, Any] = field(default_factory=dict)
    checkpoint_name: str | None = None


async def insert(conn: Connection, writes: Sequence[EventWrite]) -> None:
    if writes:
        await conn.execute(
            queries("events").insert,
            {
                "job_ids": [write.job_id for write in writes],
                "node_ids": [write.node_id for write in writes],
                "item_indexes": [write.item_index for write in writes],
                "types": [write.type.value for write in writes],
                "statuses": [write.status.value for write in writes],
                "data": [canonical_json(write.data) if write.data else "{}" for write in writes],
                "checkpoint_names": [write.checkpoint_name for write in writes],
            },
        )


async def of_job(conn: Connection, job_id: str, *, after: int = 0, limit: int = 1000) -> list[JobEvent]:
    cursor = await conn.execute(queries("events").of_job, {"job_id": job_id, "after": after, "limit": limit})
    return [JobEvent.from_row(row) for row in await cursor.fetchall()]
