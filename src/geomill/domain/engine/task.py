"""Reports, results and checkpoints of attempts."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any, ClassVar

from pydantic import AwareDatetime, Field

from geomill.domain.entity import (
    HOT,
    BigInt,
    Entity,
    ForeignKey,
    Identity,
    Index,
    Json,
    Key,
    Name,
    Now,
    SqlDefault,
    SqlType,
)
from geomill.domain.ids import SINGLE

TaskId = Annotated[str, Field(max_length=200)]


class TaskStatus(StrEnum):
    COMPLETED = "completed"
    FAILED = "failed"


class TaskReport(StrEnum):
    """A report about an attempt, or a command about a whole job to its owner."""

    __sql_name__ = "report"

    RUNNING = "running"
    COMPLETED = "completed"
    FAILED = "failed"
    ABANDONED = "abandoned"
    """The worker stopped and handed the task back unfinished. It is retried, and this is not counted as a failure."""
    CANCEL = "cancel"
    PAUSE = "pause"
    RESUME = "resume"


class AttemptResult(Entity):
    """The result of an attempt that ended while it was the current one. Rows are only added."""

    __sql_table__: ClassVar = "dag_task_results"
    __sql_primary_key__: ClassVar = ("task_id",)
    __sql_retired__: ClassVar = ("dag_task_results_job_id_fkey",)
    __sql_indexes__: ClassVar = (Index("idx_dag_task_results_reported", ("reported_at",), method="brin"),)

    task_id: TaskId
    job_id: Key
    node_id: Key
    item_index: int = SINGLE
    attempt: BigInt
    status: TaskStatus
    output: Any | None = None
    error_message: str | None = None
    error_code: Name | None = None
    retryable: bool = True
    worker_id: Name | None = None
    handler_version: Name | None = Field(
        default=None, description="The code version of the handler that ran; null if none did"
    )
    metrics: Json = Field(default_factory=dict)
    started_at: AwareDatetime | None = None
    reported_at: Now


class InboxEntry(Entity):
    """A report that the job's owner has not taken yet. Workers insert the rows, the owner deletes them.

    Items of a fan-out that ended the same way at the same time are one report. The output of an attempt is in its
    `AttemptResult`; a report of "running" or "abandoned" has none.
    """

    __sql_table__: ClassVar = "dag_inbox"
    __sql_primary_key__: ClassVar = ("owner_id", "sequence")
    __sql_storage__: ClassVar = HOT

    sequence: Identity
    owner_id: Name = Field(default="", description="The job's owner when the report arrived; empty if it had none")
    job_id: Key
    node_id: Name = ""
    items: Annotated[list[int], SqlType("integer[]"), SqlDefault("'{-1}'")] = Field(
        default=[SINGLE], description="Positions in the fan-out's list; -1 alone for a node"
    )
    attempt: BigInt = 0
    task_id: TaskId = Field(default="", description="The task whose result the owner must read; empty if there is none")
    report: TaskReport
    reason: Annotated[str, Field(max_length=500)] | None = Field(default=None, description="The reason for a command")
    worker_id: Name | None = None
    started_at: AwareDatetime | None = None


class Checkpoint(Entity):
    """The place from which the next attempt can resume. There is one per node or item."""

    __sql_table__: ClassVar = "dag_checkpoints"
    __sql_primary_key__: ClassVar = ("job_id", "node_id", "item_index")
    __sql_foreign_keys__: ClassVar = (ForeignKey(("job_id",), "dagapp.dag_jobs", ("job_id",)),)

    job_id: Key
    node_id: Key
    item_index: int = SINGLE
    phase: Name
    data: Json = Field(default_factory=dict)
    attempt: BigInt = Field(description="The attempt that saved it; an older attempt never overwrites a newer one")
    saved_at: Now
