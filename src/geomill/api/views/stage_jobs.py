"""Views of stage jobs."""

from __future__ import annotations

from typing import Any

from geomill.contract.stage_jobs import (
    AttemptSummary,
    JobType,
    OpenCircuit,
    StageAccepted,
    StageJobDetails,
    StageJobSummary,
    StageSummary,
    StageTaskView,
    StageType,
    TaskCounts,
)
from geomill.domain.engine.stage_job import StageStatus
from geomill.domain.states import JobStatus
from geomill.stages.registration import StageJob
from geomill.stages.status import StageJobView, StageView
from geomill.stages.submission import Submitted
from geomill.stages.tasks import TaskView
from geomill.store.stage_jobs import StageJobAttempt


def stage_accepted(submitted: Submitted, queue: str) -> StageAccepted:
    run = submitted.run
    return StageAccepted(
        job_id=run.job_id,
        job_type=run.job_type,
        status=submitted.status,
        queue=queue,
        message_id=run.run_id,
        attempt=run.attempt,
        status_url=f"/api/jobs/status/{run.job_id}",
        created_at=run.submitted_at,
    )


def stage_job_summary(attempt: StageJobAttempt) -> StageJobSummary:
    return StageJobSummary(**_summary_fields(attempt))


def _summary_fields(attempt: StageJobAttempt) -> dict[str, Any]:
    run = attempt.run
    return {
        "job_id": run.job_id,
        "job_type": run.job_type,
        "status": attempt.status,
        "cancelled": attempt.job_status is JobStatus.CANCELLED,
        "paused": attempt.paused_at is not None and attempt.status is StageStatus.PROCESSING,
        "attempt": run.attempt,
        "run_id": run.run_id,
        "parameters": run.parameters,
        "error_details": attempt.error,
        "submitted_by": run.submitted_by,
        "created_at": run.submitted_at,
        "updated_at": attempt.completed_at or attempt.started_at,
    }


def stage_job_details(job: StageJobView) -> StageJobDetails:
    return StageJobDetails(
        **_summary_fields(job.latest),
        stage=job.stage,
        total_stages=len(job.stages),
        stage_results=job.stage_results,
        result_data=job.result,
        stages=[_stage_summary(stage) for stage in job.stages],
        progress=1.0 if job.latest.status is StageStatus.COMPLETED else round(job.fraction, 4),
        duration_seconds=job.duration_seconds,
        attempts=[_attempt_summary(attempt) for attempt in job.attempts],
    )


def _attempt_summary(attempt: StageJobAttempt) -> AttemptSummary:
    return AttemptSummary(
        attempt=attempt.run.attempt,
        run_id=attempt.run.run_id,
        status=attempt.status,
        cancelled=attempt.job_status is JobStatus.CANCELLED,
        error_details=attempt.error,
        submitted_at=attempt.run.submitted_at,
        started_at=attempt.started_at,
        completed_at=attempt.completed_at,
    )


def _stage_summary(stage: StageView) -> StageSummary:
    circuit = stage.circuit
    return StageSummary(
        stage=stage.stage,
        name=stage.name,
        task_type=stage.task_type,
        status=stage.status,
        tasks=TaskCounts(total=stage.total, completed=stage.completed, failed=stage.failed, cancelled=stage.cancelled),
        open_circuit=OpenCircuit.model_validate(circuit, from_attributes=True) if circuit else None,
    )


def stage_task_view(task: TaskView) -> StageTaskView:
    own = {"error_details": task.error, "result_data": task.result}
    shared = {name: getattr(task, name) for name in StageTaskView.model_fields if name not in own}
    return StageTaskView(**shared, **own)


def job_type_view(job: StageJob, circuits: dict[str, OpenCircuit]) -> JobType:
    stages = [
        StageType(
            stage=stage.stage_number,
            name=stage.stage_name,
            task_type=stage.task_type,
            max_parallel_tasks=job.parallel(stage.stage_number),
            timeout_minutes=stage.timeout_minutes,
            allow_partial=stage.allow_partial,
            open_circuit=circuits.get(stage.task_type) if stage.circuit_breaker else None,
        )
        for stage in job.definition.stages
    ]
    return JobType(
        job_type=job.job_type,
        description=job.description,
        total_stages=len(stages),
        stages=stages,
        workflow_id=job.workflow_id,
        parameters_schema=job.controller.parameters_schema(),
        submit_url=f"/api/jobs/submit/{job.job_type}",
    )
