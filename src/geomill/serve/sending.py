"""Sends a stored file, whole or a range of it."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from dataclasses import dataclass

from fastapi import Request
from fastapi.responses import Response, StreamingResponse

from geomill.domain.objectname import ObjectName
from geomill.storage import Storage

PART = 4_000_000
_RANGE = re.compile(r"bytes=(\d*)-(\d*)")


@dataclass(frozen=True, slots=True)
class StoredFile:
    name: ObjectName
    size: int
    sha256: str
    media_type: str
    public: bool
    download_name: str = ""
    """The name under which a browser saves it."""


async def send_file(request: Request, storage: Storage, file: StoredFile) -> Response:
    etag = f'"{file.sha256}"'
    headers = {
        "ETag": etag,
        "Accept-Ranges": "bytes",
        "Cache-Control": "public, max-age=60" if file.public else "private, no-cache",
        "Vary": "Authorization, X-API-Key",
    }
    if request.headers.get("if-none-match") == etag:
        return Response(status_code=304, headers=headers)
    start, end, status = _window(request.headers.get("range"), file.size)
    if status == 416:
        return Response(status_code=416, headers={**headers, "Content-Range": f"bytes */{file.size}"})
    if status == 206:
        headers["Content-Range"] = f"bytes {start}-{end - 1}/{file.size}"
    if file.download_name:
        headers["Content-Disposition"] = f'attachment; filename="{file.download_name}"'
    headers["Content-Length"] = str(end - start)
    if request.method == "HEAD":
        return Response(status_code=status, headers=headers, media_type=file.media_type)
    parts = _parts(storage, file.name, start, end)
    return StreamingResponse(parts, status_code=status, headers=headers, media_type=file.media_type)


def _window(header: str | None, size: int) -> tuple[int, int, int]:
    """Return start, end and status. Anything but a single range is answered with the whole file, as HTTP allows."""
    match = _RANGE.fullmatch(header or "")
    if match is None or match.groups() == ("", ""):
        return 0, size, 200
    first, last = match.groups()
    start = int(first) if first else max(size - int(last), 0)
    end = min(int(last) + 1, size) if first and last else size
    return (start, end, 206) if start < end else (0, 0, 416)


async def _parts(storage: Storage, name: ObjectName, start: int, end: int) -> AsyncIterator[bytes]:
    while start < end:
        data = await storage.read(name, start, min(PART, end - start))
        if not data:
            return
        start += len(data)
        yield data
