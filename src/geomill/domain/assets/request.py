"""A request: a partner's work order for one revision of one asset. It is stored before its job exists."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, ClassVar

from pydantic import Field

from geomill.domain.assets.submission import Submission
from geomill.domain.entity import Entity, Follower, ForeignKey, Guard, Index, Key, Now, changes


class RequestStatus(StrEnum):
    ACCEPTED = "accepted"
    PROCESSING = "processing"
    COMPLETED = "completed"
    FAILED = "failed"
    SUPERSEDED = "superseded"


class NewRequest(Submission):
    """A submission that was accepted, before it is stored."""

    request_id: Key
    asset_id: Key
    revision: int = Field(description="The revision that the request is for")
    workflow_id: Key
    submitted_by: Annotated[str, Field(max_length=200)]
    on_behalf_of: Annotated[str, Field(max_length=200)] | None = Field(
        default=None, description="The person whom the submitter named; not verified"
    )
    job_id: Key = Field(description="The latest job of the request; its row exists once an orchestrator has claimed it")


class PlatformRequest(NewRequest, Entity):
    """A work order of a partner and its state."""

    __sql_schema__: ClassVar = "app"
    __sql_table__: ClassVar = "platform_requests"
    __sql_primary_key__: ClassVar = ("request_id",)
    __sql_new__: ClassVar = NewRequest
    __sql_foreign_keys__: ClassVar = (
        ForeignKey(("asset_id",), "app.geospatial_assets", ("asset_id",), on_delete="RESTRICT"),
    )
    __sql_indexes__: ClassVar = (
        Index("idx_requests_asset", ("asset_id", "created_at DESC")),
        Index("idx_requests_job", ("job_id",), unique=True),
        Index("idx_requests_created", ("created_at DESC",)),
        Index("idx_requests_files", ("file_names",), method="gin"),
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
            "the order of a request never changes",
            changes(
                ("request_id", "asset_id", "revision", "platform_refs", "processing_options", "file_names", "metadata")
            ),
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

    status: RequestStatus = RequestStatus.ACCEPTED
    retry_count: int = 0
    last_error: str | None = None
    created_at: Now
    updated_at: Now
