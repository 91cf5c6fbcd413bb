"""Removes uploads: the bytes first, then the row, so that nothing is left that no row knows."""

from __future__ import annotations

from functools import partial
from uuid import uuid4

from geomill.domain.assets.upload import Upload, UploadStatus
from geomill.errors import ConflictError, UploadLocked
from geomill.storage import Storage
from geomill.storage.drafts import draft_of
from geomill.store import uploads
from geomill.store.pool import Pool


async def remove_upload(pool: Pool, storage: Storage, upload: Upload) -> None:
    """Remove an upload. Raises `ConflictError` if a request under way names its file."""
    writer = uuid4().hex
    async with pool.connection() as conn:
        current = await uploads.lease(conn, upload.upload_id, writer, any_status=True)
        if current is None:
            await uploads.get(conn, upload.upload_id)  # raises if it is gone
            raise UploadLocked("a request is sending bytes of this upload", remedy="wait, then remove it")
    try:
        await _remove(pool, storage, current, writer)
    except BaseException:
        async with pool.connection() as conn:
            await uploads.release(conn, upload.upload_id, writer)
        raise


async def _remove(pool: Pool, storage: Storage, upload: Upload, writer: str) -> None:
    if upload.status is UploadStatus.COMPLETE:
        async with pool.connection() as conn:
            request_id = await uploads.needed_by(conn, upload)
        if request_id is not None:
            raise ConflictError(
                f"the request {request_id} needs the file '{upload.file_name}'", remedy="wait until it has ended"
            )
        await storage.delete(upload.name)
    await storage.run(partial(discard_draft, storage, upload))
    async with pool.connection() as conn:
        await uploads.remove(conn, upload.upload_id, writer)


def discard_draft(storage: Storage, upload: Upload) -> None:
    draft_of(storage.sync, upload.name, upload.upload_id).discard()
