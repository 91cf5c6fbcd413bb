"""The status of a stage job, read from the engine's rows."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from geomill.domain.engine.circuit import Circuit, CircuitState
from geomill.domain.engine.job import Job
from geomill.domain.engine.stage_job import StageStatus
from geomill.domain.engine.workflow import FanOutNode, Workflow
from geomill.domain.states import JobStatus, NodeStatus
from geomill.stages import compiler
from geomill.store import circuits, definitions, progress, stage_jobs
from geomill.store.pool import Connection, transaction_time
from geomill.store.progress import JobProgress, NodeProgress
from geomill.store.stage_jobs import StageJobAttempt


@dataclass(frozen=True, slots=True)
class StageView:
    """One stage of an attempt."""

    stage: int
    name: str
    task_type: str
    status: StageStatus
    total: int = 0
    completed: int = 0
    failed: int = 0
    cancelled: int = 0
    """Tasks that were only cancelled."""
    result: dict[str, Any] | None = None
    circuit: Circuit | None = None
    """The open circuit of the task type, if any."""


@dataclass(frozen=True, slots=True)
class StageJobView:
    attempts: list[StageJobAttempt]
    """Attempts, the latest first. All other fields refer to the latest."""
    stages: list[StageView] = field(default_factory=list)
    result: dict[str, Any] | None = None
    now: datetime | None = None

    @property
    def latest(self) -> StageJobAttempt:
        return self.attempts[0]

    @property
    def stage(self) -> int:
        """Return the current stage: the first that is not completed, else the last."""
        open_stages = [view.stage for view in self.stages if view.status is not StageStatus.COMPLETED]
        return open_stages[0] if open_stages else max(len(self.stages), 1)

    @property
    def fraction(self) -> float:
        if not self.stages:
            return 0.0
        return sum(_share(view) for view in self.stages) / len(self.stages)

    @property
    def duration_seconds(self) -> float | None:
        """Return the time from the submission to the end or, if it runs, until now."""
        end = self.latest.completed_at or self.now
        return (end - self.latest.run.submitted_at).total_seconds() if end else None

    @property
    def stage_results(self) -> dict[str, Any]:
        return {f"stage_{view.stage}": view.result for view in self.stages if view.result is not None}


async def view(conn: Connection, queue_name: str, job_id: str, planned: Workflow | None) -> StageJobView:
    """Return the status of a stage job. `planned` is the current workflow, for a job that has not begun."""
    attempts = await stage_jobs.get(conn, queue_name, job_id)
    run_id = attempts[0].run.run_id
    job_progress = await progress.find(conn, run_id)
    definition_hash = job_progress.job.definition_hash if job_progress else None
    workflow = await definitions.get(conn, definition_hash) if definition_hash else planned
    open_circuits = {
        circuit.handler: circuit for circuit in await circuits.read(conn) if circuit.state is CircuitState.OPEN
    }
    cancelled = await stage_jobs.cancelled(conn, run_id)
    stages = _all_stages(workflow, job_progress, open_circuits) if workflow else []
    return StageJobView(
        attempts,
        [replace(stage, cancelled=cancelled.get(compiler.tasks(stage.stage), 0)) for stage in stages],
        job_progress.job.result_data if job_progress else None,
        await transaction_time(conn),
    )


def _all_stages(
    workflow: Workflow, job_progress: JobProgress | None, open_circuits: dict[str, Circuit]
) -> list[StageView]:
    stages = _stages(workflow, job_progress, open_circuits)
    if job_progress and job_progress.job.details_gone:
        return [_remembered(stage, job_progress.job) for stage in stages]
    return stages


def _remembered(stage: StageView, job: Job) -> StageView:
    """Return the stage as far as the job's row describes it, after its details were deleted."""
    result = (job.result_data or {}).get(f"stage_{stage.stage}")
    if job.status is JobStatus.COMPLETED:
        return replace(stage, status=StageStatus.COMPLETED, result=result)
    failed = compiler.stage_of(job.failed_node_id or "") or stage.stage
    status = StageStatus.COMPLETED if stage.stage < failed else StageStatus.QUEUED
    return replace(stage, status=StageStatus.FAILED if stage.stage == failed else status)


def _stages(workflow: Workflow, job_progress: JobProgress | None, open_circuits: dict[str, Circuit]) -> list[StageView]:
    nodes = {node.node_id: node for node in job_progress.nodes} if job_progress else {}
    ended = job_progress is not None and job_progress.job.status in (JobStatus.FAILED, JobStatus.CANCELLED)
    views = []
    fan_outs = [node for node in workflow.nodes.values() if isinstance(node, FanOutNode)]
    for number, node in enumerate(fan_outs, 1):
        task_type = node.task.handler
        fan_out = nodes.get(compiler.tasks(number))
        total, completed, failed = _counts(fan_out)
        views.append(
            StageView(
                stage=number,
                name=node.description or f"stage {number}",
                task_type=task_type,
                status=_status(nodes, number, ended=ended),
                total=total,
                completed=completed,
                failed=failed,
                result=_result(nodes.get(compiler.aggregate(number))),
                circuit=open_circuits.get(task_type) if node.task.circuit_breaker else None,
            )
        )
    return views


def _counts(fan_out: NodeProgress | None) -> tuple[int, int, int]:
    if fan_out is None:
        return 0, 0, 0
    if fan_out.status is NodeStatus.COMPLETED:
        output = fan_out.output
        return output["total"], output["completed"], output["failed"]
    return fan_out.items_total, fan_out.items_completed, fan_out.items_failed


def _status(nodes: dict[str, NodeProgress], number: int, *, ended: bool) -> StageStatus:
    names = (compiler.plan(number), compiler.tasks(number), compiler.results(number), compiler.aggregate(number))
    statuses = [nodes[name].status for name in names if name in nodes]
    if not statuses or statuses[0] in (NodeStatus.PENDING, NodeStatus.SKIPPED):
        return StageStatus.QUEUED
    if statuses[-1] is NodeStatus.COMPLETED:
        return StageStatus.COMPLETED
    return StageStatus.FAILED if ended else StageStatus.PROCESSING


def _result(aggregate: NodeProgress | None) -> dict[str, Any] | None:
    if aggregate is None or aggregate.status is not NodeStatus.COMPLETED:
        return None
    result: dict[str, Any] = aggregate.output["result"]
    return result


def _share(stage: StageView) -> float:
    if stage.status is StageStatus.COMPLETED:
        return 1.0
    return 0.95 * (stage.completed + stage.failed) / stage.total if stage.total else 0.0
