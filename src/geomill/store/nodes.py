"""Nodes and fan-out items in the database."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from geomill.domain.ids import task_id
from geomill.domain.node import NodeState
from geomill.domain.reopening import Reopened
from geomill.domain.states import NodeStatus
from geomill.sql import queries
from geomill.store.pool import Connection


@dataclass(frozen=True, slots=True)
class NodeWrite:
    """The whole of what an owner writes of a node or an item. `output` is JSON text."""

    job_id: str
    node_id: str
    item_index: int
    status: NodeStatus
    task_id: str | None
    attempt: int
    retry_count: int
    output: str | None = None
    error: str | None = None
    not_before: datetime | None = None
    worker_id: str | None = None
    started_at: datetime | None = None


async def insert(conn: Connection, writes: Sequence[NodeWrite]) -> None:
    if writes:
        await conn.execute(queries("nodes").insert, _columns(writes))


async def update(conn: Connection, writes: Sequence[NodeWrite]) -> None:
    if writes:
        await conn.execute(queries("nodes").update, _columns(writes))


def _columns(writes: Sequence[NodeWrite]) -> dict[str, list[Any]]:
    return {
        "job_ids": [write.job_id for write in writes],
        "node_ids": [write.node_id for write in writes],
        "item_indexes": [write.item_index for write in writes],
        "statuses": [write.status.value for write in writes],
        "task_ids": [write.task_id for write in writes],
        "attempts": [write.attempt for write in writes],
        "retry_counts": [write.retry_count for write in writes],
        "outputs": [write.output for write in writes],
        "errors": [write.error for write in writes],
        "not_before": [write.not_before for write in writes],
        "worker_ids": [write.worker_id for write in writes],
        "started_at": [write.started_at for write in writes],
    }


async def of_job(conn: Connection, job_id: str) -> list[NodeState]:
    cursor = await conn.execute(queries("nodes").of_job, {"job_id": job_id})
    return [NodeState.from_row(row) for row in await cursor.fetchall()]


async def item_outputs(conn: Connection, job_id: str, node_id: str, fresh: Sequence[int]) -> list[Any]:
    """In the order of the items. `fresh` completed in this transaction and are not written yet."""
    parameters = {"job_id": job_id, "node_id": node_id, "fresh": list(fresh)}
    cursor = await conn.execute(queries("nodes").item_outputs, parameters)
    return [row["output"] for row in await cursor.fetchall()]


async def reopen(conn: Connection, job_id: str, again: Sequence[Reopened]) -> None:
    await conn.execute(
        queries("nodes").reopen,
        {
            "job_id": job_id,
            "node_ids": [one.node_id for one in again],
            "item_indexes": [one.item_index for one in again],
            "statuses": [one.status.value for one in again],
            "attempts": [one.attempt for one in again],
            "task_ids": [task_id(job_id, one.node_id, one.item_index, one.attempt) for one in again],
        },
    )
