"""Checkpoints of tasks in the database."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from geomill.domain.engine.message import TaskMessage
from geomill.sql import queries
from geomill.store.pool import Connection

Place = tuple[str, str, int]
"""Job, node, item."""
Saved = tuple[str, dict[str, Any]]
"""Phase and data."""


@dataclass(frozen=True, slots=True)
class CheckpointWrite:
    """A checkpoint that a task saves under its lease. `data` is JSON text."""

    sequence: int
    lease_token: int
    message: TaskMessage
    phase: str
    data: str


async def read(conn: Connection, messages: Sequence[TaskMessage]) -> dict[Place, Saved]:
    """Return the checkpoints that earlier attempts or deliveries of these tasks saved."""
    if not messages:
        return {}
    parameters = {
        "job_ids": [message.job_id for message in messages],
        "node_ids": [message.node_id for message in messages],
        "item_indexes": [message.item_index for message in messages],
    }
    cursor = await conn.execute(queries("checkpoints").read, parameters)
    return {
        (row["job_id"], row["node_id"], row["item_index"]): (row["phase"], row["data"])
        for row in await cursor.fetchall()
    }


async def save(conn: Connection, writes: Sequence[CheckpointWrite]) -> None:
    if writes:
        messages = [write.message for write in writes]
        await conn.execute(
            queries("checkpoints").save,
            {
                "sequences": [write.sequence for write in writes],
                "tokens": [write.lease_token for write in writes],
                "job_ids": [message.job_id for message in messages],
                "node_ids": [message.node_id for message in messages],
                "item_indexes": [message.item_index for message in messages],
                "phases": [write.phase for write in writes],
                "data": [write.data for write in writes],
                "attempts": [message.attempt for message in messages],
            },
        )


async def announce(conn: Connection, worker_id: str, writes: Sequence[CheckpointWrite]) -> None:
    """Add events for checkpoints that were saved in this transaction."""
    if writes:
        messages = [write.message for write in writes]
        await conn.execute(
            queries("checkpoints").announce,
            {
                "worker_id": worker_id,
                "job_ids": [message.job_id for message in messages],
                "node_ids": [message.node_id for message in messages],
                "item_indexes": [message.item_index for message in messages],
                "attempts": [message.attempt for message in messages],
                "phases": [write.phase for write in writes],
            },
        )
