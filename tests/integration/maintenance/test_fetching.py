"""Files from URLs: only from where an administrator allows it, and continued where they broke off."""

from __future__ import annotations

import asyncio
import hashlib
import re
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from geomill.domain.assets.source_url import check_source_url
from geomill.domain.assets.upload import Upload, UploadStatus
from geomill.engine.maintenance.fetching import MOST_ATTEMPTS, FetchOptions, UrlFetcher
from geomill.errors import Forbidden
from geomill.settings import UploadSettings
from geomill.storage import Storage, StorageRecipe
from geomill.store import uploads
from geomill.store.pool import Pool
from geomill.uploads.opening import UploadOrder, open_upload

CONTENT = bytes(range(256)) * 400
DIGEST = hashlib.sha256(CONTENT).hexdigest()


@dataclass
class FileServer:
    """Serves one file, with ranges, and breaks off as often as it is told."""

    port: int = 0
    cuts: int = 0
    etag: str = '"one"'
    content: bytes = CONTENT
    statuses: list[int] = field(default_factory=list)
    location: str = ""
    with_length: bool = True
    ranges: list[str] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/public/a.tif"

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        writer.write(self._answer(head))
        await writer.drain()
        writer.close()

    def _answer(self, head: str) -> bytes:
        if self.statuses:
            status = self.statuses.pop(0)
            return f"HTTP/1.1 {status} X\r\nContent-Length: 0\r\nLocation: {self.location}\r\n\r\n".encode()
        match = re.search(r"range: bytes=(\d+)-\r", head, re.IGNORECASE)
        begin = (
            int(match[1]) if match and f"if-range: {self.etag}\r" in head.lower().replace("If-Range", "if-range") else 0
        )
        self.ranges.append(match[0].strip() if match else "")
        body = self.content[begin:]
        size = len(self.content)
        lines = [f"HTTP/1.1 {'206 Partial' if begin else '200 OK'}", f"ETag: {self.etag}", "Connection: close"]
        if self.with_length:
            lines.append(f"Content-Length: {len(body)}")
        if begin:
            lines.append(f"Content-Range: bytes {begin}-{size - 1}/{size}")
        if self.cuts:
            self.cuts -= 1
            body = body[: len(body) // 2]
        return "\r\n".join([*lines, "", ""]).encode() + body


@pytest.fixture
async def site() -> AsyncIterator[FileServer]:
    file_server = FileServer()
    async with await asyncio.start_server(file_server.serve, "127.0.0.1", 0) as listening:
        file_server.port = listening.sockets[0].getsockname()[1]
        yield file_server


@dataclass
class Fetching:
    pool: Pool
    storage: Storage
    site: FileServer

    def fetcher(self, **changes: Any) -> UrlFetcher:
        prefix = f"http://127.0.0.1:{self.site.port}/public/"
        limits = UploadSettings(**{"upload_from": [prefix], "upload_from_allow": ["127.0.0.1"], **changes})
        return UrlFetcher(self.pool, self.storage, FetchOptions(limits))

    async def order(self, **changes: Any) -> Upload:
        order = UploadOrder(**{"platform_id": "ddh", "file_name": "a.tif", "created_by": "x",
                               "source_url": self.site.url, **changes})  # fmt: skip
        async with self.pool.connection() as conn:
            return await open_upload(conn, self.storage, UploadSettings(), order)

    async def after(self, upload: Upload, **changes: Any) -> Upload:
        """Try once more, as if the time for it had come."""
        async with self.pool.connection() as conn:
            await conn.execute("UPDATE app.uploads SET due_at = now()")
        assert await self.fetcher(**changes).run_once() == 1
        async with self.pool.connection() as conn:
            return await uploads.get(conn, upload.upload_id)


@pytest.fixture
async def fetching(pool: Pool, site: FileServer, tmp_path: Path) -> Fetching:
    storage = Storage(StorageRecipe.in_folder(tmp_path))
    return Fetching(pool, storage, site)


@pytest.mark.parametrize("with_length", [True, False])
async def test_a_file_is_fetched(fetching: Fetching, site: FileServer, with_length: bool) -> None:
    site.with_length = with_length
    upload = await fetching.after(await fetching.order(sha256=DIGEST))
    assert (upload.status, upload.sha256, upload.length) == (UploadStatus.COMPLETE, DIGEST, len(CONTENT))
    assert await fetching.storage.read(upload.name) == CONTENT
    assert await fetching.fetcher().run_once() == 0


async def test_a_fetch_that_broke_off_continues(fetching: Fetching, site: FileServer) -> None:
    site.cuts = 2
    order = await fetching.order()
    first = await fetching.after(order)
    assert (first.status, first.received_bytes) == (UploadStatus.RECEIVING, len(CONTENT) // 2)
    assert first.error
    await fetching.after(order)
    last = await fetching.after(order)
    assert (last.status, last.sha256, last.error) == (UploadStatus.COMPLETE, DIGEST, None)
    assert site.ranges == ["", "Range: bytes=51200-", "Range: bytes=76800-"]


async def test_a_changed_file_begins_again(fetching: Fetching, site: FileServer) -> None:
    site.cuts = 1
    order = await fetching.order()
    await fetching.after(order)
    site.etag, site.content = '"two"', CONTENT[::-1]
    upload = await fetching.after(order)
    assert (upload.status, upload.sha256) == (UploadStatus.COMPLETE, hashlib.sha256(CONTENT[::-1]).hexdigest())


async def test_redirects_stay_within_what_is_allowed(fetching: Fetching, site: FileServer) -> None:
    site.statuses, site.location = [302], "/public/b.tif"
    assert (await fetching.after(await fetching.order())).status is UploadStatus.COMPLETE
    for location in (
        "/private/b.tif",
        "http://169.254.169.254/public/a.tif",
        "/public/../private/b.tif",
        "file:///etc",
    ):
        site.statuses, site.location = [302], location
        upload = await fetching.after(await fetching.order(folder=str(hash(location))))
        assert upload.status is UploadStatus.FAILED, location


async def test_private_addresses_are_refused(fetching: Fetching) -> None:
    upload = await fetching.after(await fetching.order(), upload_from_allow=[])
    assert upload.status is UploadStatus.FAILED
    assert "GEOMILL_UPLOAD_FROM_ALLOW" in (upload.error or "")


@pytest.mark.parametrize(
    ("change", "limits"),
    [
        ({"statuses": [404]}, {}),
        ({}, {"upload_max_bytes": 1000}),
        ({"with_length": False}, {"upload_max_bytes": 1000}),
    ],
)
async def test_what_cannot_be_fetched_fails(
    fetching: Fetching, site: FileServer, change: dict[str, Any], limits: dict[str, Any]
) -> None:
    for name, value in change.items():
        setattr(site, name, value)
    upload = await fetching.after(await fetching.order(), **limits)
    assert upload.status is UploadStatus.FAILED
    assert not await fetching.storage.exists(upload.name)


async def test_a_wrong_checksum_fails(fetching: Fetching) -> None:
    upload = await fetching.after(await fetching.order(sha256="0" * 64))
    assert upload.status is UploadStatus.FAILED
    assert not await fetching.storage.exists(upload.name)


async def test_a_server_that_is_away_is_given_up(fetching: Fetching, site: FileServer) -> None:
    site.statuses = [503] * 20
    order = await fetching.order()
    for _ in range(MOST_ATTEMPTS - 1):
        assert (await fetching.after(order)).status is UploadStatus.RECEIVING
    assert (await fetching.after(order)).status is UploadStatus.FAILED


def test_urls_are_allowed_by_whole_parts() -> None:
    prefixes = ["https://data.example.org/public", "https://other.example.org:8443/"]
    assert check_source_url("https://data.example.org/public/a.tif", prefixes)
    assert check_source_url("https://DATA.example.org/public/a.tif", prefixes)
    for url in (
        "https://data.example.org/publication/a.tif",
        "https://data.example.org.evil.org/public/a.tif",
        "http://data.example.org/public/a.tif",
        "https://data.example.org:444/public/a.tif",
        "https://data.example.org/public/%2e%2e/private",
        "https://data.example.org/public/..%2Fprivate",
        "https://other.example.org/a",
    ):
        with pytest.raises(Forbidden):
            check_source_url(url, prefixes)
