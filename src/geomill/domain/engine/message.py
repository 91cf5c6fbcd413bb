"""Messages on the queues: their bodies, and their rows in the PostgreSQL broker."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Annotated, Any, ClassVar, Self

from pydantic import AliasChoices, AwareDatetime, BaseModel, ConfigDict, Field, ValidationError

from geomill.domain.engine.circuit import CircuitBreaker
from geomill.domain.engine.job import NORMAL_PRIORITY, JobOrder, Priority
from geomill.domain.entity import HOT, BigInt, Check, Entity, Identity, Index, Json, Key, Name, Now, SmallInt
from geomill.domain.ids import SINGLE, new_id, task_id

JOBS_QUEUE = "dag-jobs"
LIGHT_QUEUE = "functionapp-tasks"
HEAVY_QUEUE = "container-tasks"
WORKER_QUEUE = "dag-worker-tasks"
TASK_QUEUES = (LIGHT_QUEUE, HEAVY_QUEUE, WORKER_QUEUE)
STAGE_TASK_ID = "__stage_task_id__"
"""The parameter that carries the task id of a stage job to the worker. Handlers do not get it."""


class JobQueueMessage(JobOrder):
    """The submission of a job, for any orchestrator to claim."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    job_id: Key = Field(default_factory=new_id)
    input_params: Json = Field(default_factory=dict, validation_alias=AliasChoices("input_params", "inputs"))
    submitted_at: AwareDatetime | None = None
    message_id: Key = Field(default_factory=new_id)

    @classmethod
    def received(cls, body: Any, enqueued_at: datetime) -> Self:
        """Read a message. Without a time from the sender, it was submitted when it was enqueued."""
        message = cls.model_validate(body)
        return message if message.submitted_at else message.model_copy(update={"submitted_at": enqueued_at})


class TaskMessage(BaseModel):
    """One attempt at one node, sent by the owner of the job to a worker. `attempt` is the token of its report."""

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
    def shown_task_id(self) -> str:
        """The id under which people find the task. In a stage job it contains the index and is the same for each
        attempt."""
        return str(self.params.get(STAGE_TASK_ID, self.task_id))

    @property
    def handler_params(self) -> dict[str, Any]:
        """The parameters for the handler."""
        if STAGE_TASK_ID not in self.params:
            return self.params
        return {name: value for name, value in self.params.items() if name != STAGE_TASK_ID}

    @property
    def task_id_before(self) -> str:
        """The task id of the previous attempt."""
        return task_id(self.job_id, self.node_id, self.item_index, self.attempt - 1)

    @classmethod
    def received(cls, body: str) -> Self:
        """Read a message from JSON. Raises ValueError if it is invalid. The fast parser refuses about two hundred
        levels of nesting, so a refused message is read again with the standard one."""
        try:
            return cls.model_validate_json(body)
        except ValidationError:
            return cls.model_validate(json.loads(body))


def malformed(error: ValidationError) -> str:
    """Return what is wrong with a message: the names of its fields, without their values."""
    problems = error.errors(include_url=False, include_context=False, include_input=False)[:5]
    return "; ".join(f"{'.'.join(map(str, each['loc'])) or 'body'}: {each['msg']}" for each in problems)


class QueueMessage(Entity):
    """A waiting or leased message. The table is hot: rows are inserted, leased and deleted within milliseconds."""

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
    message_id: Annotated[str, Field(max_length=200)] = Field(description="A message that is sent twice is stored once")
    body: Json
    priority: Priority = NORMAL_PRIORITY
    tenant: Name = Field(default="", description="The platform that takes turns for this work; empty for geomill's own")
    visible_at: Now
    expires_at: AwareDatetime | None = None
    delivery_count: int = 0
    losses: int = Field(default=0, description="Workers that were lost while they ran it")
    on_trial: bool = Field(default=False, description="Whether a loss of its worker is charged to this task alone")
    lease_token: BigInt | None = Field(default=None, description="Greater at each delivery that is durably committed")
    leased_by: Name | None = None
    leased_until: AwareDatetime | None = None
    started_at: AwareDatetime | None = None
    progress: Annotated[float, Field(ge=0, le=1)] | None = None
    progress_message: Annotated[str, Field(max_length=200)] | None = None
    enqueued_at: Now


class DeadLetter(Entity):
    """A message that cannot be handled, kept with the reason until an operator deals with it."""

    __sql_table__: ClassVar = "dag_dead_letters"
    __sql_primary_key__: ClassVar = ("sequence",)
    __sql_indexes__: ClassVar = (
        Index("idx_dag_dead_letters_queue", ("queue_name", "sequence DESC")),
        Index("idx_dag_dead_letters_message", ("message_id", "sequence DESC")),
    )

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
