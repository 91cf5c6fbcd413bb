"""The progress of a job: its row, one line per node, and the messages of its running tasks."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from operator import itemgetter
from typing import Any

from geomill.domain.engine.job import Job
from geomill.domain.ids import around_index, task_id
from geomill.domain.states import JOB_MACHINE, NODE_MACHINE, JobStatus, NodeStatus
from geomill.sql import queries
from geomill.store import attendance, jobs
from geomill.store.pool import Connection

LEAST_FRACTION = 0.02
"""Below this share of a job, its end cannot be estimated."""


@dataclass(frozen=True, slots=True)
class NodeProgress:
    node_id: str
    status: NodeStatus
    attempt: int
    retry_count: int
    error: str | None
    output: Any
    started_at: datetime | None
    completed_at: datetime | None
    items_total: int = 0
    items_completed: int = 0
    items_failed: int = 0
    fraction: float | None = None
    message: str = ""
    task_id: str | None = None
    worker_id: str | None = None
    dispatched_at: datetime | None = None
    error_code: str | None = None

    @property
    def terminal(self) -> bool:
        return self.status in NODE_MACHINE.terminal


@dataclass(frozen=True, slots=True)
class JobProgress:
    job: Job
    nodes: tuple[NodeProgress, ...]
    waits: tuple[str, ...] = ()
    """Sentences about workers that the job waits for and that do not exist."""

    @property
    def fraction(self) -> float:
        """Return the share of nodes that have ended. Running nodes count by their own progress."""
        if not self.nodes:
            return 0.0
        return sum(1.0 if node.terminal else node.fraction or 0.0 for node in self.nodes) / len(self.nodes)

    def remaining(self, now: datetime) -> float | None:
        """Return the seconds to go at the pace so far, or None if that cannot be estimated."""
        job, fraction = self.job, self.fraction
        if job.status is not JobStatus.RUNNING or job.paused_at or job.started_at is None or job.run_number > 1:
            return None
        if not LEAST_FRACTION <= fraction < 1:
            return None
        return (now - job.started_at).total_seconds() * (1 - fraction) / fraction


async def find(conn: Connection, job_id: str) -> JobProgress | None:
    """Return the progress of a job, or None while the job has not been claimed."""
    job = await jobs.find(conn, job_id)
    if job is None:
        return None
    running = await _running(conn, job_id)
    cursor = await conn.execute(queries("nodes").summary, {"job_id": job_id})
    rows = await cursor.fetchall()
    nodes = [_fan_out(row, running) if row["items_total"] else _single(row, running) for row in rows]
    unserved = await _unserved(conn, job, rows, running)
    for place, node in enumerate(nodes):
        if queue := unserved.get(node.node_id):
            nodes[place] = replace(node, message=_waits(queue))
    waits = tuple(f"the step '{node_id}' {_waits(queue)}" for node_id, queue in unserved.items())
    return JobProgress(job, tuple(nodes), waits)


def _waits(queue_name: str) -> str:
    return f"waits for a worker of the queue '{queue_name}': there is none"


async def _unserved(conn: Connection, job: Job, rows: list[dict[str, Any]], running: dict[str, Any]) -> dict[str, str]:
    """Return the nodes whose tasks wait in a queue that nobody serves, each with the name of the queue."""
    if job.status in JOB_MACHINE.terminal:
        return {}
    tasks = {_last_task(row): str(row["node_id"]) for row in rows if row["status"] in ("dispatched", "running")}
    waiting = [task for task in tasks if task not in running]
    if not waiting:
        return {}
    return {tasks[task]: queue_name for task, queue_name in (await attendance.waits(conn, waiting)).items()}


def _last_task(row: dict[str, Any]) -> str:
    """Return the id of the task that a node waits for. For a fan-out, that is the first attempt at the item sent last,
    because items are taken in the order of the list."""
    if row["items_total"]:
        return task_id(row["job_id"], row["node_id"], (row["items_sent"] or row["items_total"]) - 1, 1)
    return str(row["task_id"])


async def _running(conn: Connection, job_id: str) -> dict[str, dict[str, Any]]:
    cursor = await conn.execute(queries("queue").running, {"prefix": f"{job_id}:"})
    return {row["task_id"]: row for row in await cursor.fetchall()}


def _single(row: dict[str, Any], running: dict[str, dict[str, Any]]) -> NodeProgress:
    """Return the progress of a node with one task. A leased task is running, even if its owner does not know yet."""
    task = running.get(row["task_id"], {})
    status = NodeStatus(row["status"])
    if task and status is NodeStatus.DISPATCHED:
        status = NodeStatus.RUNNING
    started_at = row["started_at"] or task.get("started_at")
    row["worker_id"] = row["worker_id"] or task.get("leased_by")
    return _node(row, status, started_at, task.get("progress"), task.get("progress_message") or "")


def _fan_out(row: dict[str, Any], running: dict[str, dict[str, Any]]) -> NodeProgress:
    """Return the progress of a fan-out. Running items count by their own progress. The latest message is shown."""
    before, _ = around_index(row["job_id"], row["node_id"], 1)
    items = [task for task_id, task in running.items() if task_id.startswith(before)]
    items.sort(key=itemgetter("started_at"))
    ended = row["items_completed"] + row["items_failed"] + sum(task["progress"] or 0.0 for task in items)
    messages = [task["progress_message"] for task in items if task["progress_message"]]
    fraction = min(ended / row["items_total"], 1.0)
    return _node(row, NodeStatus(row["status"]), row["started_at"], fraction, messages[-1] if messages else "")


def _node(
    row: dict[str, Any], status: NodeStatus, started_at: datetime | None, fraction: float | None, message: str
) -> NodeProgress:
    return NodeProgress(
        node_id=row["node_id"],
        status=status,
        attempt=row["attempt"],
        retry_count=row["retry_count"],
        error=row["error_message"],
        output=row["output"],
        started_at=started_at,
        completed_at=row["completed_at"],
        items_total=row["items_total"],
        items_completed=row["items_completed"],
        items_failed=row["items_failed"],
        fraction=fraction,
        message=message,
        task_id=row["task_id"],
        worker_id=row["worker_id"],
        dispatched_at=row["dispatched_at"],
        error_code=row["error_code"],
    )
