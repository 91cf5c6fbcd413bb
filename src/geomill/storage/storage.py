"""The one face of all stores.

Requests that a store does not answer, or answers with "too busy", are sent again with growing pauses, within the time
that the settings give; then it is `StorageUnavailable`.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import hashlib
import os
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, TypeVar
from uuid import uuid4

import obstore

from geomill.domain.location import AzureAccount, S3Bucket
from geomill.domain.objectname import ObjectName, Zone, check_path
from geomill.errors import ConflictError, InputError, InvalidName, NotFoundError, StorageUnavailable
from geomill.storage import gdal
from geomill.storage.objects import ObjectInfo, Progress, Stored
from geomill.storage.problems import persistently, translated
from geomill.storage.recipe import Recipe
from geomill.storage.stores import Shelf, Stores
from geomill.storage.transfer import PART, Meter, from_file, hash_file, in_order, part_size
from geomill.storage.uploading import copy_inside, put_parts, put_whole
from geomill.storage.waiting import SyncStorage

if TYPE_CHECKING:
    from obstore import GetOptions, ObjectMeta

LISTED_AT_ONCE = 1_000
DELETED_AT_ONCE = 250
"""Azure takes 256 in one request, S3 takes 1,000."""
LARGEST_S3_COPY = 5 * 1024**3
Result = TypeVar("Result")


class Storage:
    """Cheap to make; a store is opened when it is first used. `storage.sync` is the same for code that waits."""

    def __init__(self, recipe: Recipe) -> None:
        self.recipe = recipe
        self._stores = Stores(recipe)

    def __reduce__(self) -> tuple[Any, ...]:
        return Storage, (self.recipe,)

    @property
    def sync(self) -> SyncStorage:
        return SyncStorage(self)

    # Looking

    async def stat(self, name: ObjectName) -> ObjectInfo:
        """`NotFoundError` when it is not there."""
        shelf, key = await self._place(name)
        meta = await self._ask(shelf, name.path, lambda: obstore.head_async(shelf.store, key))
        return _info(name, meta)

    async def exists(self, name: ObjectName) -> bool:
        try:
            await self.stat(name)
        except NotFoundError:
            return False
        return True

    async def list(self, zone: Zone, container: str, prefix: str = "") -> AsyncGenerator[ObjectInfo, None]:
        """What is in a container, or in a folder of it, at any depth. In any order.

        `a/b` is in the folder `a`, and `ab` is not."""
        shelf = await asyncio.to_thread(self._stores.shelf, zone, container)
        if prefix := prefix.rstrip("/"):
            check_path(prefix, "prefix")
        stream = obstore.list(shelf.store, shelf.key(prefix) or None, chunk_size=LISTED_AT_ONCE)
        while True:
            with translated(shelf, ""):
                batch = await anext(aiter(stream), None)
            if batch is None:
                return
            for info in await asyncio.to_thread(_nameable, shelf, batch):
                yield info

    # Reading

    async def read(self, name: ObjectName, start: int = 0, length: int | None = None) -> bytes:
        """The bytes from `start`, at most `length`; what lies behind the end is empty, as of a file."""
        if start < 0 or (length is not None and length < 0):
            raise InputError(f"start {start} and length {length} must not be negative")
        shelf, key = await self._place(name)
        if start == 0 and length is None:
            return await self._get(shelf, name, key, {})
        size = (await self.stat(name)).size
        end = size if length is None else min(start + length, size)
        return await self._get(shelf, name, key, {"range": (start, end)}) if start < end else b""

    async def stream(self, name: ObjectName, start: int = 0) -> AsyncGenerator[bytes, None]:
        """In parts of some megabytes, the next ones fetched ahead. `ConflictError` if it is replaced meanwhile."""
        info = await self.stat(name)
        async with contextlib.aclosing(self._parts(info, start)) as parts:
            async for part in parts:
                yield part

    async def get_file(
        self, name: ObjectName, target: Path, *, progress: Progress | None = None, sha256: str | None = None
    ) -> Stored:
        """Download. The target appears whole; a download that broke off, in whatever process, is gone on with.
        With `sha256`, other bytes than these are refused."""
        info = await self.stat(name)
        mark = hashlib.sha256(f"{name} {info.etag} {target.name}".encode()).hexdigest()[:16]
        unfinished = target.with_name(f".{mark}.part")
        meter = Meter(info.size, progress)
        with await asyncio.to_thread(_open_unfinished, unfinished, info.size) as file:
            await asyncio.to_thread(hash_file, unfinished, meter)
            meter.tell()
            await self._fill(file, info, meter)
            if sha256 is not None and meter.sha256 != sha256:
                unfinished.unlink()
                raise ConflictError(
                    f"the object '{name}' has the SHA-256 {meter.sha256}, not {sha256}", remedy="upload it again"
                )
            await asyncio.to_thread(unfinished.replace, target)
        return Stored(name, info.size, meter.sha256)

    async def _fill(self, file: BinaryIO, info: ObjectInfo, meter: Meter) -> None:
        def write(data: bytes) -> None:
            file.write(data)
            meter.count(data)

        async with contextlib.aclosing(self._parts(info, meter.done)) as parts:
            async for part in parts:
                await asyncio.to_thread(write, part)
                meter.tell()
        await asyncio.to_thread(file.flush)

    async def _parts(self, info: ObjectInfo, start: int) -> AsyncGenerator[bytes, None]:
        shelf, key = await self._place(info.name)

        async def fetch(begin: int, end: int) -> bytes:
            data = await self._get(shelf, info.name, key, {"range": (begin, end), "if_match": info.etag})
            if len(data) != end - begin:
                raise StorageUnavailable(f"{shelf.location} sent {len(data)} of {end - begin} bytes of '{info.name}'")
            return data

        async with contextlib.aclosing(in_order(fetch, start, info.size, PART)) as parts:
            async for part in parts:
                yield part

    async def _get(self, shelf: Shelf, name: ObjectName, key: str, options: GetOptions) -> bytes:
        async def get() -> bytes:
            found = await obstore.get_async(shelf.store, key, options=options)
            return bytes(await found.bytes_async())

        return await self._ask(shelf, name.path, get)

    # Writing

    async def put_bytes(
        self, name: ObjectName, data: bytes, *, if_absent: bool = False, media_type: str | None = None
    ) -> Stored:
        """With `if_absent`, `ConflictError` when it is there already; of several at once, one succeeds."""
        shelf, key = await self._place(name)

        async def put() -> None:
            await put_whole(shelf, key, data, if_absent=if_absent, media_type=media_type)

        await self._ask(shelf, name.path, put, writing=True, once=if_absent)
        digest = await asyncio.to_thread(hashlib.sha256, data)
        return Stored(name, len(data), digest.hexdigest())

    async def put_file(
        self, name: ObjectName, source: Path, *, progress: Progress | None = None, media_type: str | None = None
    ) -> Stored:
        """Upload, in parts if it is large. What breaks off leaves nothing that can be seen."""
        with await asyncio.to_thread(_open_source, source) as file:
            size = await asyncio.to_thread(lambda: os.fstat(file.fileno()).st_size)
            meter = Meter(size, progress)
            await self._put(name, lambda: from_file(file, part_size(size), meter), size, media_type)
        return Stored(name, meter.done, meter.sha256)

    async def _put(
        self, name: ObjectName, parts: Callable[[], AsyncIterator[bytes]], size: int, media_type: str | None
    ) -> None:
        """`parts` begins anew each time."""
        if size <= PART:
            await self.put_bytes(name, b"".join([part async for part in parts()]), media_type=media_type)
            return
        shelf, key = await self._place(name)

        async def put() -> None:
            await put_parts(shelf, key, parts(), size, media_type=media_type)

        await self._ask(shelf, name.path, put, writing=True)

    async def copy(self, source: ObjectName, target: ObjectName, *, progress: Progress | None = None) -> ObjectInfo:
        """Inside of the store where it can, through this machine where it cannot."""
        info = await self.stat(source)
        (here, key), (there, new_key) = await self._place(source), await self._place(target)
        if here.store is there.store and not (isinstance(here.location, S3Bucket) and info.size > LARGEST_S3_COPY):
            await self._ask(here, source.path, lambda: copy_inside(here, key, new_key))
        else:
            meter = Meter(info.size, progress)
            await self._put(target, lambda: self._metered(info, meter), info.size, None)
        return await self.stat(target)

    async def _metered(self, info: ObjectInfo, meter: Meter) -> AsyncGenerator[bytes, None]:
        meter.restart()
        async with contextlib.aclosing(self._parts(info, 0)) as parts:
            async for part in parts:
                yield part
                meter.done += len(part)
                meter.tell()

    # Deleting

    async def delete(self, name: ObjectName) -> None:
        """What is not there is deleted already."""
        shelf, key = await self._place(name)
        await self._delete(shelf, key, name.path)

    async def delete_prefix(self, zone: Zone, container: str, prefix: str) -> int:
        """All that is in a folder of a container. The number of objects; one that somebody else deletes at the same
        time may be counted twice."""
        check_path(prefix.rstrip("/"), "prefix")
        shelf = await asyncio.to_thread(self._stores.shelf, zone, container)
        deleted = 0
        while keys := await self._first(zone, container, prefix, shelf):
            await self._delete(shelf, keys, prefix)
            deleted += len(keys)
        return deleted

    async def _delete(self, shelf: Shelf, keys: str | Sequence[str], path: str) -> None:
        with contextlib.suppress(NotFoundError):
            await self._ask(shelf, path, lambda: obstore.delete_async(shelf.store, keys))

    async def _first(self, zone: Zone, container: str, prefix: str, shelf: Shelf) -> Sequence[str]:
        keys: list[str] = []
        async with contextlib.aclosing(self.list(zone, container, prefix)) as found:
            async for info in found:
                keys.append(shelf.key(info.name.path))
                if len(keys) == DELETED_AT_ONCE:
                    break
        return keys

    # For GDAL

    def gdal_path(self, name: ObjectName) -> str:
        """What `rasterio.open` takes, inside of `rasterio.Env` with the `gdal_options` of the zone."""
        return gdal.gdal_path(self._stores, name)

    def gdal_options(self, zone: Zone) -> gdal.GdalOptions:
        """GDAL's options for the zone's store, secrets included: for the scope of a task, never for the environment."""
        return gdal.gdal_options(self._stores, self.recipe, zone)

    # For operators

    async def prepare(self) -> None:
        """Make our folders, and clear away what dead uploads left behind."""
        await asyncio.to_thread(self._stores.prepare)

    async def probe(self, zone: Zone) -> str:
        """Try the zone's store, and say where it lies. Containers of Azure cannot be listed, so that there only the
        way and the credentials are tried; elsewhere something is written and deleted."""
        location = self._stores.location(zone)
        name = ObjectName(zone, "geomill-doctor", uuid4().hex)
        if isinstance(location, AzureAccount):
            await self.exists(name)
        else:
            await self.put_bytes(name, b"")
            await self.delete(name)
        return str(location)

    async def _place(self, name: ObjectName) -> tuple[Shelf, str]:
        """In a thread: the folder may be a mount that hangs."""
        return await asyncio.to_thread(self._stores.place, name)

    async def _ask(
        self,
        shelf: Shelf,
        path: str,
        work: Callable[[], Awaitable[Result]],
        *,
        writing: bool = False,
        once: bool = False,
    ) -> Result:
        with translated(shelf, path, writing=writing):
            return await (work() if once else persistently(work, shelf, self.recipe.retry_seconds))


NO_STORAGE = Storage(Recipe())
"""For contexts without one: each use says that the zone has no location."""


def _info(name: ObjectName, meta: ObjectMeta) -> ObjectInfo:
    return ObjectInfo(name, meta["size"], meta["e_tag"] or "", meta["last_modified"])


def _nameable(shelf: Shelf, batch: Sequence[ObjectMeta]) -> list[ObjectInfo]:
    """Somebody else may have put there what we would not: it cannot be read through us, so it is not listed."""
    found = []
    for meta in batch:
        with contextlib.suppress(InvalidName):
            name = shelf.name(meta["path"])
            if shelf.inside(name.path):
                found.append(_info(name, meta))
    return found


def _open_source(path: Path) -> BinaryIO:
    try:
        return path.open("rb")
    except FileNotFoundError:
        raise NotFoundError(f"there is no file {path}") from None
    except OSError as error:
        raise InputError(f"the file {path} cannot be read: {error.strerror}") from error


def _open_unfinished(path: Path, size: int) -> BinaryIO:
    """For appending, and ours alone. More than the whole cannot be a part of it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    file = path.open("ab")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        file.close()
        raise ConflictError(f"somebody else downloads to {path.parent} already", remedy="wait for it") from None
    if file.tell() > size:
        file.truncate(0)
    return file
