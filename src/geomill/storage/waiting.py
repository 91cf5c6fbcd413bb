"""The same storage for code that waits: handlers that are not async, and commands."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from geomill.domain.objectname import ObjectName, Zone
from geomill.storage.objects import ObjectInfo, Progress, Stored

if TYPE_CHECKING:
    from geomill.storage.storage import Storage

Result = TypeVar("Result")


class SyncStorage:
    """Each method is the one of `Storage`, in an event loop of its own: for threads in which none is running."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage

    def stat(self, name: ObjectName) -> ObjectInfo:
        return _run(self._storage.stat(name))

    def exists(self, name: ObjectName) -> bool:
        return _run(self._storage.exists(name))

    def list(self, zone: Zone, container: str, prefix: str = "") -> list[ObjectInfo]:
        """By path."""

        async def collect() -> list[ObjectInfo]:
            return [info async for info in self._storage.list(zone, container, prefix)]

        return sorted(_run(collect()), key=lambda info: info.name.path)

    def read(self, name: ObjectName, start: int = 0, length: int | None = None) -> bytes:
        return _run(self._storage.read(name, start, length))

    def put_bytes(
        self, name: ObjectName, data: bytes, *, if_absent: bool = False, media_type: str | None = None
    ) -> Stored:
        return _run(self._storage.put_bytes(name, data, if_absent=if_absent, media_type=media_type))

    def put_file(
        self, name: ObjectName, source: Path, *, progress: Progress | None = None, media_type: str | None = None
    ) -> Stored:
        return _run(self._storage.put_file(name, source, progress=progress, media_type=media_type))

    def get_file(
        self, name: ObjectName, target: Path, *, progress: Progress | None = None, sha256: str | None = None
    ) -> Stored:
        return _run(self._storage.get_file(name, target, progress=progress, sha256=sha256))

    def copy(self, source: ObjectName, target: ObjectName, *, progress: Progress | None = None) -> ObjectInfo:
        return _run(self._storage.copy(source, target, progress=progress))

    def delete(self, name: ObjectName) -> None:
        _run(self._storage.delete(name))

    def delete_prefix(self, zone: Zone, container: str, prefix: str) -> int:
        return _run(self._storage.delete_prefix(zone, container, prefix))

    def prepare(self) -> None:
        _run(self._storage.prepare())

    def probe(self, zone: Zone) -> str:
        return _run(self._storage.probe(zone))


def _run(work: Coroutine[Any, Any, Result]) -> Result:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(work)
    work.close()
    raise RuntimeError("this would stop the event loop: here, await the methods of the storage itself")
