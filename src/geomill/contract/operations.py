"""Responses about parked jobs, settings, storage and the operators' audit."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from geomill.contract.inputs import ApiInput, Text
from geomill.contract.paging import CursorPage, PageOptions
from geomill.contract.uploads import UploadView
from geomill.domain.access.operator_audit import OperatorAction, OperatorAuditEntry


class ParkedJobView(BaseModel):
    """A job that nobody works on, because the database refused its owner's decision."""

    model_config = ConfigDict(from_attributes=True)

    job_id: str
    workflow_id: str
    status: str
    asset_id: str | None
    submitted_by: str | None
    created_at: datetime
    parked_at: datetime
    parked_reason: str | None


class ParkedJobPage(CursorPage):
    jobs: list[ParkedJobView]


class SettingView(BaseModel):
    """A setting of this gateway."""

    name: str = Field(description="The environment variable")
    value: Any = Field(description="The value in effect; a secret is masked")
    default: Any
    is_set: bool = Field(description="Whether it was set, by the environment or the command line")
    secret: bool = Field(description="Whether it may hold a secret")
    description: str


class SettingList(BaseModel):
    settings: list[SettingView]


class PlatformUsageView(BaseModel):
    """The files of one platform in a zone."""

    platform_id: str
    assets: int | None = Field(description="Assets with files in it; null for bronze")
    objects: int
    bytes: int


class ZoneUsageView(BaseModel):
    zone: str
    kind: str = Field(description="`folder`, `azure` or `s3`")
    assets: int | None = Field(description="Assets with files in it; null for bronze")
    objects: int = Field(description="Files. Of bronze, geomill knows only what was uploaded over HTTP")
    bytes: int
    platforms: list[PlatformUsageView]
    free_bytes: int | None = Field(description="Free space on the disk of a folder; null for other kinds")
    total_bytes: int | None


class FeatureUsageView(BaseModel):
    """Tables of features in the database."""

    tables: int
    bytes: int = Field(description="With their indexes")


class StorageView(BaseModel):
    zones: list[ZoneUsageView]
    features: FeatureUsageView
    measured_at: datetime = Field(description="The figures are kept for a minute")


class AssetUsageFilters(PageOptions):
    platform_id: Text | None = None


class AssetUsageView(BaseModel):
    """The files and tables of an asset, over all revisions whose data is there."""

    model_config = ConfigDict(from_attributes=True)

    asset_id: str
    platform_id: str
    data_type: str
    revision: int
    deleted_at: datetime | None
    created_at: datetime
    revisions: int = Field(description="Revisions whose data is there")
    objects: int = Field(description="Files in silver")
    bytes: int
    table_bytes: int = Field(description="Tables of features, with their indexes")
    external_objects: int
    external_bytes: int


class AssetUsagePage(CursorPage):
    assets: list[AssetUsageView]


class OldRevisionView(BaseModel):
    """A revision whose files and tables the orchestrators delete next."""

    asset_id: str
    revision: int
    job_id: str | None
    reason: str = Field(description="`failed`: failed, cancelled or superseded before its end; or `superseded`")
    ended_at: datetime | None
    bytes: int | None = Field(description="The size of its files, if it had completed")


class CleanupOptions(ApiInput):
    limit: Annotated[int, Field(ge=1, le=1000)] = 100


class CleanupView(BaseModel):
    """The old data that orchestrators delete at their next look. Nothing that is served, public or can be restored."""

    revisions: list[OldRevisionView]
    uploads: list[UploadView]
    jobs: int = Field(description="Jobs whose details, large outputs and intermediates are deleted")
    more: bool = Field(description="Whether a list was cut off at the limit")


class OperatorAuditFilters(PageOptions):
    action: OperatorAction | None = None


class OperatorAuditPage(CursorPage):
    entries: list[OperatorAuditEntry]
