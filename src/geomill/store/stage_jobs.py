"""Stage jobs in the database: which attempts there were, and how each of them stands."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from geomill.domain.engine.stage_job import STATUSES, StageRun, StageStatus
from geomill.domain.ids import around_index, task_id
from geomill.domain.jsonvalue import to_json
from geomill.domain.states import JobStatus, NodeStatus
from geomill.errors import NotFoundError
from geomill.remedies import LIST_STAGE_JOBS
from geomill.sql import queries
from geomill.store.pool import Connection

MOST_ATTEMPTS = 100
LOST = "its submission was given up; the dead letters of the queue say why"


@dataclass(frozen=True, slots=True)
class StageJobAttempt:
    """An attempt at a stage job, with the state of the job that carries it out."""

    run: StageRun
    job_status: JobStatus | None
    waiting: bool
    error: str | None = None
    started_at: datetime | None = None
    completed_at: datetime | None = None
    paused_at: datetime | None = None

    @classmethod
    def of(cls, row: dict[str, Any]) -> StageJobAttempt:
        status = JobStatus(row["status"]) if row["status"] else None
        lost = status is None and not row["waiting"]
        return cls(
            run=StageRun.from_row(row),
            job_status=status,
            waiting=row["waiting"],
            error=LOST if lost else row["error_message"],
            started_at=row["started_at"],
            completed_at=row["completed_at"],
            paused_at=row["paused_at"],
        )

    @property
    def status(self) -> StageStatus:
        if self.job_status is None:
            return StageStatus.QUEUED if self.waiting else StageStatus.FAILED
        return STATUSES[self.job_status]


async def serialise(conn: Connection, job_id: str) -> None:
    await conn.execute(queries("stage_jobs").serialise, {"job_id": job_id})


async def attempts(conn: Connection, queue_name: str, job_id: str, limit: int = MOST_ATTEMPTS) -> list[StageJobAttempt]:
    """Return the attempts at a stage job, the latest first."""
    parameters = {"queue_name": queue_name, "job_id": job_id, "limit": limit}
    cursor = await conn.execute(queries("stage_jobs").attempts, parameters)
    return [StageJobAttempt.of(row) for row in await cursor.fetchall()]


async def get(conn: Connection, queue_name: str, job_id: str) -> list[StageJobAttempt]:
    of_job = await attempts(conn, queue_name, job_id)
    if not of_job:
        raise NotFoundError(f"there is no stage job '{job_id}'", remedy=LIST_STAGE_JOBS.http)
    return of_job


async def add(
    conn: Connection,
    *,
    job_id: str,
    attempt: int,
    run_id: str,
    job_type: str,
    parameters: dict[str, Any],
    submitted_by: str | None,
) -> StageRun:
    values = {
        "job_id": job_id,
        "attempt": attempt,
        "run_id": run_id,
        "job_type": job_type,
        "parameters": to_json(parameters),
        "submitted_by": submitted_by,
    }
    row = await (await conn.execute(queries("stage_jobs").add, values)).fetchone()
    assert row is not None
    return StageRun.from_row(row)


async def latest_run(conn: Connection, job_id: str) -> str | None:
    row = await (await conn.execute(queries("stage_jobs").latest_run, {"job_id": job_id})).fetchone()
    return row["run_id"] if row else None


async def of_run(conn: Connection, run_id: str) -> StageRun | None:
    """Return the attempt that a job of the engine is, or None if it is none."""
    row = await (await conn.execute(queries("stage_jobs").of_run, {"run_id": run_id})).fetchone()
    return StageRun.from_row(row) if row else None


async def superseded(conn: Connection, run_id: str) -> bool:
    """Return whether a later attempt has replaced this one. False for a job that is no attempt."""
    row = await (await conn.execute(queries("stage_jobs").superseded, {"run_id": run_id})).fetchone()
    return row is not None and bool(row["superseded"])


async def page(
    conn: Connection,
    queue_name: str,
    *,
    job_type: str | None = None,
    status: StageStatus | None = None,
    limit: int,
    before: tuple[datetime, str] | None = None,
) -> list[StageJobAttempt]:
    """Return the latest attempt of each job, the newest first."""
    moment, job_id = before or (None, None)
    parameters = {
        "queue_name": queue_name,
        "job_type": job_type,
        "statuses": _rows_of(status),
        "limit": limit,
        "before": moment,
        "before_id": job_id,
    }
    cursor = await conn.execute(queries("stage_jobs").page, parameters)
    return [StageJobAttempt.of(row) for row in await cursor.fetchall()]


def _rows_of(status: StageStatus | None) -> Sequence[str] | None:
    if status is None:
        return None
    states = [state.value for state, word in STATUSES.items() if word is status]
    return [*states, "queued"] if status is StageStatus.QUEUED else states


async def tasks(conn: Connection, run_id: str, node_id: str, *, after: int, limit: int) -> list[dict[str, Any]]:
    """Return the tasks of a stage that were sent. A leased task is running, even if its owner does not know yet."""
    parameters = {"run_id": run_id, "node_id": node_id, "after": after, "limit": limit}
    rows = await (await conn.execute(queries("stage_jobs").tasks, parameters)).fetchall()
    prefix = {"prefix": around_index(run_id, node_id, 1)[0]}
    leased = {
        row["task_id"]: row for row in await (await conn.execute(queries("stage_jobs").running, prefix)).fetchall()
    }
    return [_with_lease(row, run_id, node_id, leased) for row in rows]


def _with_lease(row: dict[str, Any], run_id: str, node_id: str, leased: dict[str, dict[str, Any]]) -> dict[str, Any]:
    engine_id = row["task_id"] or task_id(run_id, node_id, row["item_index"], row["attempt"])
    lease = leased.get(engine_id)
    row = {**row, "task_id": engine_id, "heartbeat": lease["heartbeat_at"] if lease else None}
    if lease and row["status"] == NodeStatus.DISPATCHED:
        row |= {"status": NodeStatus.RUNNING, "started_at": row["started_at"] or lease["started_at"]}
    return row


async def cancelled(conn: Connection, run_id: str) -> dict[str, int]:
    """Return how many tasks were only cancelled, by node."""
    cursor = await conn.execute(queries("stage_jobs").cancelled, {"run_id": run_id})
    return {row["node_id"]: row["tasks"] for row in await cursor.fetchall()}


async def alike(conn: Connection, beginning: str, limit: int) -> list[str]:
    """Return the ids of stage jobs that begin with these hexadecimal digits."""
    cursor = await conn.execute(queries("stage_jobs").alike, {"beginning": beginning, "limit": limit})
    return [row["job_id"] for row in await cursor.fetchall()]
