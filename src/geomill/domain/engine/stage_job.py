"""A stage job: one id for all attempts at the same order, and the names of its states.

The id is the hash of job type and parameters, so the same order has the same id. An attempt is an ordinary job of the
engine with its own id. Its events and results stay with it, even after a later attempt has begun.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, Any, ClassVar

from pydantic import Field

from geomill.domain.engine.job import JobTerms
from geomill.domain.entity import Entity, Index, Json, Key, Now, Subject
from geomill.domain.ids import canonical_json
from geomill.domain.states import JobStatus

JOB_TYPE = r"^[A-Za-z][A-Za-z0-9_-]*$"
LONGEST_JOB_TYPE = 48
PREFIX = "stages."
"""The prefix of a job type in the names of the compiled workflow and of the handler that runs the controller's code."""


class StageStatus(StrEnum):
    """The states of a stage job."""

    QUEUED = "QUEUED"
    PROCESSING = "PROCESSING"
    COMPLETED = "COMPLETED"
    FAILED = "FAILED"


STATUSES: Mapping[JobStatus, StageStatus] = {
    JobStatus.PENDING: StageStatus.QUEUED,
    JobStatus.RUNNING: StageStatus.PROCESSING,
    JobStatus.COMPLETED: StageStatus.COMPLETED,
    JobStatus.FAILED: StageStatus.FAILED,
    JobStatus.CANCELLED: StageStatus.FAILED,
}


class StageJobOrder(JobTerms):
    """A stage job as it is ordered."""

    job_type: Key
    parameters: Json = Field(default_factory=dict)


class StageRun(Entity):
    """One attempt at a stage job."""

    __sql_table__: ClassVar = "dag_stage_jobs"
    __sql_primary_key__: ClassVar = ("job_id", "attempt")
    __sql_indexes__: ClassVar = (
        Index("idx_dag_stage_jobs_run", ("run_id",), unique=True),
        Index("idx_dag_stage_jobs_submitted", ("submitted_at DESC", "job_id")),
    )
    __sql_functions__: ClassVar = ("dagapp.stage_error",)
    __sql_views__: ClassVar = ("app.jobs", "app.tasks")
    __log_fields__: ClassVar = ("job_id", "attempt", "run_id")

    job_id: Key = Field(description="SHA-256 of job type and parameters")
    attempt: Annotated[int, Field(ge=1)] = 1
    run_id: Key = Field(description="The job of the engine")
    job_type: Key
    parameters: Json = Field(default_factory=dict, description="Validated, defaults applied")
    submitted_by: Subject | None = None
    submitted_at: Now


def stage_job_id(job_type: str, parameters: Mapping[str, Any]) -> str:
    """Return the id of a stage job. The hashed text is unambiguous, because a job type contains no brace."""
    return hashlib.sha256((job_type + canonical_json(parameters)).encode()).hexdigest()


def stage_task_id(job_id: str, stage: int, index: str) -> str:
    """Return a task id for people. It is unique within a job; the engine's own task ids contain the whole job id."""
    return f"{job_id[:8]}-s{stage}-{index}"


def workflow_id(job_type: str) -> str:
    return f"{PREFIX}{job_type}"
