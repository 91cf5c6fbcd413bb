"""Fetches files from URLs that an administrator has allowed, into bronze.

An attempt that breaks off is continued with a range, if the server has the same file still. Each redirect must be
allowed, too. Addresses are checked as those of callbacks are (`pinning.py`).

Weakness: a server that knows no ranges sends the file from its beginning each time.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import httpx
import psycopg

from geomill.domain.assets.source_url import check_source_url
from geomill.domain.assets.upload import Upload, UploadStatus
from geomill.domain.engine.callback import Allowance
from geomill.engine.maintenance.pinning import ForbiddenAddress, NotReached, answer_of, permitted, text_of
from geomill.errors import GeomillError, UnavailableError, UploadLocked
from geomill.settings import UploadSettings
from geomill.storage import NO_STORAGE, Storage
from geomill.store import uploads
from geomill.store.duties import Duties
from geomill.store.pool import Pool
from geomill.uploads.opening import require_size
from geomill.uploads.receiving import UploadReceiver

log = logging.getLogger(__name__)

SETTING = "GEOMILL_UPLOAD_FROM_ALLOW"
MOST_REDIRECTS = 5
MOST_ATTEMPTS = 8
SILENCE_SECONDS = 30.0
ATTEMPT_SECONDS = 3600.0
"""The time of one attempt. The next one continues."""
_RANGE = re.compile(r"bytes (\d{1,18})-\d{1,18}/(\d{1,18})")


@dataclass(frozen=True)
class FetchOptions:
    limits: UploadSettings = field(default_factory=UploadSettings)
    look_seconds: float = 2.0
    at_once: int = 2

    @property
    def allowed(self) -> Allowance:
        return Allowance.of(self.limits.upload_from_allow)


class _Unusable(Exception):  # noqa: N818
    """The file cannot be fetched, now or later."""


@dataclass
class UrlFetcher:
    pool: Pool
    storage: Storage = NO_STORAGE
    options: FetchOptions = field(default_factory=FetchOptions)
    duties: Duties | None = None

    async def run(self) -> None:
        """Run as a duty of the orchestrator, beside its main loop, because it waits for others."""
        if self.storage is NO_STORAGE or not self.options.limits.upload_from:
            await asyncio.Event().wait()
        while True:
            try:
                await self.run_once()
            except psycopg.Error as error:
                log.warning("uploads could not be fetched; it is tried again later: %s", error)
                if self.duties:
                    self.duties.failed("fetching", error)
            else:
                if self.duties:
                    self.duties.passed("fetching")
            await asyncio.sleep(self.options.look_seconds)

    async def run_once(self) -> int:
        """Fetch the files that are due, a few at once. Returns how many were tried."""
        async with self.pool.connection() as conn:
            claimed = await uploads.claim(conn, self.options.at_once)
        await asyncio.gather(*map(self._try, claimed))
        return len(claimed)

    async def _try(self, upload: Upload) -> None:
        """Fetch a file. A failure is noted; one that will not pass, and the last of several, ends the upload."""
        try:
            async with asyncio.timeout(ATTEMPT_SECONDS):
                await self._fetch(upload)
        except UploadLocked:
            pass
        except (_Unusable, ForbiddenAddress) as error:
            await self._note(upload, str(error), final=True)
        except GeomillError as error:
            await self._note(upload, error.message, final=not isinstance(error, UnavailableError))
        except (NotReached, TimeoutError) as error:
            await self._note(upload, text_of(error), final=False)

    async def _note(self, upload: Upload, reason: str, *, final: bool) -> None:
        log.info("an upload was not fetched: %s", reason, extra={"action": "fetch", "upload_id": upload.upload_id})
        async with self.pool.connection() as conn:
            await uploads.note_error(conn, upload.upload_id, reason, final=final or upload.attempts >= MOST_ATTEMPTS)

    async def _fetch(self, upload: Upload) -> None:
        async with self._answer(upload) as answer:
            offset, length = _place(answer, upload)
            require_size(self.options.limits, length or 0)
            async with self.pool.connection() as conn:
                if offset < upload.received_bytes:
                    await uploads.restart(conn, upload.upload_id)
                etag = answer.headers.get("etag")
                sized = await uploads.learn(conn, upload.upload_id, length, etag[:500] if etag else None)
            if sized is None:
                raise UploadLocked("another orchestrator fetches it")
            body = _FetchedBody(answer)
            receiver = UploadReceiver(self.pool, self.storage, sized, self.options.limits.upload_max_bytes)
            after = await receiver.receive(offset, body.parts(), is_whole=lambda: body.whole)
        if after.received_bytes > upload.received_bytes:
            async with self.pool.connection() as conn:
                await uploads.progressed(conn, upload.upload_id)
        if after.status is not UploadStatus.COMPLETE:
            raise NotReached(body.reason or "the answer ended before the file did")

    @asynccontextmanager
    async def _answer(self, upload: Upload) -> AsyncIterator[httpx.Response]:
        """Follow redirects, each of which must be allowed, and yield the answer with the file."""
        url = upload.source_url or ""
        headers = {"Accept-Encoding": "identity", "User-Agent": "geomill"}
        if upload.received_bytes and upload.source_etag:
            headers |= {"Range": f"bytes={upload.received_bytes}-", "If-Range": upload.source_etag}
        for _ in range(MOST_REDIRECTS + 1):
            target = httpx.URL(check_source_url(url, self.options.limits.upload_from))
            addresses = await permitted(target, self.options.allowed, SETTING)
            async with answer_of("GET", target, addresses, headers, silence_seconds=SILENCE_SECONDS) as answer:
                if answer.status_code not in (301, 302, 303, 307, 308):
                    _require_file(answer)
                    yield answer
                    return
                url = str(target.join(answer.headers.get("location", "")))
        raise _Unusable(f"the URL was redirected more than {MOST_REDIRECTS} times")


class _FetchedBody:
    """The body of an answer, as far as it comes."""

    def __init__(self, answer: httpx.Response) -> None:
        self._answer = answer
        self.whole, self.reason = False, ""

    async def parts(self) -> AsyncIterator[bytes]:
        try:
            async for data in self._answer.aiter_raw():
                yield data
        except httpx.HTTPError as error:
            self.reason = text_of(error)
            return
        self.whole = True


def _require_file(answer: httpx.Response) -> None:
    status = answer.status_code
    if status in (408, 425, 429) or status >= 500:
        raise NotReached(f"the server answered {status}")
    if status not in (200, 206):
        raise _Unusable(f"the server answered {status}")
    if answer.headers.get("content-encoding", "identity").lower() != "identity":
        raise _Unusable("the server sends the file compressed, although it was asked not to")


def _place(answer: httpx.Response, upload: Upload) -> tuple[int, int | None]:
    """Return where the bytes of the answer begin, and the length of the file, if it is known."""
    if answer.status_code == 200:
        text = answer.headers.get("content-length", "")
        return 0, int(text) if text.isascii() and text.isdecimal() and len(text) <= 18 else None
    match = _RANGE.fullmatch(answer.headers.get("content-range", ""))
    if match is None or not int(match[1]) == upload.received_bytes <= int(match[2]):
        raise _Unusable("the server answered with another range than it was asked for")
    return int(match[1]), int(match[2])
