"""The history of a job: its events, in order. Rows are only added."""

from __future__ import annotations

from enum import StrEnum
from typing import ClassVar

from pydantic import Field

from geomill.domain.entity import Entity, ForeignKey, Identity, Index, Json, Key, Name, Now
from geomill.domain.ids import SINGLE


class EventType(StrEnum):
    JOB_CREATED = "job_created"
    JOB_STARTED = "job_started"
    JOB_COMPLETED = "job_completed"
    JOB_FAILED = "job_failed"
    JOB_CANCELLED = "job_cancelled"
    JOB_PAUSED = "job_paused"
    JOB_RESUMED = "job_resumed"
    JOB_RETRIED = "job_retried"
    JOB_RECLAIMED = "job_reclaimed"
    JOB_PARKED = "job_parked"
    JOB_RELEASED = "job_released"
    NODE_DISPATCHED = "node_dispatched"
    NODE_COMPLETED = "node_completed"
    NODE_FAILED = "node_failed"
    NODE_RETRIED = "node_retried"
    NODE_SKIPPED = "node_skipped"
    NODE_CANCELLED = "node_cancelled"
    FAN_OUT_EXPANDED = "fan_out_expanded"
    CHECKPOINT_SAVED = "checkpoint_saved"
    RESULT_STALE = "result_stale"
    CALLBACK_DELIVERED = "callback_delivered"
    CALLBACK_FAILED = "callback_failed"


class EventStatus(StrEnum):
    INFO = "info"
    SUCCESS = "success"
    WARNING = "warning"
    FAILURE = "failure"


class JobEvent(Entity):
    __sql_table__: ClassVar = "dag_job_events"
    __sql_primary_key__: ClassVar = ("event_id",)
    __sql_foreign_keys__: ClassVar = (ForeignKey(("job_id",), "dagapp.dag_jobs", ("job_id",)),)
    __sql_indexes__: ClassVar = (Index("idx_dag_job_events_job", ("job_id", "event_id")),)

    event_id: Identity
    job_id: Key
    node_id: Name | None = None
    item_index: int = SINGLE
    event_type: EventType
    event_status: EventStatus = EventStatus.INFO
    event_data: Json = Field(default_factory=dict)
    checkpoint_name: Name | None = None
    created_at: Now
