"""Responses about nodes of a job and items of its fan-outs."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field

from geomill.contract.inputs import ApiInput
from geomill.domain.states import NodeStatus


class ItemOrder(StrEnum):
    INDEX = "index"
    FAILED_FIRST = "failed_first"
    SLOWEST = "slowest"


class ItemFilters(ApiInput):
    """Filters and order of the items of a fan-out."""

    state: NodeStatus | None = None
    order: ItemOrder = Field(
        default=ItemOrder.INDEX,
        description="`slowest` lists only items that have ended, `failed_first` cannot be combined with `state`",
    )
    limit: Annotated[int, Field(ge=1, le=1000)] = 100
    cursor: Annotated[str, Field(max_length=200)] | None = Field(
        default=None, description="`next_cursor` of the previous page"
    )


class CheckpointView(BaseModel):
    phase: str
    data: dict[str, Any]
    attempt: int = Field(description="The attempt that saved it")
    saved_at: datetime


class AttemptView(BaseModel):
    """An attempt that ended. An attempt whose worker was lost has no result and is not listed."""

    attempt: int
    task_id: str
    status: str
    error: str | None
    error_code: str | None
    retryable: bool
    worker_id: str | None
    handler_version: str | None = Field(description="The code version of the handler that ran")
    metrics: dict[str, Any]
    started_at: datetime | None
    ended_at: datetime
    run_seconds: float | None


class LeaseView(BaseModel):
    """The message of the current attempt: waiting in its queue, or leased to a worker."""

    worker_id: str | None = Field(description="Null while the message waits")
    leased_until: datetime | None
    deliveries: int
    enqueued_at: datetime
    visible_at: datetime = Field(description="No worker gets it before this time")


class ItemView(BaseModel):
    """An item of a fan-out."""

    index: int
    status: str
    attempt: int
    retry_count: int
    task_id: str
    worker_id: str | None = None
    handler_version: str | None = Field(
        default=None, description="The code version of the handler that ran; null until the attempt has ended"
    )
    dispatched_at: datetime | None = None
    started_at: datetime | None = None
    completed_at: datetime | None = None
    not_before: datetime | None = Field(default=None, description="When a retry may begin")
    wait_seconds: float | None = Field(default=None, description="From the dispatch to the start")
    run_seconds: float | None = Field(default=None, description="From the start to the end, or until now")
    error: str | None = None
    error_code: str | None = None
    progress: float | None = Field(default=None, description="From 0 to 1; null if unknown")
    message: str = Field(default="", description="The handler's latest progress message")


class ItemPage(BaseModel):
    items: list[ItemView]
    next_cursor: str | None = Field(
        default=None,
        description="Pass it as `cursor` to get the next page; null on the last page. A page may be short and still "
        "have a next one",
    )


class RunTimesView(BaseModel):
    """Seconds that ended items ran."""

    fastest: float
    p50: float
    p90: float
    p99: float
    slowest: float


class ItemBucket(BaseModel):
    """The items from `first` to `last`, by state."""

    first: int
    last: int
    states: dict[str, int]


class ItemSummary(BaseModel):
    """The items of a fan-out in a few numbers."""

    total: int
    sent: int
    states: dict[str, int] = Field(description="The number of items in each state that has any")
    buckets: list[ItemBucket] = Field(
        description="At most a hundred runs of neighbours that make up the whole list, in its order"
    )
    run_seconds: RunTimesView | None = Field(description="Null until an item has ended")
    slowest: list[ItemView] = Field(description="The slowest five that have ended")
    failed: list[ItemView] = Field(description="The first five that failed")


ParamsSource = Literal["message", "computed"]


class NodeDetails(BaseModel):
    """A node of a job, or an item of a fan-out, with everything that is known of it."""

    job_id: str
    node_id: str
    index: int | None = Field(description="The place of an item in its fan-out's list; null for a node")
    type: str
    handler: str | None
    queue: str | None
    status: str
    task_id: str | None
    attempt: int
    retry_count: int
    worker_id: str | None
    handler_version: str | None = Field(
        description="The code version of the handler that ran; null until the attempt has ended"
    )
    dispatched_at: datetime | None
    started_at: datetime | None
    completed_at: datetime | None
    not_before: datetime | None
    wait_seconds: float | None
    run_seconds: float | None
    params: dict[str, Any] | None = Field(
        description="The parameters of the current attempt. Null for a node without a task, before its "
        "inputs exist, and where an input lies in the object store"
    )
    params_source: ParamsSource | None = Field(
        description="`message`: as they were sent. `computed`: rendered again from the same definition and outputs"
    )
    output: Any
    error: str | None
    error_code: str | None
    metrics: dict[str, Any]
    progress: float | None
    message: str
    items_total: int | None = Field(description="The length of a fan-out's list")
    items_sent: int | None
    lease: LeaseView | None
    checkpoint: CheckpointView | None
    attempts: list[AttemptView] = Field(description="The latest hundred that ended, the newest first")
