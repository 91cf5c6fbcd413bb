"""How an object gets into a store: it is visible when it is whole, and never before.

Azure and S3 commit an upload at its end. In a folder, it is made in a corner and then moved.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable
from typing import TYPE_CHECKING, TypeVar

import obstore

from geomill.storage.stores import Shelf
from geomill.storage.transfer import PARTS_AT_ONCE, part_size

if TYPE_CHECKING:
    from obstore import Attributes

ABORT_SECONDS = 5.0
Result = TypeVar("Result")


async def put_whole(shelf: Shelf, key: str, data: bytes, *, if_absent: bool, media_type: str | None) -> None:
    async with _placed(shelf, key, overwrite=not if_absent) as place:
        await obstore.put_async(
            shelf.store,
            place,
            data,
            mode="create" if if_absent and not shelf.local else "overwrite",
            attributes=_attributes(shelf, media_type),
            use_multipart=False,
        )


async def put_parts(shelf: Shelf, key: str, parts: AsyncIterator[bytes], size: int, *, media_type: str | None) -> None:
    async with _placed(shelf, key) as place:
        source = _Source(parts)
        upload = obstore.put_async(
            shelf.store,
            place,
            source,
            attributes=_attributes(shelf, media_type),
            chunk_size=part_size(size),
            max_concurrency=PARTS_AT_ONCE,
        )
        await _finish_or_abort(upload, source)


async def copy_inside(shelf: Shelf, key: str, new_key: str) -> None:
    async with _placed(shelf, new_key) as place:
        await obstore.copy_async(shelf.store, key, place)


@contextlib.asynccontextmanager
async def _placed(shelf: Shelf, key: str, *, overwrite: bool = True) -> AsyncIterator[str]:
    """The key to write to. In a folder it is moved from there to its place, which is atomic."""
    if not shelf.local:
        yield key
        return
    staged = shelf.staging_key()
    try:
        yield staged
        await obstore.rename_async(shelf.store, staged, key, overwrite=overwrite)
    except BaseException:  # whatever it is: nothing stays behind
        with contextlib.suppress(FileNotFoundError):
            await obstore.delete_async(shelf.store, staged)
        raise


def _attributes(shelf: Shelf, media_type: str | None) -> Attributes | None:
    return {"Content-Type": media_type} if media_type and not shelf.local else None


class _Stopped(Exception):  # noqa: N818
    """Told to an upload by its source, so that it takes back what it has sent."""


class _Source:
    """Parts of an upload that can be stopped from outside."""

    def __init__(self, parts: AsyncIterator[bytes]) -> None:
        self._parts = parts
        self._stopped = False

    def stop(self) -> None:
        self._stopped = True

    def __aiter__(self) -> _Source:
        return self

    async def __anext__(self) -> bytes:
        if self._stopped:
            raise _Stopped
        return await anext(self._parts)


async def _finish_or_abort(upload: Awaitable[Result], source: _Source) -> Result:
    """A store must be told that an upload will not go on: when this is cancelled, it is, before the task ends."""
    uploading = asyncio.ensure_future(upload)
    try:
        return await asyncio.shield(uploading)
    except asyncio.CancelledError:
        source.stop()
        await asyncio.wait([uploading], timeout=ABORT_SECONDS)
        uploading.cancel()
        await asyncio.gather(uploading, return_exceptions=True)
        raise
