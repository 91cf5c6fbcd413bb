"""What a worker reports of one attempt, and what it saves on the way."""

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
    """Handed back unfinished, by a worker that was told to stop: tried again, not counted as a failure."""
    CANCEL = "cancel"
    PAUSE = "pause"
    RESUME = "resume"


class AttemptResult(Entity):
    """Append-only: one row per attempt that ended while it was the current one."""

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
    metrics: Json = Field(default_factory=dict)
    started_at: AwareDatetime | None = None
    reported_at: Now


class InboxEntry(Entity):
    """A report that the job's owner has not taken yet. Hot and tiny: inserted by workers, deleted by the owner.

    Items of a fan-out that ended the same way at once are one report. What an attempt returned stands in its
    `TaskResult`; a report of "running" or "abandoned" has none.
    """

    __sql_table__: ClassVar = "dag_inbox"
    __sql_primary_key__: ClassVar = ("owner_id", "sequence")
    __sql_storage__: ClassVar = HOT

    sequence: Identity
    owner_id: Name = Field(default="", description="The job's owner when the report came; empty when it had none")
    job_id: Key
    node_id: Name = ""
    items: Annotated[list[int], SqlType("integer[]"), SqlDefault("'{-1}'")] = Field(
        default=[SINGLE], description="Positions in the fan-out's list, or -1 alone"
    )
    attempt: BigInt = 0
    task_id: TaskId = Field(default="", description="Of the result that the owner has to see; empty if there is none")
    report: TaskReport
    reason: Annotated[str, Field(max_length=500)] | None = Field(default=None, description="Of a command")
    worker_id: Name | None = None
    started_at: AwareDatetime | None = None


class Checkpoint(Entity):
    """Where a task can resume. One per node and item: the next attempt reads what the last one saved."""

    __sql_table__: ClassVar = "dag_checkpoints"
    __sql_primary_key__: ClassVar = ("job_id", "node_id", "item_index")
    __sql_foreign_keys__: ClassVar = (ForeignKey(("job_id",), "dagapp.dag_jobs", ("job_id",)),)

    job_id: Key
    node_id: Key
    item_index: int = SINGLE
    phase: Name
    data: Json = Field(default_factory=dict)
    attempt: BigInt = Field(description="The attempt that saved it; an older attempt never overwrites a newer one's")
    saved_at: Now
