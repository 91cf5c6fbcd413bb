"""Reports of workers in the database: settled by the worker, taken by the owner."""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from geomill.domain.engine.decision import Outcome
from geomill.domain.engine.message import TaskMessage
from geomill.domain.engine.task import TaskReport
from geomill.domain.ids import SINGLE
from geomill.sql import queries
from geomill.store.pool import Connection


@dataclass(slots=True)
class Settlement:
    """What a worker says of an attempt whose lease it holds. `output` and `metrics` are JSON text."""

    sequence: int
    lease_token: int
    message: TaskMessage
    report: TaskReport
    started_at: datetime
    output: str | None = None
    error: str | None = None
    error_code: str | None = None
    retryable: bool = True
    metrics: str = "{}"


@dataclass(slots=True)
class Arrival:
    """A report as its owner finds it: the same of one or more items."""

    sequence: int
    job_id: str
    worker_id: str | None
    started_at: datetime | None
    now: datetime
    outcomes: list[Outcome]
    stored: Any = None
    """What stands in rows for a large output that was read for the evaluation."""


async def settle(
    conn: Connection, worker_id: str, ended: Sequence[Settlement], *, called: bool = False
) -> dict[int, str]:
    """Sequence → owner of those whose lease still held. The others are stale and changed nothing. With `called` the
    owners hear of it with the commit."""
    rows = json.dumps(_rows(ended), ensure_ascii=False)
    parameters = {"worker_id": worker_id, "ended": rows, "called": called}
    cursor = await conn.execute(queries("inbox").settle, parameters)
    return {sequence: row["owner_id"] for row in await cursor.fetchall() for sequence in row["sequences"]}


def _rows(ended: Sequence[Settlement]) -> list[dict[str, Any]]:
    """Completed items of one node that began together are one row, with what is their own in lists: to read a row costs
    the server more than to read ten values. All else stands alone."""
    groups: dict[tuple[Any, ...], list[Settlement]] = {}
    for one in ended:
        message = one.message
        alike = message.item_index != SINGLE and one.report is TaskReport.COMPLETED and one.metrics == "{}"
        key = (message.job_id, message.node_id, message.attempt, one.started_at) if alike else (one.sequence,)
        groups.setdefault(key, []).append(one)
    return [_row(group) for group in groups.values()]


def _row(group: Sequence[Settlement]) -> dict[str, Any]:
    """What is missing is NULL: most attempts have neither an error nor metrics."""
    one, message = group[0], group[0].message
    row = {
        "group": one.sequence,
        "job_id": message.job_id,
        "node_id": message.node_id,
        "attempt": message.attempt,
        "report": one.report,
        "started_at": one.started_at.isoformat(),
        "sequences": [one.sequence for one in group],
        "tokens": [one.lease_token for one in group],
        "task_ids": [one.message.task_id for one in group],
        "items": [one.message.item_index for one in group],
        "outputs": [one.output for one in group],
    }
    if one.metrics != "{}":
        row["metrics"] = one.metrics
    if one.report is TaskReport.FAILED:
        row |= {"error_message": one.error, "error_code": one.error_code, "retryable": one.retryable}
    return row


async def peek(
    conn: Connection, owner_id: str, limit: int, held: Collection[str] = (), floor: int = 0
) -> list[Arrival]:
    """What has arrived, from the floor on, except for the jobs that are `held`."""
    parameters = {"owner_id": owner_id, "limit": limit, "held": list(held), "floor": floor}
    cursor = await conn.execute(queries("inbox").peek, parameters)
    return [_arrival(row) for row in await cursor.fetchall()]


def _arrival(row: dict[str, Any]) -> Arrival:
    report = TaskReport(row["report"])
    error, error_code = row["error_message"] or "", row["error_code"] or ""
    retryable = row["retryable"] is not False
    node_id, attempt, output = row["node_id"], row["attempt"], row["output"]
    outcomes = [
        Outcome(node_id, attempt, report, item_index, output, error, error_code, retryable)
        for item_index in row["items"]
    ]
    return Arrival(row["sequence"], row["job_id"], row["worker_id"], row["started_at"], row["now"], outcomes)


async def readdress(conn: Connection, owner_id: str, job_ids: Sequence[str]) -> None:
    await conn.execute(queries("inbox").readdress, {"owner_id": owner_id, "job_ids": list(job_ids)})


async def readdress_strays(conn: Connection, owner_id: str) -> None:
    await conn.execute(queries("inbox").readdress_strays, {"owner_id": owner_id})


async def command(conn: Connection, job_id: str, report: TaskReport, reason: str) -> str | None:
    """The owner to tell; empty when the job has none at the moment, None when no such job is under way."""
    parameters = {"job_id": job_id, "report": report.value, "reason": reason[:500]}
    cursor = await conn.execute(queries("inbox").command, parameters)
    row = await cursor.fetchone()
    return row["owner_id"] if row else None


async def forward(conn: Connection, owner_id: str, job_ids: Collection[str]) -> set[str]:
    """Pass on or drop the reports of these jobs; returns those jobs that are ours after all."""
    if not job_ids:
        return set()
    cursor = await conn.execute(queries("inbox").forward, {"owner_id": owner_id, "job_ids": list(job_ids)})
    return {row["job_id"] for row in await cursor.fetchall()}
