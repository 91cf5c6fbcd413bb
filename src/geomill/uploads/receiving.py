"""Receives the bytes of an upload.

    take the lease → write some bytes → make them safe → note them in the row, under the lease → … → check, place, note

The row says how many bytes are safe. A process may die at any line: bytes that the row does not know are dropped and
sent again. The last bytes are noted together with the end, so that an upload which tells its whole length is complete.

A writer that sends nothing for the time of a lease loses it to the next one. Its own next step then fails.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any
from uuid import uuid4

from geomill.domain.assets.upload import Upload, UploadStatus
from geomill.errors import ChecksumMismatch, UploadGone, UploadLocked, UploadOffset, UploadTooLarge
from geomill.storage import Storage
from geomill.storage.drafts import Draft, DraftPart, DraftWriter, draft_of
from geomill.store import uploads
from geomill.store.pool import Pool

STEP_BYTES = 32 * 1024 * 1024
"""The bytes after which a step ends. A crash costs at most these."""
STEP_SECONDS = 5.0
"""The time after which a step ends, so that a slow sender keeps its lease and loses little."""
ALGORITHMS = ("sha1", "sha256")


@dataclass(frozen=True, slots=True)
class BodyChecksum:
    """The checksum of the bytes of one request. Until it fits, none of them counts."""

    algorithm: str
    digest: bytes


@dataclass
class UploadReceiver:
    """Adds bytes to one upload, for one request. `largest` bounds an upload whose length is not known yet."""

    pool: Pool
    storage: Storage
    upload: Upload
    largest: int
    writer: str = field(default_factory=lambda: uuid4().hex)

    async def receive(
        self,
        offset: int,
        body: AsyncIterator[bytes],
        checksum: BodyChecksum | None = None,
        *,
        is_whole: Callable[[], bool] = lambda: False,
    ) -> Upload:
        """Add the bytes of a body after the first `offset`. A body that breaks off counts as far as it came. Returns
        the upload as it then is. `is_whole` says of an upload without a length whether the body was its end."""
        self.upload = await self._lease()
        try:
            if offset != self.upload.received_bytes:
                raise UploadOffset(
                    f"the upload has {self.upload.received_bytes} bytes, and these begin at {offset}",
                    remedy="ask for the offset, and continue there",
                )
            return await self._receive(body, checksum, is_whole)
        finally:
            async with self.pool.connection() as conn:
                await uploads.release(conn, self.upload.upload_id, self.writer)

    async def _lease(self) -> Upload:
        upload_id = self.upload.upload_id
        async with self.pool.connection() as conn:
            if upload := await uploads.lease(conn, upload_id, self.writer):
                return upload
            current = await uploads.get(conn, upload_id)
        if current.status is UploadStatus.FAILED:
            raise UploadGone(f"the upload has failed: {current.error}", remedy="begin a new upload")
        if current.status is UploadStatus.COMPLETE:
            raise UploadOffset(f"the upload is complete, with {current.received_bytes} bytes")
        raise UploadLocked("another request is sending bytes of this upload", remedy="wait, then continue")

    async def _receive(
        self, body: AsyncIterator[bytes], checksum: BodyChecksum | None, is_whole: Callable[[], bool]
    ) -> Upload:
        draft = await self.storage.run(self._draft)
        if self.upload.received_bytes and await self._is_placed(draft):
            return await self._finish(draft, [])
        opening = partial(draft.open, self.upload.received_bytes, self.upload.length)
        writer = await self._opened(opening)
        try:
            steps = _Steps(self, writer, checksum)
            await steps.take(body)
            if self.upload.length is None and is_whole():
                self.upload = self.upload.evolve(length=steps.position)
            if steps.position == self.upload.length:
                return await self._finish(draft, await self.storage.run_to_end(writer.sync))
            await steps.end()
            return self.upload
        finally:
            await self.storage.run_to_end(writer.close)

    async def _opened(self, opening: Any) -> DraftWriter:
        try:
            writer: DraftWriter = await self.storage.run_to_end(opening)
        except UploadGone as error:
            await self._fail(error.message)
            raise
        return writer

    def _draft(self) -> Draft:
        return draft_of(self.storage.sync, self.upload.name, self.upload.upload_id)

    async def _is_placed(self, draft: Draft) -> bool:
        return self.upload.length is not None and await self.storage.run(partial(draft.placed, self.upload.length))

    async def _finish(self, draft: Draft, last: list[DraftPart]) -> Upload:
        """Check the bytes, put them under their name, and note that."""
        upload = self.upload
        length = upload.length if upload.length is not None else upload.received_bytes
        async with self.pool.connection() as conn:
            parts = [*await uploads.parts(conn, upload.upload_id), *last]
        try:
            async with self._keeping_lease():
                place = partial(draft.place, length, parts, upload.expected_sha256)
                digest = await self.storage.run_to_end(place, long=True)
        except (ChecksumMismatch, UploadGone) as error:
            await self._fail(error.message)
            await self.storage.run(draft.discard)
            raise
        async with self.pool.connection() as conn:
            complete = await uploads.complete(conn, upload.upload_id, self.writer, length, digest)
        if complete is None:
            raise _lost()
        await self.storage.run(draft.discard)
        return complete

    async def _fail(self, reason: str) -> None:
        async with self.pool.connection() as conn:
            await uploads.fail(conn, self.upload.upload_id, self.writer, reason)

    @contextlib.asynccontextmanager
    async def _keeping_lease(self) -> AsyncIterator[None]:
        """Renew the lease while the bytes are checked and placed, which takes long for a large file."""

        async def renew() -> None:
            while True:
                await asyncio.sleep(uploads.LEASE_SECONDS / 3)
                async with self.pool.connection() as conn:
                    await uploads.renew(conn, self.upload.upload_id, self.writer)

        renewing = asyncio.create_task(renew())
        try:
            yield
        finally:
            renewing.cancel()
            await asyncio.gather(renewing, return_exceptions=True)

    async def note(self, begin: int, end: int, parts: list[DraftPart]) -> None:
        """Note that bytes are safe."""
        async with self.pool.connection() as conn:
            noted = await uploads.save(conn, self.upload.upload_id, self.writer, begin, end, parts)
        if not noted:
            raise _lost()
        self.upload = self.upload.evolve(received_bytes=end)

    async def keep(self) -> None:
        async with self.pool.connection() as conn:
            if not await uploads.renew(conn, self.upload.upload_id, self.writer):
                raise _lost()


class _Steps:
    """Writes a body in steps. With a checksum, the whole body is one step."""

    def __init__(self, receiver: UploadReceiver, writer: DraftWriter, checksum: BodyChecksum | None) -> None:
        self._receiver, self._writer, self._checksum = receiver, writer, checksum
        self._storage = receiver.storage
        self._digest = hashlib.new(checksum.algorithm, usedforsecurity=False) if checksum else None
        self._buffer = bytearray()
        self._step_ends = time.monotonic() + STEP_SECONDS
        self._step_bytes = 0
        self.position = receiver.upload.received_bytes

    async def take(self, body: AsyncIterator[bytes]) -> None:
        """Write a body. Its last step is left open."""
        limit = self._receiver.upload.length
        limit = self._receiver.largest if limit is None else limit
        async for data in body:
            if self.position + len(data) > limit:
                raise UploadTooLarge(
                    f"more bytes came than the {limit} of the upload", remedy="give the true length when you begin it"
                )
            self._buffer += data
            self.position += len(data)
            self._step_bytes += len(data)
            if self._digest:
                self._digest.update(data)
            if len(self._buffer) >= self._writer.at_once:
                await self._flush()
            if self.position < limit and self._is_step():
                await self._step()
        await self._flush()
        if self._checksum and self._digest and self._digest.digest() != self._checksum.digest:
            raise ChecksumMismatch(
                f"the bytes of the request have another {self._checksum.algorithm} than was announced",
                remedy="send them again",
            )

    def _is_step(self) -> bool:
        return self._step_bytes >= STEP_BYTES or time.monotonic() >= self._step_ends

    async def _step(self) -> None:
        self._step_ends, self._step_bytes = time.monotonic() + STEP_SECONDS, 0
        if self._checksum:
            await self._receiver.keep()
        else:
            await self.end()

    async def end(self) -> None:
        """End a step: its bytes are safe, and noted."""
        await self._flush()
        begin = self._receiver.upload.received_bytes
        if self.position > begin:
            parts = await self._storage.run_to_end(self._writer.sync)
            await self._receiver.note(begin, self.position, parts)

    async def _flush(self) -> None:
        if self._buffer:
            data, self._buffer = bytes(self._buffer), bytearray()
            await self._storage.run_to_end(partial(self._writer.write, data))


def _lost() -> UploadLocked:
    return UploadLocked("another request has taken over this upload", remedy="ask for the offset, and continue there")
