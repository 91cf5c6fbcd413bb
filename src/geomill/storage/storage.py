"""The storage for event loops. Each method runs that of `SyncStorage` in a thread."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing
from functools import cached_property, partial
from pathlib import Path
from typing import Any, TypeVar

from geomill.domain.objectname import ObjectName, Zone
from geomill.storage.gdal import GdalOptions
from geomill.storage.objects import ObjectInfo, Progress, Stored
from geomill.storage.recipe import StorageRecipe
from geomill.storage.waiting import SyncStorage

THREADS = 32
LONG_THREADS = 4
ABORT_SECONDS = 5.0
TELL_SECONDS = 60.0
Result = TypeVar("Result")
Item = TypeVar("Item")


class Storage:
    """The object store of all zones. It is cheap to create, because stores are opened at their first use.
    `storage.sync` is the same for synchronous code."""

    def __init__(self, recipe: StorageRecipe) -> None:
        self.recipe = recipe
        self.sync = SyncStorage(recipe)

    def __reduce__(self) -> tuple[Any, ...]:
        return Storage, (self.recipe,)

    async def stat(self, name: ObjectName) -> ObjectInfo:
        """Return the facts about an object. Raises `NotFoundError`."""
        return await self.run(partial(self.sync.stat, name))

    async def exists(self, name: ObjectName) -> bool:
        return await self.run(partial(self.sync.exists, name))

    async def list(self, zone: Zone, container: str, prefix: str = "") -> AsyncGenerator[ObjectInfo, None]:
        """Yield the objects in a container or in a folder of it, at any depth, in any order. `a/b` is in the folder
        `a`; `ab` is not."""
        async with aclosing(self._iterate(self.sync.batches(zone, container, prefix))) as batches:
            async for batch in batches:
                for info in batch:
                    yield info

    async def read(self, name: ObjectName, start: int = 0, length: int | None = None) -> bytes:
        """Return up to `length` bytes from `start`; none if `start` is beyond the end, as with a file."""
        return await self.run(partial(self.sync.read, name, start, length))

    async def stream(self, name: ObjectName, start: int = 0) -> AsyncGenerator[bytes, None]:
        """Yield an object in parts of some megabytes, fetching ahead. Raises `ConflictError` if it is replaced
        meanwhile."""
        async with aclosing(self._iterate(self.sync.stream(name, start))) as parts:
            async for part in parts:
                yield part

    async def get_file(
        self, name: ObjectName, target: Path, *, progress: Progress | None = None, sha256: str | None = None
    ) -> Stored:
        """Download an object. The target appears only when it is complete. A download that broke off, in any process,
        is continued. With `sha256`, an object with another hash is refused."""
        return await self._transfer(partial(self.sync.get_file, name, target, sha256=sha256), progress)

    async def put_bytes(
        self,
        name: ObjectName,
        data: bytes,
        *,
        if_absent: bool = False,
        media_type: str | None = None,
        cool: bool = False,
    ) -> Stored:
        """Write an object. With `if_absent`, raises `ConflictError` if it exists; of several concurrent writes one
        succeeds. With `cool`, it is stored in the cheaper class for objects that are seldom read."""
        return await self.run(
            partial(self.sync.put_bytes, name, data, if_absent=if_absent, media_type=media_type, cool=cool)
        )

    async def put_file(
        self,
        name: ObjectName,
        source: Path,
        *,
        progress: Progress | None = None,
        media_type: str | None = None,
        cool: bool = False,
    ) -> Stored:
        """Upload a file, in parts if it is large. An upload that fails or is cancelled leaves nothing visible."""
        put = partial(self.sync.put_file, name, source, media_type=media_type, cool=cool)
        return await self._transfer(put, progress)

    async def copy(self, source: ObjectName, target: ObjectName, *, progress: Progress | None = None) -> ObjectInfo:
        """Copy an object: inside the store if possible, otherwise through this machine."""
        return await self._transfer(partial(self.sync.copy, source, target), progress)

    async def move(self, source: ObjectName, target: ObjectName) -> None:
        """Move an object. In a folder this is one atomic step; elsewhere it is a copy and a deletion. A cancellation
        waits until the move has ended, so that a caller who holds a lock knows that nothing appears afterwards."""
        await self.run_to_end(partial(self.sync.move, source, target))

    async def delete(self, name: ObjectName) -> None:
        """Delete an object. It need not exist."""
        await self.run(partial(self.sync.delete, name))

    async def delete_prefix(self, zone: Zone, container: str, prefix: str) -> int:
        """Delete all objects in a folder of a container. Returns how many there were."""
        return await self.run(partial(self.sync.delete_prefix, zone, container, prefix))

    async def prepare(self) -> None:
        """Create the zones in the data folder, and remove the remains of dead uploads."""
        await self.run(self.sync.prepare)

    def gdal_path(self, name: ObjectName) -> str:
        """Return the path for `rasterio.open`, to be used inside `rasterio.Env` with the zone's `gdal_options`."""
        return self.sync.gdal_path(name)

    def gdal_options(self, zone: Zone, container: str | None = None) -> GdalOptions:
        """Does what `storage.sync.gdal_options` does. May block if the zone `uses_identity`."""
        return self.sync.gdal_options(zone, container)

    def uses_identity(self, zone: Zone) -> bool:
        """Whether the zone's store is used with a managed identity of Azure."""
        return self.sync.uses_identity(zone)

    @cached_property
    def _threads(self) -> ThreadPoolExecutor:
        """Own threads, so that a store that hangs does not block other users of the loop's threads."""
        return ThreadPoolExecutor(THREADS, thread_name_prefix="storage")

    @cached_property
    def _long_threads(self) -> ThreadPoolExecutor:
        return ThreadPoolExecutor(LONG_THREADS, thread_name_prefix="storage-long")

    async def run(self, work: Callable[[], Result]) -> Result:
        """Run synchronous work, such as a call of `storage.sync`, in a thread of the storage."""
        return await asyncio.get_running_loop().run_in_executor(self._threads, work)

    async def run_to_end(self, work: Callable[[], Result], *, long: bool = False) -> Result:
        """Run synchronous work. A cancellation waits until it has ended. Little `long` work runs at once, so that
        threads are left for the rest."""
        threads = self._long_threads if long else self._threads
        working = asyncio.get_running_loop().run_in_executor(threads, work)
        try:
            return await asyncio.shield(working)
        except asyncio.CancelledError:
            await asyncio.gather(working, return_exceptions=True)
            raise

    async def _iterate(self, items: Generator[Item, None, None]) -> AsyncGenerator[Item, None]:
        """Iterate in threads. A cancellation waits for the step under way, because a running generator cannot be
        closed."""
        step: asyncio.Future[Item | None] | None = None
        try:
            while True:
                step = asyncio.ensure_future(self.run(partial(next, items, None)))
                item = await asyncio.shield(step)
                if item is None:
                    return
                yield item
        finally:
            if step:
                await asyncio.gather(step, return_exceptions=True)
            await self.run(items.close)

    async def _transfer(self, work: Callable[..., Result], progress: Progress | None) -> Result:
        """Run a transfer. A cancellation stops it and gives it a moment to undo what it has sent."""
        teller = _Teller(asyncio.get_running_loop(), progress)
        working = asyncio.ensure_future(self.run(partial(work, progress=teller)))
        try:
            return await asyncio.shield(working)
        except asyncio.CancelledError:
            teller.stopped = True
            await asyncio.wait([working], timeout=ABORT_SECONDS)
            working.cancel()
            await asyncio.gather(working, return_exceptions=True)
            raise


class _Stopped(Exception):  # noqa: N818
    """Ends a cancelled transfer."""


class _Teller:
    """Called in the thread of a transfer. Calls `progress` in the event loop; an error there ends the transfer."""

    def __init__(self, loop: asyncio.AbstractEventLoop, progress: Progress | None) -> None:
        self._loop = loop
        self._progress = progress
        self.stopped = False

    def __call__(self, done: int, total: int) -> None:
        if self.stopped:
            raise _Stopped
        if self._progress:
            asyncio.run_coroutine_threadsafe(self._tell(done, total), self._loop).result(TELL_SECONDS)

    async def _tell(self, done: int, total: int) -> None:
        if self._progress and not self.stopped:
            self._progress(done, total)


NO_STORAGE = Storage(StorageRecipe())
"""For contexts without storage. Each use raises an error that the zone has no location."""
