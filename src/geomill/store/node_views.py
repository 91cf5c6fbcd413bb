"""Nodes and items of fan-outs as operators look at them.

An item of a fan-out may have no row: its state follows from the count of sent items, its message and its result. Pages
and filters choose the indexes of items first, and then read only those.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from geomill.domain.engine.node import NodeState
from geomill.domain.engine.task import AttemptResult, Checkpoint
from geomill.domain.ids import SINGLE, around_index, task_id
from geomill.domain.states import NODE_MACHINE, NodeStatus
from geomill.sql import queries
from geomill.store import item_buckets
from geomill.store.item_buckets import BucketOfItems
from geomill.store.pool import Connection

MOST_ATTEMPTS = 100
MOST_RUNS = 1_000
MOST_RESULTS = 5_000
_N = NodeStatus


@dataclass(frozen=True, slots=True)
class TaskDelivery:
    """The message of an attempt: waiting, or leased to a worker."""

    body: dict[str, Any]
    leased: bool
    leased_by: str | None
    leased_until: datetime | None
    started_at: datetime | None
    progress: float | None
    progress_message: str
    delivery_count: int
    enqueued_at: datetime
    visible_at: datetime


@dataclass(frozen=True, slots=True)
class ItemState:
    """The state of one item of a fan-out, from its row, its message and its result."""

    item_index: int
    status: str
    attempt: int
    retry_count: int
    task_id: str
    worker_id: str | None
    handler_version: str | None
    dispatched_at: datetime | None
    started_at: datetime | None
    completed_at: datetime | None
    not_before: datetime | None
    error_message: str | None
    error_code: str | None
    progress: float | None
    progress_message: str


@dataclass(frozen=True, slots=True)
class ExpandedFanOut:
    """A fan-out that has been expanded, and the queue of its tasks."""

    row: NodeState
    queue_name: str

    @property
    def total(self) -> int:
        return self.row.items_total or 0

    @property
    def sent(self) -> int:
        return self.row.items_sent or 0

    @property
    def ended(self) -> bool:
        return self.row.status in NODE_MACHINE.terminal

    def key(self) -> dict[str, Any]:
        return {"job_id": self.row.job_id, "node_id": self.row.node_id}


async def find(conn: Connection, job_id: str, node_id: str, item_index: int = SINGLE) -> NodeState | None:
    parameters = {"job_id": job_id, "node_id": node_id, "item_index": item_index}
    row = await (await conn.execute(queries("node_views").node, parameters)).fetchone()
    return NodeState.from_row(row) if row else None


async def sources(conn: Connection, job_id: str, node_ids: Sequence[str]) -> list[NodeState]:
    parameters = {"job_id": job_id, "node_ids": list(node_ids)}
    cursor = await conn.execute(queries("node_views").sources, parameters)
    return [NodeState.from_row(row) for row in await cursor.fetchall()]


async def delivery(conn: Connection, queue_name: str, task: str) -> TaskDelivery | None:
    parameters = {"queue_name": queue_name, "task_id": task}
    row = await (await conn.execute(queries("node_views").message, parameters)).fetchone()
    return TaskDelivery(**row) if row else None


async def attempts(conn: Connection, job_id: str, node_id: str, item_index: int, latest: int) -> list[AttemptResult]:
    """Return the results of the latest hundred attempts, the newest first."""
    numbers = range(max(latest - MOST_ATTEMPTS, 0) + 1, latest + 1)
    task_ids = [task_id(job_id, node_id, item_index, number) for number in numbers]
    cursor = await conn.execute(queries("node_views").attempts, {"task_ids": task_ids})
    return [AttemptResult.from_row(row) for row in await cursor.fetchall()]


async def checkpoint(conn: Connection, job_id: str, node_id: str, item_index: int) -> Checkpoint | None:
    parameters = {"job_id": job_id, "node_id": node_id, "item_index": item_index}
    row = await (await conn.execute(queries("node_views").checkpoint, parameters)).fetchone()
    return Checkpoint.from_row(row) if row else None


async def items(conn: Connection, fan_out: ExpandedFanOut, indexes: Sequence[int]) -> list[ItemState]:
    """Return these items, in this order."""
    if not indexes:
        return []
    before, after = around_index(fan_out.row.job_id, fan_out.row.node_id, 1)
    parameters = fan_out.key() | {
        "indexes": list(indexes),
        "items_sent": fan_out.sent,
        "ended": fan_out.ended,
        "queue_name": fan_out.queue_name,
        "before_index": before,
        "after_index": after,
    }
    cursor = await conn.execute(queries("node_views").items, parameters)
    return [ItemState(**row) for row in await cursor.fetchall()]


async def indexes_in_state(
    conn: Connection, fan_out: ExpandedFanOut, status: NodeStatus, *, after: int, limit: int
) -> list[int]:
    """Return the indexes of the next items in this state."""
    if status is _N.DISPATCHED:
        leased = await _leased(conn, fan_out)
        parameters = {"after": after, "limit": limit, "items_sent": fan_out.sent, "leased": leased}
        cursor = await conn.execute(queries("node_views").indexes_sent, fan_out.key() | parameters)
        return [row["item_index"] for row in await cursor.fetchall()]
    parameters = fan_out.key() | {"status": status.value, "after": after, "limit": limit}
    cursor = await conn.execute(queries("node_views").indexes_with_status, parameters)
    indexes = {row["item_index"] for row in await cursor.fetchall()}
    if status is _N.RUNNING:
        indexes |= {index for index in await _leased(conn, fan_out) if index > after}
    if status is (_N.SKIPPED if fan_out.ended else _N.PENDING):  # never sent
        first = max(after + 1, fan_out.sent)
        indexes |= set(range(first, min(first + limit, fan_out.total)))
    return sorted(indexes)[:limit]


async def _leased(conn: Connection, fan_out: ExpandedFanOut) -> list[int]:
    before, _ = around_index(fan_out.row.job_id, fan_out.row.node_id, 1)
    cursor = await conn.execute(queries("node_views").indexes_leased, {"before_index": before})
    return [row["item_index"] for row in await cursor.fetchall()]


async def slowest_indexes(
    conn: Connection,
    fan_out: ExpandedFanOut,
    *,
    limit: int,
    status: NodeStatus | None = None,
    before: tuple[float, int] | None = None,
) -> list[tuple[int, float]]:
    """Return items that have ended, the slowest first, each with the seconds it ran. `before` is the last of the page
    before."""
    seconds, index = before or (None, None)
    parameters = {"status": status.value if status else None, "before": seconds, "after": index, "limit": limit}
    cursor = await conn.execute(queries("node_views").indexes_slowest, fan_out.key() | parameters)
    return [(row["item_index"], row["seconds"]) for row in await cursor.fetchall()]


async def code_versions(conn: Connection, job_id: str) -> list[tuple[str, str]]:
    """Return the nodes of a job with the code versions that ran at them, each pair once, the earliest first.

    All attempts at a node count. Of the items of a fan-out, only the first and the last that each worker ran count:
    new code comes with a new worker, or with new children of it. The same holds for the items of each attempt number.
    """
    parameters = {"job_id": job_id, "attempts": MOST_ATTEMPTS, "runs": MOST_RUNS, "results": MOST_RESULTS}
    cursor = await conn.execute(queries("node_views").code_versions, parameters)
    return [(row["node_id"], row["handler_version"]) for row in await cursor.fetchall()]


@dataclass(frozen=True, slots=True)
class RunTimes:
    """Seconds that ended items ran."""

    fastest: float
    p50: float
    p90: float
    p99: float
    slowest: float


@dataclass(frozen=True, slots=True)
class ItemCensus:
    """Items by state in each bucket of neighbours, and how long the ended ones ran."""

    buckets: tuple[BucketOfItems, ...]
    run_times: RunTimes | None

    @property
    def states(self) -> dict[str, int]:
        return dict(sum((Counter(bucket.states) for bucket in self.buckets), Counter()))


async def census(conn: Connection, fan_out: ExpandedFanOut) -> ItemCensus:
    """Count the items of a fan-out by state. Reads the rows of this fan-out once."""
    buckets = item_buckets.empty(fan_out.total)
    parameters = fan_out.key() | {"buckets": len(buckets) or 1, "items_total": fan_out.total or 1}
    rows = await (await conn.execute(queries("node_views").item_counts, parameters)).fetchall()
    whole = next(row for row in rows if row["bucket"] is None)
    leased = await _leased(conn, fan_out)
    cursor = await conn.execute(queries("node_views").item_rows, fan_out.key() | {"indexes": leased})
    row_states = {row["item_index"]: row["status"] for row in await cursor.fetchall()}
    for row in rows:
        if row["bucket"] is not None and row["bucket"] < len(buckets):
            buckets[row["bucket"]].states[row["status"]] = row["items"]
    item_buckets.add_leased(buckets, leased, row_states)
    item_buckets.add_without_rows(buckets, fan_out.sent, _N.SKIPPED if fan_out.ended else _N.PENDING)
    times = None
    if whole["slowest"] is not None:
        p50, p90, p99 = whole["quantiles"]
        times = RunTimes(whole["fastest"], p50, p90, p99, whole["slowest"])
    return ItemCensus(tuple(buckets), times)
