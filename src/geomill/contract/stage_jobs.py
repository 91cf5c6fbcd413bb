"""Requests and responses of the stage jobs API."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

from pydantic import BaseModel, Field

from geomill.contract.inputs import Person
from geomill.contract.jobs import JobOptions
from geomill.domain.engine.stage_job import StageStatus


class StageOptions(JobOptions):
    """Options in the query. The body holds the parameters of the job."""

    priority: Annotated[int, Field(ge=0, le=10, description="A higher priority runs sooner")] = 0
    on_behalf_of: Person | None = Field(
        default=None, description="The person for whom you submit: recorded and shown, not verified"
    )


class StageAccepted(BaseModel):
    job_id: str = Field(description="SHA-256 of job type and parameters")
    job_type: str
    status: StageStatus
    queue: str
    message_id: str = Field(description="The id of the submission, and of the attempt in /api/v1/jobs")
    attempt: int
    status_url: str
    created_at: datetime


class AttemptSummary(BaseModel):
    attempt: int
    run_id: str = Field(description="The attempt's job id; /api/v1/jobs/{run_id} shows its nodes and events")
    status: StageStatus
    cancelled: bool = False
    error_details: str | None = None
    submitted_at: datetime
    started_at: datetime | None = None
    completed_at: datetime | None = None


class OpenCircuit(BaseModel):
    """The circuit that holds a handler's tasks back."""

    failures: int
    error_code: str
    error_message: str
    opened_at: datetime | None
    probe_at: datetime | None = Field(description="When the next task may run as a probe")


class TaskCounts(BaseModel):
    total: int
    completed: int
    failed: int
    cancelled: int = Field(default=0, description="Tasks that were only cancelled; they are not among the failed")


class StageSummary(BaseModel):
    stage: int
    name: str
    task_type: str
    status: StageStatus
    tasks: TaskCounts
    open_circuit: OpenCircuit | None = None


class StageJobSummary(BaseModel):
    job_id: str
    job_type: str
    status: StageStatus
    cancelled: bool = False
    paused: bool = False
    attempt: int
    run_id: str
    parameters: dict[str, Any]
    error_details: str | None = None
    submitted_by: str | None = None
    created_at: datetime
    updated_at: datetime | None = Field(default=None, description="When it ended or, if it runs, when it began")


class StageJobDetails(StageJobSummary):
    stage: int = Field(description="The number of the current stage, from 1")
    total_stages: int
    stage_results: dict[str, Any] = Field(description="Results of completed stages, by name: `stage_1` and so on")
    result_data: dict[str, Any] | None = Field(description="Result of all stages, once the job has completed")
    stages: list[StageSummary]
    progress: float = Field(description="From 0 to 1")
    duration_seconds: float | None
    attempts: list[AttemptSummary] = Field(description="Attempts, the latest first")


class StageJobPage(BaseModel):
    jobs: list[StageJobSummary]
    next_cursor: str | None = Field(
        default=None, description="Pass it as `cursor` to get the next page; null on the last page"
    )


class StageTaskView(BaseModel):
    task_id: str = Field(description="Beginning of the job id, stage and index; GET /api/jobs/tasks/{task_id} finds it")
    engine_task_id: str | None = Field(
        description="The id of its latest attempt, which the handler has as `ctx.attempt_id`; it finds the task too"
    )
    parent_job_id: str
    task_type: str
    task_index: str
    stage: int
    status: str = Field(description="QUEUED, PROCESSING, COMPLETED, FAILED, or CANCELLED if it was only cancelled")
    attempt: int
    retry_count: int = Field(description="How often it was tried again after a failure")
    parameters: dict[str, Any] | None
    error_details: str | None
    heartbeat: datetime | None = Field(description="When the worker that runs it was last heard of; null if none does")
    created_at: datetime | None = Field(description="When it was sent; null if it still waits")
    updated_at: datetime | None
    started_at: datetime | None
    completed_at: datetime | None
    result_data: Any
    next_stage_params: dict[str, Any] | None
    large_metadata_path: str | None


class StageTaskPage(BaseModel):
    tasks: list[StageTaskView]
    next_after: int | None = Field(
        default=None, description="Pass it as `after` to get the following tasks; null on the last page"
    )


class StageType(BaseModel):
    """A stage as declared."""

    stage: int
    name: str
    task_type: str
    max_parallel_tasks: int | None
    timeout_minutes: float
    allow_partial: bool | str
    open_circuit: OpenCircuit | None = None


class JobType(BaseModel):
    job_type: str
    description: str
    total_stages: int
    stages: list[StageType]
    workflow_id: str = Field(description="The workflow that the job type compiles to")
    parameters_schema: dict[str, Any] = Field(description="JSON Schema of the parameters")
    submit_url: str
