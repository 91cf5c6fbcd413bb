"""Superseded revisions, with their state at that time. Rows are only added."""

from __future__ import annotations

from typing import Annotated, ClassVar
from uuid import UUID

from pydantic import AwareDatetime, Field

from geomill.domain.entity import Entity, ForeignKey, Index, Json, Key, Name, Now, SqlDefault, Unique, append_only
from geomill.domain.states import ApprovalState, ClearanceState, ProcessingStatus


class AssetRevision(Entity):
    """A revision of an asset as it was when the next one replaced it."""

    __sql_schema__: ClassVar = "app"
    __sql_table__: ClassVar = "asset_revisions"
    __sql_primary_key__: ClassVar = ("revision_id",)
    __sql_foreign_keys__: ClassVar = (
        ForeignKey(("asset_id",), "app.geospatial_assets", ("asset_id",), on_delete="RESTRICT"),
    )
    __sql_unique__: ClassVar = (Unique("asset_revisions_once", ("asset_id", "revision")),)
    __sql_indexes__: ClassVar = (Index("idx_revisions_superseded", ("superseded_at DESC",)),)
    __sql_guards__: ClassVar = append_only("asset_revisions")

    revision_id: Annotated[UUID, SqlDefault("gen_random_uuid()")]
    asset_id: Key
    revision: Annotated[int, Field(ge=1)]
    job_id: Key | None = Field(default=None, description="None if it was superseded before a job began")
    request_id: Key | None = None
    workflow_id: Name | None = None
    workflow_version: int | None = None
    processing_status_at_supersession: ProcessingStatus
    approval_state_at_supersession: ApprovalState
    clearance_state_at_supersession: ClearanceState
    reviewer_at_supersession: Annotated[str, Field(max_length=200)] | None = None
    content_hash: Annotated[str, Field(max_length=128)] | None = None
    table_name: Annotated[str, Field(max_length=63)] | None = None
    blob_path: Annotated[str, Field(max_length=500)] | None = None
    outputs: Json | None = Field(default=None, description="None if it never completed")
    output_file_hash: Annotated[str, Field(max_length=64)] | None = None
    deleted_at: AwareDatetime | None = Field(default=None, description="Set if it had been unpublished")
    created_at: AwareDatetime
    superseded_at: Now
