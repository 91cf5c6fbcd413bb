"""A stage job: a name for all attempts at one request, and what its states are called.

The name is the hash of what is asked for, so the same request has the same name. An attempt is an ordinary job of the
engine, with an id of its own: everything that happens to it, also after a later one has begun, stays with it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, Any, ClassVar

from pydantic import Field

from geomill.domain.entity import Entity, Index, Json, Key, Now, Subject
from geomill.domain.ids import canonical_json
from geomill.domain.states import JobStatus

JOB_TYPE = r"^[A-Za-z][A-Za-z0-9_-]*$"
LONGEST_JOB_TYPE = 48
PREFIX = "stages."
"""Before a job type, it names the compiled workflow and the handler that runs the controller's code."""


class StageStatus(StrEnum):
    """The words of the stage model."""

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


class StageRun(Entity):
    """One attempt at a stage job."""

    __sql_table__: ClassVar = "dag_stage_jobs"
    __sql_primary_key__: ClassVar = ("job_id", "attempt")
    __sql_indexes__: ClassVar = (
        Index("idx_dag_stage_jobs_run", ("run_id",), unique=True),
        Index("idx_dag_stage_jobs_submitted", ("submitted_at DESC", "job_id")),
    )
    __log_fields__: ClassVar = ("job_id", "attempt", "run_id")

    job_id: Key = Field(description="SHA-256 of job type and parameters")
    attempt: Annotated[int, Field(ge=1)] = 1
    run_id: Key = Field(description="The engine's job")
    job_type: Key
    parameters: Json = Field(default_factory=dict, description="Validated, defaults applied")
    submitted_by: Subject | None = None
    submitted_at: Now


def stage_job_id(job_type: str, parameters: Mapping[str, Any]) -> str:
    """A job type has no brace in it, so where it ends and the parameters begin is certain."""
    return hashlib.sha256((job_type + canonical_json(parameters)).encode()).hexdigest()


def stage_task_id(job_id: str, stage: int, index: str) -> str:
    """For people. It is unique within a job; the engine's own ids have the whole job in them."""
    return f"{job_id[:8]}-s{stage}-{index}"


def workflow_id(job_type: str) -> str:
    return f"{PREFIX}{job_type}"
