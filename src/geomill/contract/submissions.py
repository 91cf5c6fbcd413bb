"""Requests and responses of the platform API: submissions and decisions."""

from __future__ import annotations

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

from geomill.contract.inputs import ApiInput, Person, Text, Url, storable
from geomill.contract.inspection import Inspection
from geomill.domain.assets.asset import DataType
from geomill.domain.assets.metadata import DatasetMetadata
from geomill.domain.assets.platform import DDH, DDH_REFS, PlatformId
from geomill.domain.assets.submission import Submission
from geomill.domain.states import ClearanceState

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
    metadata: DatasetMetadata | None = Field(
        default=None, description="Title, description, licence and the like, as the catalogue and maps show them"
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
    on_behalf_of: Person | None = Field(
        default=None,
        validation_alias=AliasChoices("on_behalf_of", "submitted_by"),
        description="The person for whom you submit: recorded and shown, not verified. `submitted_by` is accepted too",
    )

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
        metadata = self.metadata.to_json() if self.metadata else None
        return Submission.model_construct(
            **{**shared, "platform_refs": refs, "file_names": names, "metadata": metadata or None}
        )


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
    inspections: list[Inspection] = Field(
        default=[], description="A look into the first files of the submission. Only in a dry run"
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
    on_behalf_of: Person | None = Field(
        default=None,
        validation_alias=AliasChoices("on_behalf_of", "reviewer"),
        description="The person for whom you decide: recorded and shown, not verified. `reviewer` is accepted too",
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


class RequestRetry(Retry):
    processing_options: Annotated[dict[str, Any], Field(max_length=100)] = Field(
        default_factory=dict,
        description="Options to change; null removes one. With any, a new request for the same revision is made",
    )


class DecisionMade(BaseModel):
    asset_id: str
    decision: str = Field(description="The decision, or `unchanged` if the asset already has that clearance")
    revision: int
    approval_state: str
    clearance_state: str
    deleted: bool
    reviewer: str | None
    decided_by: str = Field(description="The subject of the credential that made this decision")
    on_behalf_of: str | None = Field(default=None, description="The person whom the caller named; not verified")
    dry_run: bool = False
    warning: str | None = Field(default=None, description="A consequence that the caller should know about")
    action_required: str | None = None
    export_job_id: str | None = Field(default=None, description="The export or withdrawal that was started")
    delete_job_id: str | None = None
    would: dict[str, Any] | None = Field(
        default=None, description="The exports, cancelled jobs and deletions that would follow. Only in a dry run"
    )
    status_url: str
