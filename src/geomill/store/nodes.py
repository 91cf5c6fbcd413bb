"""Nodes and fan-out items in the database."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from geomill.domain.ids import task_id
from geomill.domain.node import NodeState
from geomill.domain.reopening import Reopened
from geomill.sql import queries
from geomill.store.pool import Connection


async def of_job(conn: Connection, job_id: str) -> list[NodeState]:
    cursor = await conn.execute(queries("nodes").of_job, {"job_id": job_id})
    return [NodeState.from_row(row) for row in await cursor.fetchall()]


async def item_outputs(conn: Connection, job_id: str, node_id: str, fresh: Sequence[int]) -> list[Any]:
    """In the order of the items. `fresh` completed in this transaction and are not written yet."""
    parameters = {"job_id": job_id, "node_id": node_id, "fresh": list(fresh)}
    cursor = await conn.execute(queries("nodes").item_outputs, parameters)
    return [row["output"] for row in await cursor.fetchall()]


async def item_outcomes(conn: Connection, job_id: str, node_id: str, fresh: Sequence[int]) -> dict[int, dict[str, Any]]:
    """By item: how it ended, with what output or error. `fresh` are as above."""
    parameters = {"job_id": job_id, "node_id": node_id, "fresh": list(fresh)}
    cursor = await conn.execute(queries("nodes").item_outcomes, parameters)
    return {row["index"]: row for row in await cursor.fetchall()}


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
