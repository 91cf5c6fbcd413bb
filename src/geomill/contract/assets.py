"""Responses about assets."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, Literal, Self

from pydantic import AwareDatetime, BaseModel, Field

from geomill.contract.jobs import Progress
from geomill.contract.paging import CursorPage, PageOptions
from geomill.domain.assets.asset import Asset, job_priority
from geomill.domain.assets.audit import AuditDecision, AuditEntry
from geomill.domain.assets.metadata import METADATA_OUTPUT, DatasetMetadata
from geomill.domain.assets.request import PlatformRequest
from geomill.domain.assets.revision import AssetRevision
from geomill.domain.engine.job import Job

SUBMITTED_PRIORITY = "As submitted, where 1 is first. It goes with the next release: use `job_priority`"
JOB_PRIORITY = "As `priority` of the jobs: 0 is normal, and higher runs sooner"


class AssetView(BaseModel):
    """An asset with its four states."""

    asset_id: str
    platform_id: str
    platform_refs: dict[str, Any]
    title: str | None = Field(default=None, description="The title that the submitter gave the newest outputs")
    data_type: str
    bbox: list[float] | None = Field(
        default=None,
        description="West, south, east, north of the newest outputs in degrees. West is greater than east if they "
        "cross the antimeridian. Null without outputs",
    )
    revision: int
    served_revision: int | None
    public_revision: int | None
    withdrawn_through: int
    processing_status: str
    approval_state: str
    clearance_state: str
    proposed_clearance: str | None
    reviewer: str | None = Field(description="The subject of the credential that reviewed the revision")
    reviewed_on_behalf_of: str | None = Field(description="The person whom the reviewer named; not verified")
    reviewed_at: datetime | None
    rejection_reason: str | None
    cleared_at: datetime | None
    cleared_by: str | None
    made_public_at: datetime | None
    made_public_by: str | None
    table_name: str | None
    blob_path: str | None
    stac_item_id: str
    stac_collection_id: str
    content_hash: str | None
    source_file_hash: str | None
    output_file_hash: str | None
    adf_run_id: str | None
    external_revision: int | None
    workflow_id: str | None
    workflow_version: int | None
    current_job_id: str | None
    last_request_id: str | None
    job_count: int
    processing_started_at: datetime | None
    processing_completed_at: datetime | None
    estimated_completion_at: datetime | None
    last_error: str | None
    node_summary: dict[str, Any] | None
    priority: int = Field(deprecated=True, description=SUBMITTED_PRIORITY)
    job_priority: int = Field(description=JOB_PRIORITY)
    warnings: list[str]
    deleted_at: datetime | None
    deleted_by: str | None
    created_at: datetime
    updated_at: datetime

    @classmethod
    def of(cls, asset: Asset, **more: Any) -> Self:
        fields = {**asset.model_dump(), "job_priority": job_priority(asset.priority), **_described(asset.outputs or {})}
        return cls(**{name: fields[name] for name in AssetView.model_fields if name in fields}, **more)


def _described(outputs: Mapping[str, Any]) -> dict[str, Any]:
    """Return title and extent. A workflow may have returned anything, so anything else is left out."""
    bbox = outputs.get("bbox")
    is_box = isinstance(bbox, list) and len(bbox) == 4 and all(isinstance(part, int | float) for part in bbox)
    title = DatasetMetadata.stored(outputs.get(METADATA_OUTPUT)).title
    return {"title": title, "bbox": bbox if is_box else None}


class ExportView(BaseModel):
    """The exported revision, and the latest job that changes the external zone."""

    job_id: str | None
    status: str | None
    error: str | None = None
    external_revision: int | None
    files: list[dict[str, Any]] = []


class FailureView(BaseModel):
    message: str
    node: str | None = None
    remedy: str


class AssetStatus(BaseModel):
    status: str = Field(description="`queued` until an orchestrator has claimed the job, then the status of the job")
    request_id: str | None
    job_id: str | None
    asset_id: str
    asset: AssetView
    retry_count: int = 0
    progress: Progress
    eta: datetime | None = None
    outputs: dict[str, Any] = {}
    links: dict[str, str] = {}
    error: FailureView | None = None
    warnings: list[str] = []
    export: ExportView
    revision: int
    processing_status: str
    approval_state: str
    clearance_state: str


class JobWithoutAsset(BaseModel):
    """The answer to a question about an asset by the id of a job that belongs to none."""

    kind: Literal["job", "stage_job"]
    status: str = Field(description="The status as `status_url` tells it")
    job_id: str
    workflow_id: str
    message: str = Field(examples=["this is a job of the workflow 'hello_world': see status_url"])
    status_url: str


class RequestView(BaseModel):
    request_id: str
    revision: int
    status: str
    job_id: str
    workflow_id: str
    container_name: str
    file_names: list[str]
    overwrite: bool
    processing_options: dict[str, Any]
    clearance_level: str | None
    priority: int = Field(deprecated=True, description=SUBMITTED_PRIORITY)
    job_priority: int = Field(description=JOB_PRIORITY)
    correlation_id: str | None
    submitted_by: str
    on_behalf_of: str | None = Field(description="The person whom the submitter named; not verified")
    retry_count: int
    last_error: str | None
    created_at: datetime
    updated_at: datetime

    @classmethod
    def of(cls, request: PlatformRequest) -> Self:
        fields = {**request.model_dump(), "job_priority": job_priority(request.priority)}
        return cls(**{name: fields[name] for name in cls.model_fields})


class JobView(BaseModel):
    job_id: str
    purpose: str
    asset_revision: int | None
    request_id: str | None
    workflow_id: str
    status: str
    error_message: str | None
    created_at: datetime
    completed_at: datetime | None

    @classmethod
    def of(cls, job: Job) -> Self:
        fields = job.model_dump()
        return cls(**{name: fields[name] for name in cls.model_fields})


class AssetDetails(AssetView):
    outputs: dict[str, Any] | None
    revisions: list[AssetRevision]
    requests: list[RequestView]
    jobs: list[JobView]
    audit: list[AuditEntry]


class LinksView(BaseModel):
    """Ready-to-use addresses of an asset."""

    asset_id: str
    revision: int | None = Field(description="The served revision; null if none is served")
    links: dict[str, str] = Field(
        description="stac_item, viewer, tilejson, tiles, download; rasters: wmts, preview; vectors: features"
    )
    public_links: dict[str, str] = Field(
        default={}, description="Links to the public revision, which need no credential. Empty if there is none"
    )
    expires_at: datetime | None = Field(description="When the signed links expire; null if they are not signed")


class AssetPage(BaseModel):
    assets: list[AssetView]
    next_cursor: str | None = Field(
        default=None, description="Pass it as `cursor` to get the next page; null on the last page"
    )


class ReviewDecisionOptions(PageOptions):
    since: AwareDatetime | None = Field(default=None, description="Decided at this time or later")


class ReviewDecisionView(BaseModel):
    """A decision of a reviewer about a revision of an asset."""

    audit_id: int
    asset_id: str
    platform_id: str
    stac_item_id: str
    title: str | None
    revision: int
    decision: AuditDecision
    clearance_state: str | None = Field(description="Who may see the asset after the decision")
    actor: str
    on_behalf_of: str | None
    reason: str | None
    at: datetime


class ReviewDecisionPage(CursorPage):
    decisions: list[ReviewDecisionView]


class ReportPage(BaseModel):
    report: str
    rows: list[dict[str, Any]]
    generated_at: datetime
    window: timedelta | None = None
