"""The headers of the tus protocol, version 1.0.0: https://tus.io/protocols/resumable-upload"""

from __future__ import annotations

import base64
import binascii
from datetime import datetime
from email.utils import format_datetime

from fastapi import HTTPException
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from geomill.errors import InputError, Problem
from geomill.uploads.receiving import ALGORITHMS, BodyChecksum

VERSION = "1.0.0"
EXTENSIONS = "creation,creation-with-upload,checksum,termination,expiration"
PREFIX = "/api/platform/uploads"
BYTES = "application/offset+octet-stream"
LONGEST_METADATA = 4096
REQUEST_HEADERS = ("Tus-Resumable", "Upload-Length", "Upload-Metadata", "Upload-Offset", "Upload-Checksum")
RESPONSE_HEADERS = (
    "Tus-Resumable", "Tus-Version", "Tus-Extension", "Tus-Max-Size", "Tus-Checksum-Algorithm", "Upload-Offset",
    "Upload-Length", "Upload-Metadata", "Upload-Expires",
)  # fmt: skip


class TusVersion:
    """Adds `Tus-Resumable` to every answer about uploads, refusals included."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or not is_upload(scope):
            await self._app(scope, receive, send)
            return

        async def marked(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message)["Tus-Resumable"] = VERSION
            await send(message)

        await self._app(scope, receive, marked)


def is_upload(scope: Scope) -> bool:
    path: str = scope["path"]
    return path == PREFIX or path.startswith(f"{PREFIX}/")


def carries_bytes(scope: Scope) -> bool:
    """Whether the body of a request is a part of a file, which may be large."""
    return (
        is_upload(scope)
        and scope["method"] in ("POST", "PATCH")
        and Headers(scope=scope).get("content-type", "").partition(";")[0].strip().lower() == BYTES
    )


def capabilities(max_bytes: int) -> dict[str, str]:
    return {
        "Tus-Version": VERSION,
        "Tus-Extension": EXTENSIONS,
        "Tus-Max-Size": str(max_bytes),
        "Tus-Checksum-Algorithm": ",".join(ALGORITHMS),
    }


def require_version(headers: Headers) -> None:
    if headers.get("tus-resumable") != VERSION:
        raise HTTPException(
            412, f"the header Tus-Resumable must be {VERSION}: uploads speak tus", headers={"Tus-Version": VERSION}
        )


def require_bytes(headers: Headers) -> None:
    if headers.get("content-type", "").partition(";")[0].strip().lower() != BYTES:
        raise HTTPException(415, f"the header Content-Type must be {BYTES}")


def number(headers: Headers, name: str) -> int:
    text = headers.get(name, "")
    if not text.isascii() or not text.isdecimal() or len(text) > 18:
        raise _wrong(name, f"the header {name} must be a number of bytes, not {text[:40]!r}")
    return int(text)


def metadata(headers: Headers) -> dict[str, str]:
    """Return the metadata of an upload: `name base64, name base64, …`."""
    raw = headers.get("upload-metadata", "")
    if len(raw) > LONGEST_METADATA:
        raise _wrong("Upload-Metadata", f"the header Upload-Metadata is longer than {LONGEST_METADATA} characters")
    values: dict[str, str] = {}
    for pair in filter(None, (pair.strip() for pair in raw.split(","))):
        name, _, encoded = pair.partition(" ")
        try:
            values[name] = base64.b64decode(encoded.strip(), validate=True).decode()
        except (binascii.Error, UnicodeDecodeError, ValueError):
            raise _wrong("Upload-Metadata", f"the value of '{name[:40]}' is not UTF-8 in Base64") from None
    return values


def checksum(headers: Headers) -> BodyChecksum | None:
    text = headers.get("upload-checksum")
    if text is None:
        return None
    algorithm, _, encoded = text.partition(" ")
    if algorithm not in ALGORITHMS:
        raise HTTPException(400, f"the checksum must be one of {', '.join(ALGORITHMS)}, not '{algorithm[:40]}'")
    try:
        return BodyChecksum(algorithm, base64.b64decode(encoded.strip(), validate=True))
    except (binascii.Error, ValueError):
        raise HTTPException(400, "the checksum is not Base64") from None


def moment(value: datetime) -> str:
    return format_datetime(value, usegmt=True)


def _wrong(field: str, message: str) -> InputError:
    return InputError(message, problems=[Problem(field, message)])
