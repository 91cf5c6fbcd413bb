"""The tasks of a stage, as records: read from the engine's rows and the plan of the stage."""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from geomill.domain.engine.large import large_output
from geomill.domain.engine.message import STAGE_TASK_ID
from geomill.domain.engine.stage_job import StageStatus, stage_task_id
from geomill.domain.engine.workflow import FanOutNode
from geomill.domain.states import NodeStatus
from geomill.errors import ConflictError, NotFoundError
from geomill.stages import compiler
from geomill.stages.planning import NEXT
from geomill.storage import Storage
from geomill.store import definitions, progress, stage_jobs
from geomill.store.pool import Connection
from geomill.store.stage_jobs import StageJobAttempt

CANCELLED = "CANCELLED"
"""The status of a task that was only cancelled. A job of such tasks is FAILED, with `cancelled` beside it."""

TASK_ID = re.compile(r"([0-9a-f]{8})-s([0-9]{1,3})-(.{1,100})")
"""The beginning of the job id, the stage and the index, as `stage_task_id` writes them."""
ENGINE_TASK_ID = re.compile(r"([^:]{1,64}):stage([0-9]{1,3})_tasks\[([0-9]{1,9})\]:[0-9]+")

MOST_ALIKE = 5
"""How many jobs whose ids begin alike are searched for a task."""
NOT_SENT: Mapping[str, Any] = {
    "status": NodeStatus.PENDING,
    "task_id": None,
    "attempt": 0,
    "retry_count": 0,
    **dict.fromkeys(("error_message", "heartbeat", "created_at", "updated_at", "started_at", "completed_at", "output")),
}
"""The row of a task that was planned and not sent."""


@dataclass(frozen=True, slots=True)
class StagePlan:
    """The tasks that a stage was planned with."""

    stage: int
    task_type: str = ""
    indexes: list[str] | None = None
    """None if the indexes are positions."""
    parameters: list[dict[str, Any]] = field(default_factory=list)

    def index(self, position: int) -> str:
        return self.indexes[position] if self.indexes else str(position)

    def position(self, index: str) -> int | None:
        """Return the position of a task, or None if the plan has no such task."""
        if self.indexes:
            return self.indexes.index(index) if index in self.indexes else None
        position = int(index) if re.fullmatch(r"0|[1-9][0-9]{0,8}", index) else -1
        return position if 0 <= position < len(self.parameters) else None


@dataclass(frozen=True, slots=True)
class TaskView:
    task_id: str
    engine_task_id: str | None
    parent_job_id: str
    task_type: str
    task_index: str
    stage: int
    status: str
    attempt: int
    retry_count: int
    parameters: dict[str, Any] | None
    error: str | None
    heartbeat: datetime | None
    created_at: datetime | None
    updated_at: datetime | None
    started_at: datetime | None
    completed_at: datetime | None
    result: Any
    next_stage_params: dict[str, Any] | None
    large_metadata_path: str | None
    position: int


async def plan_of(conn: Connection, storage: Storage, attempt: StageJobAttempt, stage: int) -> StagePlan:
    """Return the plan of a stage. It is empty while the stage has not been planned. Raises `NotFoundError` if the job
    has no such stage, or if its details were deleted."""
    job_progress = await progress.find(conn, attempt.run.run_id)
    if job_progress is None or job_progress.job.definition_hash is None:
        return StagePlan(stage)
    if job_progress.job.details_gone:
        raise NotFoundError(f"the tasks of stage {stage} are gone: {job_progress.job.details_gone}")
    workflow = await definitions.get(conn, job_progress.job.definition_hash)
    fan_out = workflow.nodes.get(compiler.tasks(stage))
    if not isinstance(fan_out, FanOutNode):
        raise NotFoundError(f"the job has no stage {stage}", remedy="its status lists the stages")
    outputs = {node.node_id: node.output for node in job_progress.nodes}
    output = outputs.get(compiler.plan(stage))
    if large := large_output(output):
        output = large.value(await storage.read(large.name))
    if not output:
        return StagePlan(stage, fan_out.task.handler)
    parameters = [{name: value for name, value in task.items() if name != STAGE_TASK_ID} for task in output["tasks"]]
    return StagePlan(stage, fan_out.task.handler, output["indexes"], parameters)


