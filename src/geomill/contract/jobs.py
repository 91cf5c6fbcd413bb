"""Requests and responses of the jobs API."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal, Self

from pydantic import (
    AfterValidator,
    AliasChoices,
    AwareDatetime,
    BaseModel,
    ConfigDict,
    Field,
    StringConstraints,
    model_validator,
)

from geomill.contract.inputs import ApiInput, Person, Text, Url, storable
from geomill.domain.engine.event import JobEvent
from geomill.domain.engine.job import Job
from geomill.domain.engine.message import JobQueueMessage
from geomill.domain.states import JOB_MACHINE

QUEUED = "queued"
"""The status of a job that no orchestrator has claimed: it has a message but no row."""


ListedStatus = Literal["queued", "pending", "running", "completed", "failed", "cancelled"]
ErrorText = Annotated[str, StringConstraints(min_length=2, max_length=200), AfterValidator(storable)]
SubjectText = Annotated[str, StringConstraints(min_length=1, max_length=200), AfterValidator(storable)]


class JobFilters(ApiInput):
    """Filters of jobs. A job must pass all of them."""

    status: Annotated[list[ListedStatus], Field(max_length=6)] = Field(
        default=[], description="Repeat it for several. `queued` are the jobs that no orchestrator has claimed"
    )
    workflow_id: Text | None = None
    asset_id: Text | None = None
    submitted_by: SubjectText | None = Field(default=None, description="The subject of the credential")
    correlation_id: Text | None = None
    created_from: AwareDatetime | None = Field(
        default=None, description="Created at this time or later. A queued job counts from its submission"
    )
    created_to: AwareDatetime | None = Field(default=None, description="Created before this time")
    error: ErrorText | None = Field(
        default=None, description="A part of the error message, in any case. `%` and `_` have no special meaning"
    )
    parked: bool | None = Field(default=None, description="Only parked jobs, or only others")
    paused: bool | None = Field(default=None, description="Only unfinished jobs that are paused, or only others")


class JobListOptions(JobFilters):
    limit: Annotated[int, Field(ge=1, le=1000)] = 50
    cursor: Annotated[str, Field(max_length=400)] | None = Field(
        default=None, description="`next_cursor` of the previous page"
    )


class JobOptions(ApiInput):
    """Options of every job submitted over HTTP."""

    correlation_id: Text | None = Field(default=None, description="An id of your own by which to find the job")
    callback_url: Url | None = Field(default=None, description="Called when the job has ended")


class JobSubmission(JobOptions):
    """A job to run."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={"examples": [{"workflow_id": "hello_world", "input_params": {"name": "Ada"}}]},
    )

    workflow_id: Text
    input_params: dict[str, Any] = Field(
        default_factory=dict,
        validation_alias=AliasChoices("input_params", "inputs"),
        description="Inputs as the workflow declares them; `inputs` is accepted as a name too",
    )
    priority: Annotated[int, Field(ge=0, le=10, strict=True, description="A higher priority runs sooner")] = 0
    idempotency_key: Text | None = Field(
        default=None, description="The same key gives the same job; 409 if the submission differs from the first"
    )
    on_behalf_of: Person | None = Field(
        default=None,
        validation_alias=AliasChoices("on_behalf_of", "submitted_by"),
        description="The person for whom you submit: recorded and shown, not verified. `submitted_by` is accepted too",
    )


class Cancellation(ApiInput):
    reason: Annotated[str, StringConstraints(min_length=1, max_length=500), AfterValidator(storable)] = "cancelled"


class RetryOptions(ApiInput):
    """The part of a job to run again. Without any of these, the nodes and items that did not complete run again."""

    model_config = ConfigDict(
        extra="forbid", json_schema_extra={"examples": [{"from_node": "load"}, {"input_params": {"name": "Ada"}}]}
    )

    from_node: Text | None = Field(default=None, description="This node and all nodes after it run again, too")
    only_failed: bool = Field(
        default=False,
        description="Only nodes and items that did not complete run again, which is what happens without it",
    )
    input_params: dict[str, Any] | None = Field(
        default=None,
        description="Inputs that change: a new job repeats the old one, which must have ended. `{}` changes none",
    )

    @model_validator(mode="after")
    def _one_intent(self) -> Self:
        intents = (self.from_node is not None) + self.only_failed + (self.input_params is not None)
        if intents > 1:
            raise ValueError("give one of from_node, only_failed and input_params")
        return self


