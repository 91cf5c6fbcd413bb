"""Transfers bytes in parts, several at a time, and hashes them."""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from itertools import islice
from pathlib import Path
from typing import BinaryIO

from geomill.storage.objects import Progress

PART = 8 * 1024 * 1024
MOST_PARTS = 9_000
"""S3 allows 10,000."""
PARTS_AT_ONCE = 4


def part_size(total: int) -> int:
    return max(PART, -(-total // MOST_PARTS))


class TransferMeter:
    """Counts and hashes transferred bytes, and reports progress."""

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
        self._hash.update(data)
        self.done += len(data)

    def tell(self) -> None:
        if self._progress:
            self._progress(self.done, self._total)


def from_file(source: BinaryIO, size: int, meter: TransferMeter) -> Iterator[bytes]:
    """Yield the file from its beginning, in parts."""
    meter.restart()
    source.seek(0)
    while data := source.read(size):
        meter.count(data)
        yield data
        meter.tell()


def in_order(fetch: Callable[[int, int], bytes], start: int, end: int, size: int) -> Iterator[bytes]:
    """Yield the result of `fetch(begin, end)` for each part of a range, fetching some parts ahead."""
    yield from fetched_ahead(partial(fetch, begin, min(begin + size, end)) for begin in range(start, end, size))


def fetched_ahead(fetches: Iterable[Callable[[], bytes]]) -> Iterator[bytes]:
    """Yield the results in order, fetching some ahead. They are fetched in own threads, because the consumer may be
    obstore itself, which is not reentrant."""
    waiting = iter(fetches)
    ahead: deque[Future[bytes]] = deque()
    with ThreadPoolExecutor(PARTS_AT_ONCE, thread_name_prefix="storage-part") as threads:
        try:
            while True:
                for fetch in islice(waiting, PARTS_AT_ONCE - len(ahead)):
                    ahead.append(threads.submit(fetch))
                if not ahead:
                    return
                yield ahead.popleft().result()
        finally:
            for part in ahead:
                part.cancel()


def hash_file(path: Path, meter: TransferMeter) -> None:
    with path.open("rb") as file:
        while data := file.read(PART):
            meter.count(data)
