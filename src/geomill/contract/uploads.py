"""Requests and responses about uploads. The bytes themselves travel by the tus protocol, in headers and bodies."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from pydantic import BaseModel, Field, StringConstraints

from geomill.contract.inputs import ApiInput
from geomill.contract.paging import CursorPage, PageOptions
from geomill.domain.assets.platform import PlatformId
from geomill.domain.assets.source_url import LONGEST_URL
from geomill.domain.assets.upload import UploadStatus

Sha256 = Annotated[str, StringConstraints(pattern=r"^[0-9a-fA-F]{64}$", to_lower=True)]


class UploadFilters(PageOptions):
    platform_id: PlatformId | None = None
    status: UploadStatus | None = None
    sha256: Sha256 | None = Field(default=None, description="Only files with this checksum, announced or computed")
    file_name: Annotated[str, Field(max_length=900, pattern=r"^[^\x00]*$")] | None = Field(
        default=None, description="Only the file with this path in its container"
    )


class UploadFromUrl(ApiInput):
    """A file to fetch from a URL that an administrator has allowed."""

    url: Annotated[str, Field(min_length=1, max_length=LONGEST_URL)]
    file_name: Annotated[str, Field(min_length=1, max_length=240)] | None = Field(
        default=None, description="Its name; default: the last part of the URL's path"
    )
    folder: Annotated[str, Field(min_length=1, max_length=600)] | None = Field(
        default=None, description="A folder for files that belong together; default: one of its own"
    )
    platform_id: PlatformId | None = Field(
        default=None, description="The platform that it is for; default: the caller's own"
    )
    sha256: Sha256 | None = Field(default=None, description="The checksum that the file must have")


class UploadView(BaseModel):
    """A file on its way into bronze, or one that arrived. Submit it with its `container_name` and `file_name`."""

    upload_id: str
    platform_id: str
    container_name: str
    file_name: str = Field(description="Its path in the container")
    status: UploadStatus
    length: int | None = Field(description="Its bytes; null until the server of a URL has told")
    received_bytes: int = Field(description="The bytes that are safe. The sender continues here")
    sha256: str | None = Field(description="The checksum as computed, once it is complete")
    expected_sha256: str | None = Field(description="The checksum that the sender announced")
    error: str | None = Field(description="Why it failed, or why the last attempt to fetch it did")
    source_url: str | None
    created_by: str
    created_at: datetime
    updated_at: datetime
    completed_at: datetime | None
    expires_at: datetime | None = Field(description="When it is removed unless more bytes come; null once complete")


class UploadPage(CursorPage):
    uploads: list[UploadView]