class JobAccepted(BaseModel):
    job_id: str
    status: str = Field(description="`queued`, or the status of the job that already has the idempotency key")
    workflow_id: str
    message_id: str = Field(description="The id of the message on the queue, which is that of the job")
    submitted_at: datetime | None
    status_url: str
    events_url: str
    stream_url: str

    @classmethod
    def of(cls, order: Job | JobQueueMessage, status: str) -> Self:
        here = f"/api/v1/jobs/{order.job_id}"
        return cls(
            job_id=order.job_id,
            status=status,
            workflow_id=order.workflow_id,
            message_id=order.job_id,
            submitted_at=order.submitted_at,
            status_url=here,
            events_url=f"{here}/events",
            stream_url=f"{here}/stream",
        )


class JobSummary(BaseModel):
    job_id: str
    workflow_id: str
    workflow_version: int | None = None
    status: str = Field(description="`queued`, or a state of the job machine")
    paused: bool = False
    parked_at: datetime | None = Field(
        default=None,
        description="When the job was parked because the database refused a write. An operator can release it",
    )
    parked_reason: str | None = None
    priority: int = 0
    correlation_id: str | None = None
    idempotency_key: str | None = None
    run_number: int = 1
    submitted_by: str | None = Field(default=None, description="The subject of the credential, or `schedule`")
    on_behalf_of: str | None = Field(default=None, description="The person whom the submitter named; not verified")
    submitted_at: datetime | None = None
    created_at: datetime | None = None
    started_at: datetime | None = None
    completed_at: datetime | None = None
    error: str | None = None
    failed_node_id: str | None = None
    asset_id: str | None = Field(default=None, description="The asset that the job works for")
    asset_name: str | None = Field(
        default=None, description="The id of that asset in the catalogue; only in lists of jobs"
    )
    asset_revision: int | None = None
    request_id: str | None = None
    purpose: str = Field(default="process", description="`process`, `export`, `withdraw` or `delete`")
    tenant: str = Field(default="", description="The platform whose turn the job takes; empty for geomill's own work")
    retry_of: str | None = Field(default=None, description="The job that this one repeats with changed inputs")
    definition_hash: str | None = Field(default=None, description="The definition to which the job is pinned")
    deadline_at: datetime | None = Field(default=None, description="The job fails if it has not ended by then")
    owner_id: str | None = Field(default=None, description="The orchestrator that owns the job")
    wait_seconds: float | None = Field(default=None, description="From the submission to the start")
    run_seconds: float | None = Field(default=None, description="From the first start to the end, or until now")
    details_deleted_at: datetime | None = Field(
        default=None, description="When its nodes, events and logs were deleted. It can no longer be retried"
    )

    @classmethod
    def of(cls, job: Job, **more: Any) -> Self:
        shared = {name: getattr(job, name) for name in JobSummary.model_fields if hasattr(job, name)}
        own = {
            "status": job.status.value,
            "paused": _is_paused(job),
            "error": job.error_message,
            "purpose": job.purpose.value,
            "wait_seconds": seconds_between(job.submitted_at, job.started_at),
            "run_seconds": seconds_between(job.started_at, job.completed_at),
        }
        return cls(**{**shared, **own, **more})

    @classmethod
    def waiting(cls, message: JobQueueMessage) -> JobSummary:
        """Return the summary of a job that no orchestrator has claimed."""
        shared = {name: value for name, value in message if name in JobSummary.model_fields}
        return JobSummary(**{**shared, "purpose": message.purpose.value}, status=QUEUED)


class ItemCounts(BaseModel):
    """Items of a fan-out by state."""

    total: int
    completed: int
    failed: int


class EdgeView(BaseModel):
    """An arrow of the job's graph."""

    to: str
    branch: str | None = Field(default=None, description="The branch of a conditional, by its name or condition")
    taken: bool | None = Field(default=None, description="Whether the job went this way; null until that is decided")


class NodeView(BaseModel):
    node_id: str
    status: str
    attempt: int
    retry_count: int
    type: str | None = None
    handler: str | None = None
    queue: str | None = None
    task_id: str | None = None
    worker_id: str | None = Field(default=None, description="The worker that has the task, or had it last")
    dispatched_at: datetime | None = None
    started_at: datetime | None = None
    completed_at: datetime | None = None
    wait_seconds: float | None = Field(default=None, description="From the dispatch to the start")
    run_seconds: float | None = Field(default=None, description="From the start to the end, or until now")
    error: str | None = None
    error_code: str | None = None
    progress: float | None = Field(default=None, description="From 0 to 1; null if unknown")
    message: str = Field(default="", description="The handler's latest progress message")
    items: ItemCounts | None = None
    output: Any = None
    next: list[EdgeView] = Field(default=[], description="The arrows to the nodes that may follow")


