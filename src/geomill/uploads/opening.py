"""Opens uploads, within the limits of a platform."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from geomill.domain.assets.platform import own_container
from geomill.domain.assets.upload import NewUpload, Upload, check_sha256, new_upload_id, upload_path
from geomill.domain.objectname import ObjectName, Zone
from geomill.errors import ConflictError, PlatformInactive, StorageFull, TooManyRequests, UploadTooLarge
from geomill.settings import UploadSettings
from geomill.storage import Storage
from geomill.storage.drafts import draft_of
from geomill.store import platforms, uploads
from geomill.store.pool import Connection

RETRY_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class UploadOrder:
    """A file that somebody wants to send, or that a URL has."""

    platform_id: str
    file_name: str
    created_by: str
    length: int | None = None
    folder: str | None = None
    sha256: str | None = None
    metadata: str = ""
    source_url: str | None = None


async def open_upload(conn: Connection, storage: Storage, limits: UploadSettings, order: UploadOrder) -> Upload:
    """Check an order and note it. Its bytes follow. Raises before anything is written."""
    platform = await platforms.get(conn, order.platform_id)
    if not platform.is_active:
        raise PlatformInactive(
            f"the platform '{platform.platform_id}' accepts no uploads", remedy="ask an administrator to activate it"
        )
    upload_id = new_upload_id()
    new = NewUpload(
        upload_id=upload_id,
        platform_id=order.platform_id,
        container_name=own_container(order.platform_id),
        file_name=upload_path(upload_id, order.file_name, order.folder),
        length=order.length,
        expected_sha256=check_sha256(order.sha256) if order.sha256 else None,
        metadata=order.metadata,
        source_url=order.source_url,
        created_by=order.created_by,
    )
    require_size(limits, order.length or 0)
    await _require_room(storage, new)
    async with conn.transaction():
        await uploads.serialise(conn, order.platform_id)
        _require_few(limits, await uploads.open_figures(conn, order.platform_id), new)
        return await uploads.create(conn, new)


def require_size(limits: UploadSettings, length: int) -> None:
    if length > limits.upload_max_bytes:
        raise UploadTooLarge(
            f"the file has {length} bytes, and an upload may have {limits.upload_max_bytes}",
            remedy="divide the file, or ask an administrator to raise GEOMILL_UPLOAD_MAX_BYTES",
        )


def _require_few(limits: UploadSettings, figures: uploads.OpenUploads, new: NewUpload) -> None:
    if figures.uploads >= limits.upload_open_most:
        raise TooManyRequests(
            f"the platform '{new.platform_id}' has {figures.uploads} unfinished uploads, which is its limit",
            remedy="finish or remove some of them",
            retry_after=RETRY_SECONDS,
        )
    if figures.bytes + (new.length or 0) > limits.upload_open_bytes:
        raise UploadTooLarge(
            f"the unfinished uploads of the platform '{new.platform_id}' would have"
            f" {figures.bytes + (new.length or 0)} bytes, and may have {limits.upload_open_bytes}",
            remedy="finish or remove some of them first",
        )


async def _require_room(storage: Storage, new: NewUpload) -> None:
    name = ObjectName(Zone.BRONZE, new.container_name, new.file_name)
    if await storage.exists(name):
        raise ConflictError(
            f"the container '{name.container}' has a file '{name.path}' already",
            remedy="choose another folder or file name",
        )
    free_bytes = await storage.run(partial(_free_bytes, storage, name, new.upload_id))
    if free_bytes is not None and free_bytes < (new.length or 0):
        raise StorageFull(
            f"the disk of uploads has no room for {new.length} bytes", remedy="ask an operator to make room"
        )


def _free_bytes(storage: Storage, name: ObjectName, upload_id: str) -> int | None:
    return draft_of(storage.sync, name, upload_id).free_bytes()
