"""A job: one execution of one pinned workflow definition, owned by one orchestrator at a time."""

from __future__ import annotations

from datetime import UTC
from enum import StrEnum
from typing import Annotated, Any, ClassVar

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field

from geomill.domain.entity import (
    BigInt,
    Check,
    Entity,
    Follower,
    ForeignKey,
    Index,
    Json,
    Key,
    Name,
    Now,
    SmallInt,
    StateRule,
    Subject,
    changes,
)
from geomill.domain.states import JOB_MACHINE, JobStatus

NORMAL_PRIORITY = 0
Priority = Annotated[SmallInt, Field(ge=-5, le=10)]
"""The priority of a job and its messages. Higher is sooner. Work below normal waits for all other work."""


class JobPurpose(StrEnum):
    """The purpose of a job that belongs to an asset."""

    PROCESS = "process"
    EXPORT = "export"
    WITHDRAW = "withdraw"
    DELETE = "delete"


class JobTerms(BaseModel):
    """The terms of a job's order: its submitter, its priority, and how the submitter finds it again."""

    model_config = ConfigDict(frozen=True)

    priority: Priority = Field(default=NORMAL_PRIORITY, description="Higher is sooner")
    tenant: Name = Field(default="", description="The platform that takes turns for this work; empty for geomill's own")
    correlation_id: Name | None = None
    submitted_by: Subject | None = None
    on_behalf_of: Subject | None = Field(default=None, description="The person whom the submitter named; not verified")
    callback_url: Annotated[str, Field(max_length=512)] | None = None
    idempotency_key: Name | None = None

    def terms(self) -> dict[str, Any]:
        """Return the terms alone, for the next form of the order."""
        return {name: getattr(self, name) for name in JobTerms.model_fields}


class JobOrder(JobTerms):
    """A job as it is ordered. The submission and the row of the job both have these fields."""

    job_id: Key = Field(description="Chosen at submission, so the submitter knows it before the job exists")
    workflow_id: Key
    input_params: Json = Field(default_factory=dict, description="Validated inputs, defaults applied")
    asset_id: Key | None = Field(default=None, description="The asset that the job works for")
    asset_revision: int | None = None
    request_id: Key | None = None
    purpose: JobPurpose = JobPurpose.PROCESS
    retry_of: Key | None = Field(default=None, description="The job that this one repeats with changed inputs")


class NewJob(JobOrder):
    """A job as its owner first writes it. A job that was refused, or cancelled before it began, has no definition."""

    workflow_version: Annotated[int, Field(ge=1)] | None = None
    definition_hash: Key | None = Field(
        default=None, description="The definition to which the job is pinned; null if it was refused at its claim"
    )
    status: JobStatus = JobStatus.PENDING
    result_data: Json | None = Field(default=None, description="The evaluated outputs of the workflow")
    error_message: str | None = Field(default=None, description="Why the job failed, in one sentence")
    failed_node_id: Name | None = None
    owner_id: Name | None = Field(default=None, description="The orchestrator that owns the job")
    deadline_at: AwareDatetime | None = Field(default=None, description="The job fails if it has not ended by then")
    submitted_at: Now