class MixedVersions(BaseModel):
    """A handler whose code changed while a job ran."""

    handler: str
    versions: list[str] = Field(description="The code versions that ran, the earliest first")


class Progress(BaseModel):
    fraction: float = Field(description="The share of nodes that have ended, from 0 to 1")
    nodes_total: int = 0
    nodes_ended: int = 0
    items_total: int = 0
    items_ended: int = 0
    remaining_seconds: float | None = Field(
        default=None, description="An estimate from the speed so far; null if unknown"
    )
    eta: datetime | None = None
    waits: list[str] = Field(default=[], description="Missing things that block the job, such as a worker for a queue")

    @classmethod
    def queued(cls, reason: str | None) -> Self:
        return cls(fraction=0.0, waits=[reason] if reason else [])


class JobDetails(JobSummary):
    owner_heartbeat_at: datetime | None = Field(
        default=None, description="When the job's owner last said that it is alive; null if the job has no live owner"
    )
    input_params: dict[str, Any] = {}
    result: Any = None
    progress: Progress
    nodes: list[NodeView] = []
    mixed_versions: list[MixedVersions] = Field(
        default=[], description="Handlers of which this job ran more than one code version. Normally there are none"
    )

    @classmethod
    def queued(cls, message: JobQueueMessage, reason: str | None = None) -> Self:
        """`reason` says why the job is unclaimed, if that is known."""
        shared = {name: value for name, value in message if name in cls.model_fields}
        shared["purpose"] = message.purpose.value
        return cls(**shared, status=QUEUED, progress=Progress.queued(reason))


class JobPage(BaseModel):
    jobs: list[JobSummary]
    next_cursor: str | None = Field(
        default=None,
        description="Pass it as `cursor` to get the next page; null on the last page. A page may be short, or even "
        "empty, and still have a next one: a request examines a bounded number of jobs",
    )


class JobCountsView(BaseModel):
    """Jobs by status."""

    counts: dict[str, int]
    at_least: list[str] = Field(
        description="The statuses of which there may be more: counting ends after a bounded number of jobs"
    )
    counted_at: datetime


class HistogramOptions(JobFilters):
    """Filters, and the number of parts. Without times, the last two hours."""

    parts: Annotated[int, Field(ge=1, le=200)] = Field(default=60, description="Into how many parts to cut the time")


class HistogramPart(BaseModel):
    begins_at: datetime
    counts: dict[str, int] = Field(description="Jobs created in this part, by their status now; zeros are left out")


class WorkflowCounts(BaseModel):
    workflow_id: str
    counts: dict[str, int]


class JobHistogram(BaseModel):
    """Jobs over time, and by workflow. Jobs that wait to be claimed are not among them."""

    created_from: datetime
    created_to: datetime
    parts: list[HistogramPart]
    workflows: list[WorkflowCounts] = Field(
        description="The 50 with the most jobs, those first; only of parts that begin at `complete_from` or later"
    )
    more: bool = Field(
        description="Whether there may be more: of each status at most the newest 20,000 jobs are counted"
    )
    complete_from: datetime | None = Field(
        default=None,
        description="If there may be more: the time since which every job is counted. Earlier parts have too few, and "
        "not the same share of each status",
    )


class EventPage(BaseModel):
    events: list[JobEvent]
    next_after: int = Field(description="Pass it as `after` to get the following events")
    details_deleted_at: datetime | None = Field(default=None, description="When the job's events were deleted")


class ActionAccepted(BaseModel):
    """The command was sent to the job's owner. The job changes a moment later."""

    job_id: str
    action: str
    status: str
    status_url: str
    retry_of: str | None = Field(default=None, description="The job that the new one repeats")


def seconds_between(begin: datetime | None, end: datetime | None) -> float | None:
    """Return the seconds from one time to another, or None if one of them is not known."""
    return None if begin is None or end is None else round(max((end - begin).total_seconds(), 0.0), 3)


def _is_paused(job: Job) -> bool:
    return job.paused_at is not None and job.status not in JOB_MACHINE.terminal
