"""Messages on the queues: the bodies, and the row that carries one on the PostgreSQL broker."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Annotated, Any, ClassVar, Self

from pydantic import AliasChoices, AwareDatetime, BaseModel, ConfigDict, Field, ValidationError

from geomill.domain.engine.circuit import CircuitBreaker
from geomill.domain.engine.job import NORMAL_PRIORITY, JobPurpose, Priority
from geomill.domain.entity import HOT, BigInt, Check, Entity, Identity, Index, Json, Key, Name, Now, SmallInt, Subject
from geomill.domain.ids import SINGLE, new_id, task_id

JOBS_QUEUE = "dag-jobs"
LIGHT_QUEUE = "functionapp-tasks"
HEAVY_QUEUE = "container-tasks"
WORKER_QUEUE = "dag-worker-tasks"
TASK_QUEUES = (LIGHT_QUEUE, HEAVY_QUEUE, WORKER_QUEUE)


class JobQueueMessage(BaseModel):
    """A work order: from the gateway to whichever orchestrator claims it."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    job_id: Key = Field(default_factory=new_id)
    workflow_id: Key
    input_params: dict[str, Any] = Field(default_factory=dict, validation_alias=AliasChoices("input_params", "inputs"))
    correlation_id: Name | None = None
    submitted_by: Subject | None = None
    callback_url: Annotated[str, Field(max_length=512)] | None = None
    idempotency_key: Name | None = None
    priority: Priority = NORMAL_PRIORITY
    tenant: Name = ""
    """Whose work it is: what waits takes turns between tenants. Empty for the house's own."""
    submitted_at: AwareDatetime | None = None
    asset_id: Key | None = None
    asset_revision: int | None = None
    request_id: Key | None = None
    purpose: JobPurpose = JobPurpose.PROCESS
    message_id: Key = Field(default_factory=new_id)

    @classmethod
    def received(cls, body: Any, enqueued_at: datetime) -> Self:
        """As it was sent. Unless the sender says otherwise, it was submitted when it came to the queue."""
        message = cls.model_validate(body)
        return message if message.submitted_at else message.model_copy(update={"submitted_at": enqueued_at})


class TaskMessage(BaseModel):
    """One attempt at one node: from the owner of the job to a worker. `attempt` is the token of its result."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    task_id: Annotated[str, Field(max_length=200)]
    job_id: Key
    node_id: Key
    item_index: Annotated[int, Field(ge=SINGLE, le=2**31 - 1)] = SINGLE
    handler: Key
    params: dict[str, Any] = Field(default_factory=dict)
    timeout_seconds: Annotated[float, Field(gt=0)]
    progress_timeout_seconds: Annotated[float, Field(gt=0)] | None = None
    retry_count: int = 0
    attempt: Annotated[int, Field(ge=0, le=2**63 - 1)]
    circuit_breaker: CircuitBreaker | None = None

    @property
    def task_id_before(self) -> str:
        """Of the attempt before."""
        return task_id(self.job_id, self.node_id, self.item_index, self.attempt - 1)

    @classmethod
    def received(cls, body: str) -> Self:
        """From JSON, or a ValueError. The quick way takes nothing that is nested some two hundred times: what it
        refuses is read again."""
        try:
            return cls.model_validate_json(body)
        except ValidationError:
            return cls.model_validate(json.loads(body))


class QueueMessage(Entity):
    """A waiting or leased message. Hot: inserted, leased, deleted."""

    __sql_table__: ClassVar = "dag_queue"
    __sql_primary_key__: ClassVar = ("sequence",)
    __sql_indexes__: ClassVar = (
        Index("idx_dag_queue_message", ("queue_name", "message_id"), unique=True),
        Index(
            "idx_dag_queue_ready",
            ("queue_name", "priority DESC", "tenant DESC", "sequence"),
            where="lease_token IS NULL",
        ),
        Index("idx_dag_queue_expiry", ("expires_at",), where="expires_at IS NOT NULL AND lease_token IS NULL"),
        Index("idx_dag_queue_leased", ("leased_by",), where="lease_token IS NOT NULL"),
    )
    __sql_checks__: ClassVar = (
        Check("dag_queue_lease", "(lease_token IS NULL) = (leased_until IS NULL)"),
        Check("dag_queue_priority", "priority BETWEEN -5 AND 10"),
    )
    __sql_storage__: ClassVar = HOT

    sequence: Identity
    queue_name: Key
    message_id: Annotated[str, Field(max_length=200)] = Field(description="Sent twice, it is stored once")
    body: Json
    priority: Priority = NORMAL_PRIORITY
    tenant: Name = Field(default="", description="Whose work it is: tenants take turns")
    visible_at: Now
    expires_at: AwareDatetime | None = None
    delivery_count: int = 0
    losses: int = Field(default=0, description="Workers that were lost while they ran it")
    on_trial: bool = Field(default=False, description="Of the tasks of its worker, it alone is charged for a loss")
    lease_token: BigInt | None = Field(
        default=None, description="New and greater at each delivery that has reached the disk"
    )
    leased_by: Name | None = None
    leased_until: AwareDatetime | None = None
    started_at: AwareDatetime | None = None
    progress: Annotated[float, Field(ge=0, le=1)] | None = None
    progress_message: Annotated[str, Field(max_length=200)] | None = None
    enqueued_at: Now


class DeadLetter(Entity):
    """A message that nobody can handle, kept with the reason until somebody looks."""

    __sql_table__: ClassVar = "dag_dead_letters"
    __sql_primary_key__: ClassVar = ("sequence",)
    __sql_indexes__: ClassVar = (Index("idx_dag_dead_letters_queue", ("queue_name", "sequence DESC")),)

    sequence: Identity
    queue_name: Key
    message_id: Annotated[str, Field(max_length=200)]
    body: Json
    priority: SmallInt = 0
    reason: Name
    description: str
    delivery_count: int = 0
    enqueued_at: Now
    dead_lettered_at: Now