class Job(NewJob, Entity):
    __sql_table__: ClassVar = "dag_jobs"
    __sql_primary_key__: ClassVar = ("job_id",)
    __sql_new__: ClassVar = NewJob
    __sql_foreign_keys__: ClassVar = (
        ForeignKey(("definition_hash",), "dagapp.dag_definitions", ("definition_hash",), on_delete="RESTRICT"),
    )
    __sql_indexes__: ClassVar = (
        Index("idx_dag_jobs_status", ("status", "created_at DESC")),
        Index("idx_dag_jobs_workflow", ("workflow_id", "created_at DESC")),
        Index("idx_dag_jobs_workflow_status", ("workflow_id", "status", "created_at DESC")),
        Index("idx_dag_jobs_created", ("created_at DESC",)),
        Index("idx_dag_jobs_submitter", ("submitted_by", "created_at DESC"), where="submitted_by IS NOT NULL"),
        Index("idx_dag_jobs_owner", ("owner_id",), where="status IN ('pending', 'running')"),
        Index("idx_dag_jobs_deadline", ("deadline_at",), where="deadline_at IS NOT NULL AND completed_at IS NULL"),
        Index("idx_dag_jobs_idempotency", ("idempotency_key",), unique=True, where="idempotency_key IS NOT NULL"),
        Index("idx_dag_jobs_correlation", ("correlation_id", "created_at DESC"), where="correlation_id IS NOT NULL"),
        Index("idx_dag_jobs_asset", ("asset_id", "created_at DESC"), where="asset_id IS NOT NULL"),
        Index(
            "idx_dag_jobs_callback",
            ("completed_at",),
            where="callback_url IS NOT NULL AND completed_at IS NOT NULL AND called_back_run < run_number",
        ),
        Index("idx_dag_jobs_parked", ("parked_at",), where="parked_at IS NOT NULL"),
        Index("idx_dag_jobs_details", ("completed_at",), where="completed_at IS NOT NULL AND details_left"),
        Index("idx_dag_jobs_bare", ("completed_at",), where="NOT details_left AND asset_id IS NULL"),
    )
    __sql_checks__: ClassVar = (
        Check("dag_jobs_completed_at", "(status IN ('completed', 'failed', 'cancelled')) = (completed_at IS NOT NULL)"),
        Check("dag_jobs_started_at", "status <> 'running' OR started_at IS NOT NULL"),
        Check("dag_jobs_pinned", "definition_hash IS NOT NULL OR status IN ('failed', 'cancelled')"),
        Check("dag_jobs_priority", "priority BETWEEN -5 AND 10"),
    )
    __sql_states__: ClassVar = (StateRule("status", JOB_MACHINE),)
    __sql_followers__: ClassVar = (
        Follower("dag_jobs_forget", "DELETE", "dagapp.forget_job"),
        Follower("dag_jobs_follow_new", "INSERT", "app.follow_job", "NEW.asset_id IS NOT NULL"),
        Follower(
            "dag_jobs_follow",
            "UPDATE OF status, node_summary",
            "app.follow_job",
            f"NEW.asset_id IS NOT NULL AND {changes(('status', 'node_summary'))}",
        ),
    )
    __sql_storage__: ClassVar = {"fillfactor": "70"}
    __log_fields__: ClassVar = ("job_id", "workflow_id")

    owner_epoch: BigInt = Field(default=0, description="Raised at every change of owner; the fence compares it")
    owner_heartbeat_at: AwareDatetime | None = Field(
        default=None, description="When the owner took the job; its heartbeat is in dag_instances"
    )

    node_summary: Json | None = Field(
        default=None, description="Progress of a job of an asset; updated from time to time"
    )

    parked_at: AwareDatetime | None = Field(
        default=None, description="When the job was parked, because the database refused its owner's decision"
    )
    parked_reason: str | None = Field(default=None, description="Why the job is parked, with a reference to the log")
    paused_at: AwareDatetime | None = Field(default=None, description="While set, nothing new is dispatched")
    run_number: Annotated[int, Field(ge=1)] = Field(default=1, description="Every retry of the whole job raises it")
    called_back_run: int = Field(default=0, description="The latest run whose end is in dag_callbacks")

    details_deleted_at: AwareDatetime | None = Field(
        default=None, description="When the deletion of nodes, results, logs and events began; bars a retry"
    )
    details_left: bool = Field(default=True, description="Whether any of these details are left")

    created_at: Now
    started_at: AwareDatetime | None = None
    completed_at: AwareDatetime | None = None
    updated_at: Now

    @property
    def details_gone(self) -> str:
        """A message that the details were deleted; empty if they exist."""
        if self.details_deleted_at is None:
            return ""
        return f"its details were deleted on {self.details_deleted_at.astimezone(UTC):%Y-%m-%d at %H:%M} UTC"

    def outcome(self) -> dict[str, Any]:
        """Return the facts about an ended job that its submitter needs."""
        return {
            "job_id": self.job_id,
            "status": self.status.value,
            "result": self.result_data,
            "error": self.error_message,
        }
