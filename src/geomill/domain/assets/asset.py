"""An asset: one thing that a partner publishes through geomill, over all its revisions.

It has four independent states: whether the workflow has finished (processing), which version of the data it has
(revision), whether a reviewer has decided on it (approval), and who may see it (clearance). The platform writes
people's decisions. Only the database writes the state of the work, as the job changes (`sql/functions/follow_job.sql`).
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, ClassVar

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field

from geomill.domain.assets.platform import PlatformId, Refs
from geomill.domain.engine.job import NORMAL_PRIORITY
from geomill.domain.entity import (
    Check,
    Entity,
    Follower,
    ForeignKey,
    Guard,
    Index,
    Json,
    Key,
    Name,
    Now,
    SmallInt,
    SqlType,
    StateRule,
    changes,
)
from geomill.domain.states import (
    APPROVAL_MACHINE,
    CLEARANCE_MACHINE,
    PROCESSING_MACHINE,
    ApprovalState,
    ClearanceState,
    ProcessingStatus,
)

EXECUTION_FIELDS = (
    "processing_status",
    "processing_started_at",
    "processing_completed_at",
    "estimated_completion_at",
    "last_error",
    "node_summary",
    "current_job_id",
    "job_count",
    "workflow_version",
    "served_revision",
    "table_name",
    "blob_path",
    "outputs",
    "warnings",
    "content_hash",
    "source_file_hash",
    "output_file_hash",
    "external_revision",
    "external_files",
    "external_run_id",
)
"""The fields that follow the job. The platform sets them only when it opens a revision."""

DECIDED_FIELDS = (
    "approval_state",
    "reviewer",
    "reviewed_on_behalf_of",
    "reviewed_at",
    "rejection_reason",
    "clearance_state",
    "cleared_at",
    "cleared_by",
    "made_public_at",
    "made_public_by",
    "adf_run_id",
    "deleted_at",
    "deleted_by",
    "data_deleted_through",
    "withdrawn_through",
    "kept_public_revision",
    "delete_run_id",
)
"""The fields that reviewers decide."""

NORMAL_ASSET_PRIORITY = 5
LAST_ASSET_PRIORITY = 10
CATALOGUE_FIELDS = (
    "served_revision",
    "outputs",
    "approval_state",
    "clearance_state",
    "deleted_at",
    "data_deleted_through",
    "withdrawn_through",
    "kept_public_revision",
)
"""The fields that the catalogue shows or depends on."""

_FOLLOWING = "pg_trigger_depth() > 0"
"""Whether a trigger makes the change. Only the triggers that follow a job or a request write assets. A statement of a
session always has the depth 0, and no setting changes that."""

_User = Annotated[str, Field(max_length=200)]


PUBLIC_REVISION = SqlType(
    "integer GENERATED ALWAYS AS (CASE WHEN deleted_at IS NOT NULL THEN NULL"
    " WHEN approval_state = 'approved' AND clearance_state = 'public' THEN revision"
    " ELSE kept_public_revision END) STORED"
)
"""The rule for which revision is public. Every server reads this column."""


def _ref_column(name: str) -> SqlType:
    return SqlType(f"text GENERATED ALWAYS AS (platform_refs ->> '{name}') STORED")


class DataType(StrEnum):
    RASTER = "raster"
    VECTOR = "vector"


class AssetIdentity(BaseModel):
    """The fields of an asset that never change."""

    model_config = ConfigDict(frozen=True)

    asset_id: Key = Field(description="The first 32 characters of the SHA-256 of platform and identifiers")
    platform_id: PlatformId
    platform_refs: Refs = Field(description="The partner's own identifiers")
    data_type: DataType
    table_stem: Name = Field(description="The beginning of the table names of its revisions")
    blob_stem: Annotated[str, Field(max_length=400)] = Field(description="The beginning of the paths of its revisions")
    stac_item_id: Annotated[str, Field(max_length=200)]
    stac_collection_id: Annotated[str, Field(max_length=200)]


class OrderedRevision(BaseModel):
    """The fields of an asset that each submission sets."""

    model_config = ConfigDict(frozen=True)

    revision: Annotated[int, Field(ge=1)] = Field(default=1, description="Every overwrite and rollback raises it")
    proposed_clearance: ClearanceState | None = Field(
        default=None, description="The submitter's proposal; it has no effect by itself"
    )
    last_request_id: Key | None = None
    workflow_id: Name | None = None
    priority: Annotated[SmallInt, Field(ge=1, le=10)] = Field(default=NORMAL_ASSET_PRIORITY, description="1 is first")


class NewAsset(OrderedRevision, AssetIdentity):
    """An asset before it is stored."""


IDENTITY_FIELDS = tuple(AssetIdentity.model_fields)
BUSINESS_FIELDS = (*OrderedRevision.model_fields, *DECIDED_FIELDS)
"""The fields that people decide, by a submission or a review."""


class Asset(NewAsset, Entity):
    """One thing that a partner publishes: its identity, its outputs and its four independent states."""

    __sql_schema__: ClassVar = "app"
    __sql_table__: ClassVar = "geospatial_assets"
    __sql_primary_key__: ClassVar = ("asset_id",)
    __sql_new__: ClassVar = NewAsset
    __sql_foreign_keys__: ClassVar = (
        ForeignKey(("platform_id",), "app.platforms", ("platform_id",), on_delete="RESTRICT"),
    )
    __sql_indexes__: ClassVar = (
        Index("idx_assets_table_stem", ("table_stem",), unique=True),
        Index("idx_assets_blob_stem", ("blob_stem",), unique=True),
        Index("idx_assets_stac_item", ("stac_item_id",), unique=True),
        Index("idx_assets_refs", ("platform_refs jsonb_path_ops",), method="gin"),
        Index(
            "idx_assets_text",
            ("(lower(jsonb_path_query_array(platform_refs, '$.*')::text)) gin_trgm_ops",),
            method="gin",
        ),
        Index("idx_assets_title", ("(lower(outputs #>> '{dataset_metadata,title}')) gin_trgm_ops",), method="gin"),
        Index("idx_assets_platform", ("platform_id", "created_at DESC", "asset_id DESC")),
        Index("idx_assets_created", ("created_at DESC", "asset_id DESC")),
        Index("idx_assets_collection", ("stac_collection_id",)),
        Index(
            "idx_assets_approval", ("approval_state", "created_at DESC", "asset_id DESC"), where="deleted_at IS NULL"
        ),
        Index(
            "idx_assets_clearance", ("clearance_state", "created_at DESC", "asset_id DESC"), where="deleted_at IS NULL"
        ),
        Index("idx_assets_processing", ("processing_status", "created_at DESC", "asset_id DESC")),
        Index("idx_assets_workflow", ("workflow_id", "created_at DESC", "asset_id DESC")),
        Index("idx_assets_current_job", ("current_job_id",)),
        Index("idx_assets_stuck", ("processing_started_at",), where="processing_status = 'processing'"),
        Index("idx_assets_failed", ("updated_at DESC",), where="processing_status = 'failed' AND deleted_at IS NULL"),
        Index("idx_assets_completed", ("processing_completed_at",), where="processing_status = 'completed'"),
        Index(
            "idx_assets_waiting",
            ("processing_completed_at", "asset_id"),
            where="approval_state = 'pending_review' AND processing_status = 'completed' AND deleted_at IS NULL",
        ),
        Index("idx_assets_retried", ("job_count DESC",), where="job_count > 1"),
        Index("idx_assets_export", ("adf_run_id",), where="adf_run_id IS NOT NULL"),
    )
    __sql_checks__: ClassVar = (
        Check("assets_revision", "revision >= 1 AND served_revision BETWEEN 1 AND revision"),
        Check("assets_priority", "priority BETWEEN 1 AND 10"),
        Check("assets_cleared", "clearance_state = 'uncleared' OR approval_state = 'approved'"),
        Check("assets_rejected", "approval_state <> 'rejected' OR rejection_reason IS NOT NULL"),
        Check("assets_deleted", "(deleted_at IS NULL) = (deleted_by IS NULL)"),
        Check("assets_kept_public", "kept_public_revision < revision"),
        Check("assets_approved", "approval_state <> 'approved' OR coalesce(served_revision = revision, false)"),
    )
    __sql_states__: ClassVar = (
        StateRule("processing_status", PROCESSING_MACHINE),
        StateRule("approval_state", APPROVAL_MACHINE),
        StateRule("clearance_state", CLEARANCE_MACHINE),
    )
    __sql_guards__: ClassVar = (
        Guard(
            "geospatial_assets_execution",
            "UPDATE",
            "execution state follows the job; the platform sets it only by opening a revision",
            f"{changes(EXECUTION_FIELDS)} AND NEW.revision <> OLD.revision + 1 AND NOT ({_FOLLOWING})",
        ),
        Guard(
            "geospatial_assets_business",
            "UPDATE",
            "a job must not change what people decide",
            f"{changes(BUSINESS_FIELDS)} AND {_FOLLOWING}",
        ),
        Guard("geospatial_assets_identity", "UPDATE", "the identity never changes", changes(IDENTITY_FIELDS)),
        Guard(
            "geospatial_assets_revisions",
            "UPDATE OF revision",
            "revisions go up, one by one",
            "NEW.revision NOT IN (OLD.revision, OLD.revision + 1)",
        ),
        Guard("geospatial_assets_kept", "DELETE", "assets are never deleted; unpublish sets deleted_at"),
    )
    __sql_followers__: ClassVar = (
        Follower("geospatial_assets_follow", "UPDATE", "app.follow_asset", changes(CATALOGUE_FIELDS)),
    )
    __sql_functions__: ClassVar = (
        "app.revision_before",
        "app.drop_revision_tables",
        "app.mentions_revision",
        "app.is_leftover",
        "app.drop_leftover_tables",
    )
    __sql_storage__: ClassVar = {"fillfactor": "80"}
    __log_fields__: ClassVar = ("asset_id", "revision")

    dataset_id: Annotated[str | None, _ref_column("dataset_id")] = None
    resource_id: Annotated[str | None, _ref_column("resource_id")] = None
    version_id: Annotated[str | None, _ref_column("version_id")] = None

    revision_opened_at: Now
    served_revision: int | None = Field(
        default=None, description="The revision to which table_name, blob_path and outputs belong"
    )
    table_name: Annotated[str, Field(max_length=63)] | None = None
    blob_path: Annotated[str, Field(max_length=500)] | None = None
    outputs: Json | None = Field(default=None, description="The result of the job that made the served revision")
    warnings: list[str] = Field(default_factory=list)
    content_hash: Annotated[str, Field(max_length=128)] | None = Field(
        default=None, description="SHA-256 of the source of the served revision"
    )
    source_file_hash: Annotated[str, Field(max_length=64)] | None = None
    output_file_hash: Annotated[str, Field(max_length=64)] | None = None
    data_deleted_through: int = Field(default=0, description="Outputs up to this revision are deleted, or will be")
    delete_run_id: Annotated[str, Field(max_length=100)] | None = Field(
        default=None, description="The latest job that deletes outputs"
    )
    withdrawn_through: int = Field(
        default=0, description="Revisions up to this one were revoked or unpublished, and are not served again"
    )

    approval_state: ApprovalState = ApprovalState.PENDING_REVIEW
    reviewer: _User | None = None
    reviewed_on_behalf_of: _User | None = Field(
        default=None, description="The person whom the reviewer named; not verified"
    )
    reviewed_at: AwareDatetime | None = None
    rejection_reason: str | None = None

    clearance_state: ClearanceState = ClearanceState.UNCLEARED
    cleared_at: AwareDatetime | None = None
    cleared_by: _User | None = None
    made_public_at: AwareDatetime | None = None
    made_public_by: _User | None = None
    kept_public_revision: int | None = Field(
        default=None, description="The public revision that an overwrite or rollback left public"
    )
    public_revision: Annotated[int | None, PUBLIC_REVISION] = Field(
        default=None, description="The revision that everybody may see"
    )
    adf_run_id: Annotated[str, Field(max_length=100)] | None = Field(
        default=None, description="The latest job that exports or withdraws the asset"
    )
    external_revision: int | None = Field(default=None, description="The revision in the external zone")
    external_files: list[Json] | None = None
    external_run_id: Annotated[str, Field(max_length=100)] | None = Field(
        default=None, description="The export or withdrawal that completed last and set external_revision"
    )

    workflow_version: int | None = None
    current_job_id: Key | None = Field(default=None, description="The job of the current revision, once it has begun")
    job_count: int = Field(default=0, description="Runs of jobs, retries included, over all revisions")
    processing_status: ProcessingStatus = ProcessingStatus.PENDING
    processing_started_at: AwareDatetime | None = None
    processing_completed_at: AwareDatetime | None = None
    estimated_completion_at: AwareDatetime | None = None
    last_error: Annotated[str, Field(max_length=2000)] | None = None
    node_summary: Json | None = None

    deleted_at: AwareDatetime | None = None
    deleted_by: _User | None = None
    created_at: Now
    updated_at: Now

    @property
    def active(self) -> bool:
        return self.deleted_at is None

    @property
    def public(self) -> bool:
        """Whether the current revision is public."""
        return (
            self.active
            and self.approval_state is ApprovalState.APPROVED
            and (self.clearance_state is ClearanceState.PUBLIC)
        )


def job_priority(priority: int) -> int:
    """Return the priority of the jobs of a submission. It is the one scale of all answers: 0 is normal, and higher runs
    sooner. Submissions of data are given from 1, the first, over 5, which is normal, to 10."""
    return NORMAL_PRIORITY + NORMAL_ASSET_PRIORITY - priority


class AssetCollection(Entity):
    """A STAC collection and the group of assets that it belongs to."""

    __sql_schema__: ClassVar = "app"
    __sql_table__: ClassVar = "asset_collections"
    __sql_primary_key__: ClassVar = ("stac_collection_id",)
    __sql_indexes__: ClassVar = (Index("idx_asset_collections_group", ("platform_id", "group_ref"), unique=True),)

    stac_collection_id: Annotated[str, Field(max_length=200)]
    platform_id: PlatformId
    group_ref: Annotated[str, Field(max_length=410)] = Field(description='As JSON: 1 and "1" are two groups')
    created_at: Now
