"""Operations on uploads: send a file so that it survives a lost connection, list, remove."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from geomill.client.answers import path
from geomill.client.asynchronous.connection import AsyncGatewayConnection
from geomill.client.files import READ_AT_ONCE, SourceFile, UploadProgress, look_at, metadata
from geomill.contract.uploads import UploadFromUrl, UploadPage, UploadView
from geomill.domain.assets.upload import UploadStatus
from geomill.errors import (
    InputError,
    StorageFull,
    UnavailableError,
    UploadGone,
    UploadLocked,
    UploadOffset,
)

TUS = {"Tus-Resumable": "1.0.0"}
BYTES = {**TUS, "Content-Type": "application/offset+octet-stream"}
SENT_AT_ONCE = 64 * 1024 * 1024
"""The bytes of one request. Proxies limit the size and the time of a request."""
PATIENCE_SECONDS = 120.0
FASTEST_SECONDS, SLOWEST_SECONDS = 0.2, 5.0


class AsyncUploadOperations:
    def __init__(self, connection: AsyncGatewayConnection) -> None:
        self._connection = connection

    async def page(self, **filters: Any) -> UploadPage:
        """Return a page of uploads, the newest first. `filters` are those of `GET /api/platform/uploads`."""
        return await self._connection.get(UploadPage, "/api/platform/uploads", **filters)

    async def get(self, upload_id: str) -> UploadView:
        return await self._connection.get(UploadView, path("/api/platform/uploads/{}", upload_id))

    async def remove(self, upload_id: str) -> None:
        """Remove an upload and its file."""
        await self._connection.delete(path("/api/platform/uploads/{}", upload_id))

    async def from_url(self, order: UploadFromUrl) -> UploadView:
        """Have a file fetched from a URL that an administrator has allowed."""
        return await self._connection.post(UploadView, "/api/platform/uploads/from-url", order)

    async def wait(self, upload_id: str, *, progress: UploadProgress | None = None) -> UploadView:
        """Wait until an upload that is fetched from a URL is complete or has failed."""
        pause = FASTEST_SECONDS
        while True:
            upload = await self.get(upload_id)
            if progress:
                progress(upload.received_bytes, upload.length or 0)
            if upload.status is not UploadStatus.RECEIVING:
                return upload
            await asyncio.sleep(pause)
            pause = min(pause * 1.5, SLOWEST_SECONDS)

    async def begin(
        self,
        file_name: str,
        length: int,
        *,
        platform_id: str | None = None,
        folder: str | None = None,
        sha256: str | None = None,
    ) -> UploadView:
        """Begin an upload. Its bytes follow with `send`."""
        values = {"filename": file_name, "folder": folder, "sha256": sha256, "platform_id": platform_id}
        headers = {**TUS, "Upload-Length": str(length), "Upload-Metadata": metadata(values)}
        answer = await self._connection.transmit("POST", "/api/platform/uploads", headers)
        return await self.get(answer["location"].rpartition("/")[2])

    async def send(
        self, upload_id: str, offset: int, content: bytes | AsyncIterator[bytes], *, size: int | None = None
    ) -> int:
        """Send bytes that continue at `offset`. Returns the bytes that the gateway then has. `size` is the number of
        bytes that an iterator yields, if it is known."""
        headers = {**BYTES, "Upload-Offset": str(offset)}
        if size is not None:
            headers["Content-Length"] = str(size)
        answer = await self._connection.transmit("PATCH", path("/api/platform/uploads/{}", upload_id), headers, content)
        return int(answer["upload-offset"])

    async def send_file(
        self,
        file: Path,
        *,
        platform_id: str | None = None,
        folder: str | None = None,
        progress: UploadProgress | None = None,
        patience: float = PATIENCE_SECONDS,
    ) -> UploadView:
        """Upload a file and return the complete upload. It continues after a lost connection, and where an earlier call
        or another process broke off. The gateway checks its SHA-256 before the file appears.

        Raises an error if the gateway is away or takes nothing for `patience` seconds.
        """
        source = await asyncio.to_thread(look_at, file)
        upload = await self._earlier(source, platform_id, folder)
        if upload is None:
            upload = await self.begin(
                file.name, source.size, platform_id=platform_id, folder=folder, sha256=source.sha256
            )
        silent, pause = 0.0, FASTEST_SECONDS
        while upload.status is UploadStatus.RECEIVING:
            received = upload.received_bytes
            try:
                await self._send_part(upload, source, progress)
                upload = await self.get(upload.upload_id)
            except UploadLocked:
                silent = 0.0  # another request is at work on it, or the gateway checks and places the file
            except (UploadOffset, UnavailableError) as error:
                if isinstance(error, StorageFull) or silent >= patience:
                    raise
            if upload.received_bytes > received:
                silent, pause = 0.0, FASTEST_SECONDS
                continue
            await asyncio.sleep(pause)
            silent, pause = silent + pause, min(pause * 2, SLOWEST_SECONDS)
            upload = await self._look_again(upload)
        if upload.status is UploadStatus.FAILED:
            raise UploadGone(f"the upload has failed: {upload.error}", remedy="begin a new upload")
        return upload

    async def _look_again(self, upload: UploadView) -> UploadView:
        try:
            return await self.get(upload.upload_id)
        except UnavailableError:  # the next attempt to send tells it
            return upload

    async def _earlier(self, source: SourceFile, platform_id: str | None, folder: str | None) -> UploadView | None:
        """Return an unfinished upload of the same file, or the complete one if it has the same name."""
        filters: dict[str, Any] = {"platform_id": platform_id, "sha256": source.sha256, "limit": 20}
        if folder is not None:
            filters["file_name"] = f"{folder}/{source.path.name}"
        else:
            filters["status"] = UploadStatus.RECEIVING
        for upload in (await self.page(**filters)).uploads:
            is_same = upload.length == source.size and upload.file_name.rpartition("/")[2] == source.path.name
            if is_same and upload.status is not UploadStatus.FAILED and upload.source_url is None:
                return upload
        return None

    async def _send_part(self, upload: UploadView, source: SourceFile, progress: UploadProgress | None) -> None:
        begin = upload.received_bytes
        end = min(begin + SENT_AT_ONCE, source.size)
        content = _content(source, begin, end, progress)
        await self.send(upload.upload_id, begin, content, size=end - begin)


async def _content(source: SourceFile, begin: int, end: int, progress: UploadProgress | None) -> AsyncIterator[bytes]:
    with source.path.open("rb") as file:
        file.seek(begin)
        position = begin
        while position < end:
            if progress:
                progress(position, source.size)
            data = file.read(min(READ_AT_ONCE, end - position))
            if not data:
                raise InputError(f"the file {source.path} became shorter while it was sent", remedy="upload it again")
            yield data
            position += len(data)
    if progress:
        progress(end, source.size)
