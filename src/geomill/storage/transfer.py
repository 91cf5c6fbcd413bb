"""Bytes on their way: in parts, hashed as they pass, several parts at a time."""

from __future__ import annotations

import asyncio
import hashlib
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import BinaryIO

from geomill.storage.objects import Progress

PART = 8 * 1024 * 1024
MOST_PARTS = 9_000
"""S3 takes 10,000."""
PARTS_AT_ONCE = 4


def part_size(total: int) -> int:
    return max(PART, -(-total // MOST_PARTS))


class Meter:
    """Counts and hashes what passes, and tells of it."""

    def __init__(self, total: int, progress: Progress | None) -> None:
        self.done = 0
        self._total = total
        self._progress = progress
        self._hash = hashlib.sha256()

    @property
    def sha256(self) -> str:
        return self._hash.hexdigest()

    def restart(self) -> None:
        self.done = 0
        self._hash = hashlib.sha256()

    def count(self, data: bytes) -> None:
        """May take milliseconds: in a thread."""
        self._hash.update(data)
        self.done += len(data)

    def tell(self) -> None:
        if self._progress:
            self._progress(self.done, self._total)


async def from_file(source: BinaryIO, size: int, meter: Meter) -> AsyncIterator[bytes]:
    """The file from its beginning, in parts. Reading and hashing happen in a thread."""

    def read() -> bytes:
        data = source.read(size)
        meter.count(data)
        return data

    meter.restart()
    source.seek(0)
    while data := await asyncio.to_thread(read):
        yield data
        meter.tell()


async def in_order(
    fetch: Callable[[int, int], Awaitable[bytes]], start: int, end: int, size: int
) -> AsyncGenerator[bytes, None]:
    """`fetch(begin, end)` for each part of a range, some of them ahead."""
    ahead: deque[asyncio.Task[bytes]] = deque()
    starts = iter(range(start, end, size))
    try:
        while True:
            for begin in starts:
                ahead.append(asyncio.ensure_future(fetch(begin, min(begin + size, end))))
                if len(ahead) == PARTS_AT_ONCE:
                    break
            if not ahead:
                return
            yield await ahead.popleft()
    finally:
        for task in ahead:
            task.cancel()
        await asyncio.gather(*ahead, return_exceptions=True)


def hash_file(path: Path, meter: Meter) -> None:
    with path.open("rb") as file:
        while data := file.read(PART):
            meter.count(data)
