"""The storage for event loops: each method is the one of `SyncStorage`, in a thread."""

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
ABORT_SECONDS = 5.0
TELL_SECONDS = 60.0
Result = TypeVar("Result")
Item = TypeVar("Item")


class Storage:
    """Cheap to make; a store is opened when it is first used. `storage.sync` is the same for code that waits."""

    def __init__(self, recipe: StorageRecipe) -> None:
        self.recipe = recipe
        self.sync = SyncStorage(recipe)

    def __reduce__(self) -> tuple[Any, ...]:
        return Storage, (self.recipe,)

    async def stat(self, name: ObjectName) -> ObjectInfo:
        """`NotFoundError` when it is not there."""
        return await self._run(partial(self.sync.stat, name))

    async def exists(self, name: ObjectName) -> bool:
        return await self._run(partial(self.sync.exists, name))

    async def list(self, zone: Zone, container: str, prefix: str = "") -> AsyncGenerator[ObjectInfo, None]:
        """What is in a container, or in a folder of it, at any depth, in any order. `a/b` is in the folder `a`; `ab` is
        not."""
        async with aclosing(self._iterate(self.sync.batches(zone, container, prefix))) as batches:
            async for batch in batches:
                for info in batch:
                    yield info

    async def read(self, name: ObjectName, start: int = 0, length: int | None = None) -> bytes:
        """The bytes from `start`, at most `length`; what lies behind the end is empty, as of a file."""
        return await self._run(partial(self.sync.read, name, start, length))

    async def stream(self, name: ObjectName, start: int = 0) -> AsyncGenerator[bytes, None]:
        """In parts of some megabytes, the next ones fetched ahead. `ConflictError` if it is replaced meanwhile."""
        async with aclosing(self._iterate(self.sync.stream(name, start))) as parts:
            async for part in parts:
                yield part

    async def get_file(
        self, name: ObjectName, target: Path, *, progress: Progress | None = None, sha256: str | None = None
    ) -> Stored:
        """Download. The target appears whole; a download that broke off, in whatever process, is gone on with.
        With `sha256`, other bytes than these are refused."""
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
        """With `if_absent`, `ConflictError` when it is there already; of several at once, one succeeds. `cool`: seldom
        read, in the store's cheaper class."""
        return await self._run(
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
        """Upload, in parts if it is large. What breaks off, or is cancelled, leaves nothing that can be seen."""
        put = partial(self.sync.put_file, name, source, media_type=media_type, cool=cool)
        return await self._transfer(put, progress)

    async def copy(self, source: ObjectName, target: ObjectName, *, progress: Progress | None = None) -> ObjectInfo:
        """Inside of the store where it can, through this machine where it cannot."""
        return await self._transfer(partial(self.sync.copy, source, target), progress)

    async def move(self, source: ObjectName, target: ObjectName) -> None:
        """In a folder one atomic step; elsewhere a copy, then a deletion. A move that has begun is waited for, also
        when this is cancelled: who holds a lock meanwhile must know that nothing appears afterwards."""
        moving = asyncio.ensure_future(self._run(partial(self.sync.move, source, target)))
        try:
            await asyncio.shield(moving)
        except asyncio.CancelledError:
            await asyncio.gather(moving, return_exceptions=True)
            raise

    async def delete(self, name: ObjectName) -> None:
        """What is not there is deleted already."""
        await self._run(partial(self.sync.delete, name))

    async def delete_prefix(self, zone: Zone, container: str, prefix: str) -> int:
        """All that is in a folder of a container; how many objects that was."""
        return await self._run(partial(self.sync.delete_prefix, zone, container, prefix))

    async def prepare(self) -> None:
        """Make our folders, and clear away what dead uploads left behind."""
        await self._run(self.sync.prepare)

    def gdal_path(self, name: ObjectName) -> str:
        """What `rasterio.open` takes, inside of `rasterio.Env` with the `gdal_options` of the zone."""
        return self.sync.gdal_path(name)

    def gdal_options(self, zone: Zone) -> GdalOptions:
        """GDAL's options for the zone's store, secrets included: for the scope of a task, never for the environment."""
        return self.sync.gdal_options(zone)

    @cached_property
    def _threads(self) -> ThreadPoolExecutor:
        """Not the loop's own: a store that hangs must not hold up others who use that."""
        return ThreadPoolExecutor(THREADS, thread_name_prefix="storage")

    async def _run(self, work: Callable[[], Result]) -> Result:
        return await asyncio.get_running_loop().run_in_executor(self._threads, work)

    async def _iterate(self, items: Generator[Item, None, None]) -> AsyncGenerator[Item, None]:
        """A step that is under way is waited for, also when this is cancelled: a generator cannot be closed in it."""
        step: asyncio.Future[Item | None] | None = None
        try:
            while True:
                step = asyncio.ensure_future(self._run(partial(next, items, None)))
                item = await asyncio.shield(step)
                if item is None:
                    return
                yield item
        finally:
            if step:
                await asyncio.gather(step, return_exceptions=True)
            await self._run(items.close)

    async def _transfer(self, work: Callable[..., Result], progress: Progress | None) -> Result:
        """When this is cancelled, the work is told so, and gets a moment to take back what it has sent."""
        teller = _Teller(asyncio.get_running_loop(), progress)
        working = asyncio.ensure_future(self._run(partial(work, progress=teller)))
        try:
            return await asyncio.shield(working)
        except asyncio.CancelledError:
            teller.stopped = True
            await asyncio.wait([working], timeout=ABORT_SECONDS)
            working.cancel()
            await asyncio.gather(working, return_exceptions=True)
            raise


class _Stopped(Exception):  # noqa: N818
    """Ends a transfer that nobody waits for."""


class _Teller:
    """Called in the thread of a transfer, calls in the loop; what is raised there ends the transfer."""

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
"""For contexts without one: each use says that the zone has no location."""
