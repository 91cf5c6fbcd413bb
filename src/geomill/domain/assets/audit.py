"""The audit: the decisions about assets and who made them. Rows are only added."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, ClassVar

from pydantic import Field

from geomill.domain.entity import Entity, ForeignKey, Identity, Index, Json, Key, Now, append_only


class AuditDecision(StrEnum):
    __sql_name__ = "decision"

    SUBMITTED = "submitted"
    OVERWRITTEN = "overwritten"
    REACTIVATED = "reactivated"
    RETRIED = "retried"
    APPROVED = "approved"
    CLEARANCE_CHANGED = "clearance_changed"
    REJECTED = "rejected"
    REVOKED = "revoked"
    UNPUBLISHED = "unpublished"
    ROLLED_BACK = "rolled_back"
    EXPORT_RETRIED = "export_retried"
    STYLED = "styled"


class AuditEntry(Entity):
    """One decision of a person or an application about an asset."""

    __sql_schema__: ClassVar = "app"
    __sql_table__: ClassVar = "asset_audit"
    __sql_primary_key__: ClassVar = ("audit_id",)
    __sql_foreign_keys__: ClassVar = (
        ForeignKey(("asset_id",), "app.geospatial_assets", ("asset_id",), on_delete="RESTRICT"),
    )
    __sql_indexes__: ClassVar = (
        Index("idx_asset_audit_asset", ("asset_id", "audit_id DESC")),
        Index(
            "idx_asset_audit_reviews",
            ("at DESC", "audit_id DESC"),
            where="decision IN ('approved', 'clearance_changed', 'rejected', 'revoked', 'unpublished', 'rolled_back')",
        ),
    )
    __sql_guards__: ClassVar = append_only("asset_audit")

    audit_id: Identity
    asset_id: Key
    revision: int
    decision: AuditDecision
    actor: Annotated[str, Field(max_length=200)] = Field(description="The subject of the credential")
    on_behalf_of: Annotated[str, Field(max_length=200)] | None = Field(
        default=None, description="The person whom the actor named; not verified"
    )
    client_address: Annotated[str, Field(max_length=64)] | None = None
    reason: str | None = None
    before: Json = Field(default_factory=dict)
    after: Json = Field(default_factory=dict)
    request_id: Key | None = None
    job_id: Key | None = None
    at: Now
