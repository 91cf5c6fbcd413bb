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
    """A worker's report on an attempt whose lease it has. `output` and `metrics` are JSON text."""

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
    handler_version: str | None = None


@dataclass(slots=True)
class Arrival:
    """A report in the inbox of the job's owner. It is the same for one or more items."""

    sequence: int
    job_id: str
    worker_id: str | None
    started_at: datetime | None
    now: datetime
    outcomes: list[Outcome]
    stored: Any = None
    """The reference that rows have for a large output, if the output was read for the evaluation."""


async def settle(
    conn: Connection, worker_id: str, ended: Sequence[Settlement], *, called: bool = False
) -> dict[int, str]:
    """Store the reports whose leases are still valid. Returns the owner of each, by sequence. The other reports are
    stale and change nothing. With `called`, the commit notifies the owners."""
    rows = json.dumps(_rows(ended), ensure_ascii=False)
    parameters = {"worker_id": worker_id, "ended": rows, "called": called}
    cursor = await conn.execute(queries("inbox").settle, parameters)
    return {sequence: row["owner_id"] for row in await cursor.fetchall() for sequence in row["sequences"]}


def _rows(ended: Sequence[Settlement]) -> list[dict[str, Any]]:
    """Return the rows to store. Completed items of one node that began together and ran the same code are one row, with
    lists of what differs: a row costs the server more than ten values. Every other report is a row of its own."""
    groups: dict[tuple[Any, ...], list[Settlement]] = {}
    for settlement in ended:
        message, started_at = settlement.message, settlement.started_at
        completed = settlement.report is TaskReport.COMPLETED and settlement.metrics == "{}"
        alike = completed and message.item_index != SINGLE
        place = (message.job_id, message.node_id, message.attempt, started_at, settlement.handler_version)
        key = place if alike else (settlement.sequence,)
        groups.setdefault(key, []).append(settlement)
    return [_row(group) for group in groups.values()]


def _row(group: Sequence[Settlement]) -> dict[str, Any]:
    """Return one row for these reports. A missing key becomes NULL: most attempts have neither an error nor metrics."""
    first, message = group[0], group[0].message
    row = {
        "group": first.sequence,
        "job_id": message.job_id,
        "node_id": message.node_id,
        "attempt": message.attempt,
        "report": first.report,
        "started_at": first.started_at.isoformat(),
        "sequences": [settlement.sequence for settlement in group],
        "tokens": [settlement.lease_token for settlement in group],
        "task_ids": [settlement.message.task_id for settlement in group],
        "items": [settlement.message.item_index for settlement in group],
        "outputs": [settlement.output for settlement in group],
    }
    if first.handler_version is not None:
        row["handler_version"] = first.handler_version
    if first.metrics != "{}":
        row["metrics"] = first.metrics
    if first.report is TaskReport.FAILED:
        row |= {"error_message": first.error, "error_code": first.error_code, "retryable": first.retryable}
    return row


async def peek(
    conn: Connection, owner_id: str, limit: int, idle: Collection[str] = (), floor: int = 0
) -> list[Arrival]:
    """Return the reports that have arrived, from the floor on, without those of the `idle` jobs."""
    parameters = {"owner_id": owner_id, "limit": limit, "held": list(idle), "floor": floor}
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
    """Put a command into the inbox of a job. Returns the owner to notify: empty if the job has none at the moment,
    None if no such job is under way."""
    parameters = {"job_id": job_id, "report": report.value, "reason": reason[:500]}
    cursor = await conn.execute(queries("inbox").command, parameters)
    row = await cursor.fetchone()
    return row["owner_id"] if row else None


async def forward(conn: Connection, owner_id: str, job_ids: Collection[str]) -> set[str]:
    """Pass on or drop the reports of these jobs. Returns the jobs that `owner_id` does own."""
    if not job_ids:
        return set()
    cursor = await conn.execute(queries("inbox").forward, {"owner_id": owner_id, "job_ids": list(job_ids)})
    return {row["job_id"] for row in await cursor.fetchall()}
