"""A request: a partner's work order. It is acknowledged at once; the job that carries it out comes later."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, ClassVar

from pydantic import Field

from geomill.domain.assets.asset import DataType
from geomill.domain.assets.platform import PlatformId, Refs
from geomill.domain.entity import Entity, Follower, ForeignKey, Guard, Index, Json, Key, Name, Now, SmallInt, changes
from geomill.domain.states import ClearanceState


class RequestStatus(StrEnum):
    ACCEPTED = "accepted"
    PROCESSING = "processing"
    COMPLETED = "completed"
    FAILED = "failed"
    SUPERSEDED = "superseded"


class PlatformRequest(Entity):
    """A work order of a partner, and what became of it."""

    __sql_schema__: ClassVar = "app"
    __sql_table__: ClassVar = "platform_requests"
    __sql_primary_key__: ClassVar = ("request_id",)
    __sql_foreign_keys__: ClassVar = (
        ForeignKey(("asset_id",), "app.geospatial_assets", ("asset_id",), on_delete="RESTRICT"),
    )
    __sql_indexes__: ClassVar = (
        Index("idx_requests_asset", ("asset_id", "created_at DESC")),
        Index("idx_requests_job", ("job_id",), unique=True),
        Index("idx_requests_created", ("created_at DESC",)),
        Index("idx_requests_open", ("status",), where="status IN ('accepted', 'processing')"),
        Index(
            "idx_requests_idempotency",
            ("platform_id", "idempotency_key"),
            unique=True,
            where="idempotency_key IS NOT NULL",
        ),
    )
    __sql_guards__: ClassVar = (
        Guard(
            "platform_requests_order",
            "UPDATE",
            "what was asked for never changes",
            changes(("request_id", "asset_id", "revision", "platform_refs", "processing_options", "file_names")),
        ),
    )
    __sql_followers__: ClassVar = (
        Follower(
            "platform_requests_follow",
            "UPDATE OF job_id",
            "app.follow_request",
            "OLD.job_id IS DISTINCT FROM NEW.job_id",
        ),
    )
    __log_fields__: ClassVar = ("request_id", "asset_id")

    request_id: Key
    asset_id: Key
    revision: int = Field(description="The revision that it asks for")
    platform_id: PlatformId
    platform_refs: Refs
    data_type: DataType
    container_name: Annotated[str, Field(max_length=200)]
    file_names: list[str] = Field(default_factory=list)
    overwrite: bool = False
    workflow_id: Key
    processing_options: Json = Field(default_factory=dict)
    clearance_level: ClearanceState | None = None
    priority: Annotated[SmallInt, Field(ge=1, le=10)] = 5
    callback_url: Annotated[str, Field(max_length=512)] | None = None
    correlation_id: Name | None = None
    idempotency_key: Name | None = None
    submitted_by: Annotated[str, Field(max_length=200)]

    status: RequestStatus = RequestStatus.ACCEPTED
    job_id: Key = Field(description="Of the latest attempt; its row comes when an orchestrator claims it")
    retry_count: int = 0
    last_error: str | None = None
    created_at: Now
    updated_at: Now
