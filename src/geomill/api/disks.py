"""Free space on the disks of this gateway's machine. Read at most once in five seconds, with a short timeout."""

from __future__ import annotations

import asyncio
import time

from geomill.storage import Storage
from geomill.storage.space import Space, readable, spaces

FRESH_SECONDS = 5.0
PATIENCE_SECONDS = 2.0
"""How long to wait for a mount that does not answer."""
WARNING_BYTES = 5_000_000_000


class Disks:
    def __init__(self, storage: Storage, warning_bytes: int = WARNING_BYTES) -> None:
        self._recipe, self._warning_bytes = storage.recipe, warning_bytes
        self._asked = float("-inf")
        self._answer: asyncio.Future[list[Space]] | None = None
        self._known: list[Space] = []

    async def look(self) -> list[Space]:
        """Return the latest figures. A disk that hangs keeps its last figures and occupies one thread."""
        if self._answer is None and time.monotonic() - self._asked > FRESH_SECONDS:
            self._asked = time.monotonic()
            self._answer = asyncio.ensure_future(asyncio.to_thread(spaces, self._recipe))
        if answer := self._answer:
            await asyncio.wait([answer], timeout=PATIENCE_SECONDS)
            if answer.done():
                self._known, self._answer = answer.result(), None
        return self._known

    def is_low(self, space: Space) -> bool:
        return space.free_bytes < self._warning_bytes

    async def reasons(self) -> list[str]:
        return [
            f"the disk of {space.place} is nearly full: {readable(space.free_bytes)} of"
            f" {readable(space.total_bytes)} are free"
            for space in await self.look()
            if self.is_low(space)
        ]
