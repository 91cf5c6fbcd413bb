"""The operators' audit: who changed what about the platform itself, such as keys and dead letters, and why."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, ClassVar

from pydantic import Field

from geomill.domain.entity import Entity, Identity, Index, Json, Now, Subject, append_only


class OperatorAction(StrEnum):
    CALLBACK_SENT = "callback_sent"
    CIRCUIT_CLOSED = "circuit_closed"
    DEAD_LETTER_DISCARDED = "dead_letter_discarded"
    DEAD_LETTERS_REDRIVEN = "dead_letters_redriven"
    KEY_CREATED = "key_created"
    KEY_REVOKED = "key_revoked"
    PLATFORM_CHANGED = "platform_changed"
    SCHEDULE_CHANGED = "schedule_changed"
    SCHEDULE_CREATED = "schedule_created"
    SCHEDULE_DELETED = "schedule_deleted"
    SCHEDULE_RUN = "schedule_run"
    UPLOAD_REMOVED = "upload_removed"


class OperatorAuditEntry(Entity):
    """One change by an operator or an administrator. Decisions about assets are in the audit of assets."""

    __sql_schema__: ClassVar = "app"
    __sql_table__: ClassVar = "operator_audit"
    __sql_primary_key__: ClassVar = ("audit_id",)
    __sql_indexes__: ClassVar = (Index("idx_operator_audit_action", ("action", "audit_id DESC")),)
    __sql_guards__: ClassVar = append_only("operator_audit")

    audit_id: Identity
    action: Annotated[str, Field(max_length=64)] = Field(
        description="An `OperatorAction`; text, so that a release can add some"
    )
    target: Annotated[str, Field(max_length=200)] = Field(description="The id of the thing that was changed")
    actor: Subject = Field(description="The subject of the credential")
    reason: Annotated[str, Field(max_length=500)] | None = None
    details: Json = Field(default_factory=dict)
    at: Now
