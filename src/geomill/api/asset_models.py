"""Requests and responses of the platform API: submissions, decisions, assets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Annotated, Any, Self

from pydantic import (
    AfterValidator,
    AliasChoices,
    BaseModel,
    Field,
    StrictInt,
    StrictStr,
    StringConstraints,
    model_validator,
)

from geomill.api.models import ApiInput, Progress, Text, Url, storable
from geomill.domain.assets.asset import Asset, DataType
from geomill.domain.assets.audit import AuditEntry
from geomill.domain.assets.naming import blob_prefix
from geomill.domain.assets.platform import DDH, DDH_REFS, ContainerName, Platform, PlatformId, RefName, WorkflowId
from geomill.domain.assets.request import PlatformRequest
from geomill.domain.assets.revision import AssetRevision
from geomill.domain.assets.submission import Submission
from geomill.domain.engine.job import Job, JobPurpose
from geomill.domain.states import ClearanceState
from geomill.platform.review import ReviewOutcome
from geomill.platform.status import AssetStanding
from geomill.platform.submit import Accepted

Refs = dict[str, StrictStr | StrictInt]
Reason = Annotated[
    str, StringConstraints(min_length=1, max_length=2000, strip_whitespace=True), AfterValidator(storable)
]
FileName = Annotated[str, StringConstraints(min_length=1, max_length=500), AfterValidator(storable)]
Id = Annotated[str, StringConstraints(min_length=1, max_length=64), AfterValidator(storable)]
Revision = Annotated[int, Field(ge=1, le=2**31 - 1, strict=True)]


class PlatformSubmission(ApiInput):
    """Data to publish. The credential says who submits; `platform_id` says for which platform."""

    platform_id: PlatformId = DDH
    platform_refs: Annotated[Refs, Field(max_length=40)] | None = Field(
        default=None, description="The partner's identifiers, as its platform requires them"
    )
    dataset_id: StrictStr | None = Field(
        default=None, description="Only for the platform ddh, instead of platform_refs"
    )
    resource_id: StrictStr | None = None
    version_id: StrictStr | None = None
    data_type: DataType
    container_name: Annotated[str, StringConstraints(min_length=1, max_length=200), AfterValidator(storable)]
    file_name: FileName | Annotated[list[FileName], Field(min_length=1, max_length=1000)]
    workflow_id: Text | None = Field(default=None, description="If absent, data_type decides")
    processing_options: Annotated[dict[str, Any], Field(max_length=100)] = Field(
        default_factory=dict, description="Inputs of the workflow"
    )
    overwrite: Annotated[bool, Field(strict=True)] = Field(
        default=False, description="Whether to open a new revision if the asset exists"
    )
    clearance_level: ClearanceState | None = Field(
        default=None,
        validation_alias=AliasChoices("clearance_level", "access_level"),
        description="A proposal for the reviewer",
    )
    priority: Annotated[int, Field(ge=1, le=10, strict=True)] = Field(
        default=5, description="1 is first, 5 is normal; only operators may give less than 5"
    )
    callback_url: Url | None = None
    correlation_id: Text | None = None
    idempotency_key: Text | None = Field(default=None, description="The same key gives the same request")

    @model_validator(mode="after")
    def _one_identity(self) -> Self:
        ddh_refs = [name for name in DDH_REFS if getattr(self, name) is not None]
        if self.platform_refs is not None and ddh_refs:
            raise ValueError(f"give platform_refs or {', '.join(DDH_REFS)}, not both")
        if self.platform_refs is None and not ddh_refs:
            raise ValueError("platform_refs is missing: give the identifiers that the platform requires")
        if ddh_refs and self.platform_id != DDH:
            raise ValueError(f"{ddh_refs[0]} belongs to the platform ddh; use platform_refs for '{self.platform_id}'")
        return self

    def submission(self) -> Submission:
        """Return the submission. Its fields were validated with the body, so they are not validated again."""
        refs = self.platform_refs
        if refs is None:
            refs = {name: value for name in DDH_REFS if (value := getattr(self, name)) is not None}
        names = [self.file_name] if isinstance(self.file_name, str) else self.file_name
        shared = {name: value for name, value in self if name in Submission.model_fields}
        return Submission.model_construct(**{**shared, "platform_refs": refs, "file_names": names})


class SubmissionAccepted(BaseModel):
    request_id: str
    asset_id: str
    job_id: str = Field(description="The id that the job will have")
    status: str = "accepted"
    operation: str = Field(description="`created`, `updated`, `reactivated`, or `repeated` for a known idempotency key")
    revision: int
    workflow_id: str
    monitor_url: str
    warnings: list[str] = []
    dry_run: bool = False
    would: dict[str, Any] | None = Field(
        default=None, description="The names and inputs that a submission would get. Only in a dry run"
    )

    @classmethod
    def of(cls, accepted: Accepted, *, dry_run: bool = False) -> Self:
        request, asset = accepted.request, accepted.asset
        would = None
        if dry_run and accepted.message:
            would = {
                "stac_item_id": asset.stac_item_id,
                "stac_collection_id": asset.stac_collection_id,
                "blob_prefix": blob_prefix(asset.blob_stem, asset.revision),
                "input_params": accepted.message.input_params,
            }
        return cls(
            request_id=request.request_id,
            asset_id=request.asset_id,
            job_id=request.job_id,
            status=request.status.value,
            operation=accepted.operation.value if accepted.operation else "repeated",
            revision=request.revision,
            workflow_id=request.workflow_id,
            monitor_url=f"/api/platform/status/{request.request_id}",
            warnings=accepted.warnings,
            dry_run=dry_run,
            would=would,
        )


class Decided(ApiInput):
    """A decision about the asset that one of the three ids identifies."""

    asset_id: Id | None = None
    request_id: Id | None = None
    job_id: Id | None = None
    expected_revision: Revision | None = Field(
        default=None,
        description="The revision that was reviewed. If the asset has another one, the decision is refused",
    )

    @model_validator(mode="after")
    def _one_id(self) -> Self:
        if sum(value is not None for value in (self.asset_id, self.request_id, self.job_id)) != 1:
            raise ValueError("give exactly one of asset_id, request_id and job_id")
        return self

    @property
    def identifier(self) -> str:
        return self.asset_id or self.request_id or self.job_id or ""


class Approval(Decided):
    clearance_level: ClearanceState = Field(validation_alias=AliasChoices("clearance_level", "access_level"))

    @model_validator(mode="after")
    def _cleared(self) -> Self:
        if self.clearance_level is ClearanceState.UNCLEARED:
            raise ValueError("clearance_level must be ouo or public")
        return self


class Rejection(Decided):
    reason: Reason


class Unpublishing(Decided):
    reason: Reason | None = None
    delete_data: Annotated[bool, Field(strict=True)] = Field(
        default=False, description="Whether to delete the outputs of all revisions"
    )
    dry_run: Annotated[bool, Field(strict=True)] = False


class Rollback(Decided):
    revision: Revision = Field(description="The revision whose outputs the new revision gets")
    reason: Reason | None = None


class Retry(Decided):
    pass


class AssetView(BaseModel):
    """An asset with its four states."""

    asset_id: str
    platform_id: str
    platform_refs: dict[str, Any]
    data_type: str
    revision: int
    served_revision: int | None
    public_revision: int | None
    withdrawn_through: int
    processing_status: str
    approval_state: str
    clearance_state: str
    proposed_clearance: str | None
    reviewer: str | None
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
    priority: int
    warnings: list[str]
    deleted_at: datetime | None
    deleted_by: str | None
    created_at: datetime
    updated_at: datetime

    @classmethod
    def of(cls, asset: Asset, **more: Any) -> Self:
        fields = asset.model_dump()
        return cls(**{name: fields[name] for name in AssetView.model_fields if name in fields}, **more)


class DecisionMade(BaseModel):
    asset_id: str
    decision: str = Field(description="The decision, or `unchanged` if the asset already has that clearance")
    revision: int
    approval_state: str
    clearance_state: str
    deleted: bool
    reviewer: str | None
    dry_run: bool = False
    warning: str | None = Field(default=None, description="A consequence that the caller should know about")
    action_required: str | None = None
    export_job_id: str | None = Field(default=None, description="The export or withdrawal that was started")
    delete_job_id: str | None = None
    would: dict[str, Any] | None = Field(
        default=None, description="The exports, cancelled jobs and deletions that would follow. Only in a dry run"
    )
    status_url: str

    @classmethod
    def of(cls, outcome: ReviewOutcome, *, dry_run: bool = False) -> Self:
        asset = outcome.asset
        return cls(
            asset_id=asset.asset_id,
            decision=outcome.decision.value if outcome.decision else "unchanged",
            revision=asset.revision,
            approval_state=asset.approval_state.value,
            clearance_state=asset.clearance_state.value,
            deleted=not asset.active,
            reviewer=asset.reviewer,
            dry_run=dry_run,
            warning="; ".join(outcome.warnings) or None,
            action_required="wait for the job export_job_id" if outcome.warnings and outcome.export_job_id else None,
            export_job_id=outcome.export_job_id,
            delete_job_id=outcome.delete_job_id,
            would=outcome.would,
            status_url=f"/api/platform/status/{asset.asset_id}",
        )


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

    @classmethod
    def of(cls, standing: AssetStanding, served: Mapping[str, str]) -> Self:
        """`served` are the links under which the asset is served."""
        asset, request = standing.asset, standing.request
        progress = (
            Progress.of(standing.progress, standing.now) if standing.progress else Progress.queued(standing.waits)
        )
        return cls(
            status=standing.status,
            request_id=request.request_id if request else None,
            job_id=standing.job_id,
            asset_id=asset.asset_id,
            asset=AssetView.of(asset),
            retry_count=request.retry_count if request else 0,
            progress=progress,
            eta=progress.eta or asset.estimated_completion_at,
            outputs=asset.outputs or {},
            links={**_links(standing), **served},
            error=_failure(standing),
            warnings=asset.warnings,
            export=_export(standing),
            revision=asset.revision,
            processing_status=asset.processing_status.value,
            approval_state=asset.approval_state.value,
            clearance_state=asset.clearance_state.value,
        )


def _links(standing: AssetStanding) -> dict[str, str]:
    links = {"asset": f"/api/assets/{standing.asset.asset_id}"}
    if standing.job_id:
        job = f"/api/v1/jobs/{standing.job_id}"
        links |= {"job": job, "events": f"{job}/events", "stream": f"{job}/stream"}
    return links


def _failure(standing: AssetStanding) -> FailureView | None:
    """Return the error of the request, or of a job without a request."""
    job = standing.progress.job if standing.progress else None
    message = standing.request.last_error if standing.request else job.error_message if job else None
    if message is None:
        return None
    remedy = "POST /api/platform/retry to try again, or fix the file and submit it again with overwrite=true"
    if job and job.purpose is not JobPurpose.PROCESS:
        remedy = "POST /api/platform/export/retry to try again"
    return FailureView(message=message, node=job.failed_node_id if job else None, remedy=remedy)


def _export(standing: AssetStanding) -> ExportView:
    return ExportView(
        job_id=standing.asset.adf_run_id,
        status=standing.outside_status,
        error=standing.outside.error_message if standing.outside else None,
        external_revision=standing.asset.external_revision,
        files=standing.asset.external_files or [],
    )


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
    priority: int
    correlation_id: str | None
    submitted_by: str
    retry_count: int
    last_error: str | None
    created_at: datetime
    updated_at: datetime

    @classmethod
    def of(cls, request: PlatformRequest) -> Self:
        fields = request.model_dump()
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
        description="stac_item, viewer, tilejson, tiles; for rasters wmts, preview; for vectors features, collection"
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


class PlatformPage(BaseModel):
    platforms: list[Platform]


class PlatformChanges(ApiInput):
    """Changes to a platform. Its required identifiers never change, because they identify its assets."""

    display_name: Annotated[str, StringConstraints(min_length=1, max_length=100), AfterValidator(storable)]
    description: Annotated[str, StringConstraints(max_length=2000), AfterValidator(storable)] | None = None
    optional_refs: Annotated[list[RefName], Field(max_length=20)] = Field(default_factory=list)
    workflows: Annotated[list[WorkflowId], Field(max_length=100)] | None = Field(
        default=None, description="Workflows that its partners may name; null for the configured defaults"
    )
    containers: Annotated[list[ContainerName], Field(max_length=100)] = Field(
        default_factory=list,
        description="Bronze containers its partners may submit from, besides the one that has the platform's name",
    )
    is_active: Annotated[bool, Field(strict=True)] = True


class NewPlatform(PlatformChanges):
    platform_id: PlatformId
    required_refs: Annotated[list[RefName], Field(min_length=1, max_length=20)]

    @model_validator(mode="after")
    def _distinct(self) -> Self:
        require_distinct(self.required_refs, self.optional_refs)
        return self


def require_distinct(required: Sequence[str], optional: Sequence[str]) -> None:
    names = [*required, *optional]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise ValueError(f"required_refs and optional_refs name {', '.join(twice)} twice")


class ReportPage(BaseModel):
    report: str
    rows: list[dict[str, Any]]
    generated_at: datetime
    window: timedelta | None = None