async def page(
    conn: Connection, attempt: StageJobAttempt, plan: StagePlan, *, after: int, limit: int
) -> list[TaskView]:
    """Return the tasks of a stage that were sent, in order."""
    node_id = compiler.tasks(plan.stage)
    rows = await stage_jobs.tasks(conn, attempt.run.run_id, node_id, after=after, limit=limit)
    return [_task(attempt, plan, row) for row in rows]


async def find(
    conn: Connection, queue_name: str, storage: Storage, task_id: str, job_id: str | None = None
) -> TaskView:
    """Return a task by its id, in the latest attempt of its job, or by the engine's id of an attempt.
    Task ids contain only the beginning of the job id: `job_id` chooses among jobs that begin alike."""
    if match := ENGINE_TASK_ID.fullmatch(task_id):
        return await _of_engine(conn, queue_name, storage, match, task_id)
    match = TASK_ID.fullmatch(task_id)
    job_ids = await stage_jobs.alike(conn, match[1], MOST_ALIKE) if match else []
    tasks = []
    for alike in [job_id] if job_id in job_ids else job_ids:
        (latest, *_) = await stage_jobs.get(conn, queue_name, alike)
        with suppress(NotFoundError):  # the stage is of another job with such an id
            plan = await plan_of(conn, storage, latest, int(match[2]) if match else 0)
            position = plan.position(match[3]) if match else None
            tasks += [] if position is None else [await _at(conn, latest, plan, position)]
    if len(tasks) > 1:
        jobs = ", ".join(task.parent_job_id for task in tasks)
        raise ConflictError(f"several jobs have a task '{task_id}': {jobs}", remedy="say which with job_id")
    if not tasks:
        raise _unknown(task_id)
    return tasks[0]


async def _of_engine(
    conn: Connection, queue_name: str, storage: Storage, match: re.Match[str], task_id: str
) -> TaskView:
    run = await stage_jobs.of_run(conn, match[1])
    attempts = await stage_jobs.attempts(conn, queue_name, run.job_id) if run else []
    for attempt in attempts:
        if attempt.run.run_id == match[1]:
            plan, position = await plan_of(conn, storage, attempt, int(match[2])), int(match[3])
            if position < len(plan.parameters):
                return await _at(conn, attempt, plan, position)
    raise _unknown(task_id)


async def _at(conn: Connection, attempt: StageJobAttempt, plan: StagePlan, position: int) -> TaskView:
    """Return a planned task, which may not have been sent yet."""
    sent = await page(conn, attempt, plan, after=position - 1, limit=1)
    return sent[0] if sent else _task(attempt, plan, {**NOT_SENT, "item_index": position})


def _unknown(task_id: str) -> NotFoundError:
    return NotFoundError(f"there is no task '{task_id}'", remedy="the status of its job lists the tasks")


def _task(attempt: StageJobAttempt, plan: StagePlan, row: Mapping[str, Any]) -> TaskView:
    position = row["item_index"]
    index, output = plan.index(position), row["output"]
    large = large_output(output)
    handed_over = output.get(NEXT) if isinstance(output, dict) else None
    return TaskView(
        task_id=stage_task_id(attempt.run.job_id, plan.stage, index),
        engine_task_id=row["task_id"],
        parent_job_id=attempt.run.job_id,
        task_type=plan.task_type,
        task_index=index,
        stage=plan.stage,
        status=_status(NodeStatus(row["status"])),
        attempt=row["attempt"],
        retry_count=row["retry_count"],
        parameters=plan.parameters[position] if position < len(plan.parameters) else None,
        error=row["error_message"],
        heartbeat=row["heartbeat"],
        created_at=row["created_at"],
        updated_at=row["updated_at"],
        started_at=row["started_at"],
        completed_at=row["completed_at"],
        result=None if large else output,
        next_stage_params=handed_over if isinstance(handed_over, dict) else None,
        large_metadata_path=str(large.name) if large else None,
        position=position,
    )


def _status(status: NodeStatus) -> str:
    match status:
        case NodeStatus.COMPLETED:
            return StageStatus.COMPLETED
        case NodeStatus.RUNNING:
            return StageStatus.PROCESSING
        case NodeStatus.FAILED:
            return StageStatus.FAILED
        case NodeStatus.CANCELLED | NodeStatus.SKIPPED:
            return CANCELLED
        case _:
            return StageStatus.QUEUED
