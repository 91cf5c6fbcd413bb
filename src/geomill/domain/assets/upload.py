"""Uploads: files on their way into a platform's container in bronze, and files that arrived that way."""

from __future__ import annotations

import re
import secrets
from enum import StrEnum
from typing import Annotated, ClassVar

from pydantic import AwareDatetime, BaseModel, Field

from geomill.domain.assets.platform import PlatformId
from geomill.domain.entity import BigInt, Check, Entity, ForeignKey, Index, Key, Now, Subject
from geomill.domain.objectname import ObjectName, Zone, check_path
from geomill.errors import InputError, InvalidName, Problem

SHA256 = re.compile(r"[0-9a-f]{64}")


class UploadStatus(StrEnum):
    """An upload is `receiving` until all its bytes are there, fit the checksum and lie under their name."""

    RECEIVING = "receiving"
    COMPLETE = "complete"
    FAILED = "failed"


class NewUpload(BaseModel):
    """An upload before it is stored."""

    upload_id: Key
    platform_id: PlatformId
    container_name: Annotated[str, Field(max_length=63)]
    file_name: Annotated[str, Field(max_length=900)] = Field(description="The path in the container")
    length: BigInt | None = Field(default=None, ge=0, description="Its bytes; None until the server of a URL tells")
    expected_sha256: Annotated[str, Field(max_length=64)] | None = Field(
        default=None, description="The checksum that the sender announced"
    )
    metadata: Annotated[str, Field(max_length=4096)] = Field(
        default="", description="The header Upload-Metadata of its creation"
    )
    source_url: Annotated[str, Field(max_length=2000)] | None = Field(
        default=None, description="The URL that it is fetched from; None if a client sends it"
    )
    created_by: Subject


class Upload(NewUpload, Entity):
    """A file on its way into bronze, or one that arrived. Its bytes up to `received_bytes` are safe on disk."""

    __sql_schema__: ClassVar = "app"
    __sql_table__: ClassVar = "uploads"
    __sql_primary_key__: ClassVar = ("upload_id",)
    __sql_new__: ClassVar = NewUpload
    __sql_foreign_keys__: ClassVar = (
        ForeignKey(("platform_id",), "app.platforms", ("platform_id",), on_delete="RESTRICT"),
    )
    __sql_indexes__: ClassVar = (
        Index("idx_uploads_name", ("container_name", "file_name"), unique=True, where="status <> 'failed'"),
        Index("idx_uploads_platform", ("platform_id", "created_at DESC", "upload_id DESC")),
        Index("idx_uploads_created", ("created_at DESC", "upload_id DESC")),
        Index("idx_uploads_updated", ("updated_at",)),
        Index("idx_uploads_due", ("due_at",), where="source_url IS NOT NULL AND status = 'receiving'"),
    )
    __sql_checks__: ClassVar = (
        Check("uploads_received", "received_bytes >= 0 AND received_bytes <= coalesce(length, received_bytes)"),
        Check("uploads_whole", "(status = 'complete') = (completed_at IS NOT NULL)"),
    )

    received_bytes: BigInt = 0
    status: UploadStatus = UploadStatus.RECEIVING
    sha256: Annotated[str, Field(max_length=64)] | None = Field(default=None, description="The checksum as computed")
    error: str | None = None
    writer: Key | None = Field(default=None, description="The request that holds the lease to write")
    writer_until: AwareDatetime | None = None
    source_etag: Annotated[str, Field(max_length=500)] | None = Field(
        default=None, description="The ETag of the URL's answer; a changed one begins again"
    )
    attempts: int = Field(default=0, description="How often the URL was fetched")
    due_at: Now
    created_at: Now
    updated_at: Now
    completed_at: AwareDatetime | None = None

    @property
    def name(self) -> ObjectName:
        return ObjectName(Zone.BRONZE, self.container_name, self.file_name)


class UploadPart(Entity):
    """A piece of an upload in a store that cannot append. The piece is an object of its own."""

    __sql_schema__: ClassVar = "app"
    __sql_table__: ClassVar = "upload_parts"
    __sql_primary_key__: ClassVar = ("upload_id", "begin_byte")
    __sql_foreign_keys__: ClassVar = (ForeignKey(("upload_id",), "app.uploads", ("upload_id",)),)

    upload_id: Key
    begin_byte: BigInt
    size: BigInt
    object_path: Annotated[str, Field(max_length=900)]


def new_upload_id() -> str:
    """Return an id that nobody can guess."""
    return secrets.token_hex(16)


def upload_path(upload_id: str, file_name: str, folder: str | None) -> str:
    """Return the path of an upload in its container. Without a folder, the upload has one of its own."""
    if "/" in file_name:
        raise _wrong("filename", f"filename {file_name[:80]!r} has a slash", "give the folder apart, as 'folder'")
    if folder and folder.startswith("."):
        raise _wrong("folder", f"folder {folder[:80]!r} begins with a dot", "choose another name: those are hidden")
    try:
        check_path(file_name, "filename")
        return check_path(f"{check_path(folder, 'folder') if folder else upload_id}/{file_name}", "filename")
    except InvalidName as error:
        raise InvalidName(
            error.message, remedy=error.remedy, problems=[Problem("filename", error.message, error.remedy)]
        ) from None


def check_sha256(value: str) -> str:
    if not SHA256.fullmatch(value.lower()):
        raise _wrong("sha256", f"sha256 {value[:80]!r} is no SHA-256", "give 64 hexadecimal digits")
    return value.lower()


def _wrong(field: str, message: str, remedy: str) -> InputError:
    return InputError(message, remedy=remedy, problems=[Problem(field, message, remedy)])
