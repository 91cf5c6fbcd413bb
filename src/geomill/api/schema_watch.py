"""Caches whether the schema is up to date. Comparing it takes about 20 ms, too long for a check each second."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable

from geomill.errors import GeomillError
from geomill.store.pool import Connection

RECHECK_SECONDS = 5.0
"""How long a failed comparison counts."""
SOUND_SECONDS = 15.0
"""How long a successful comparison counts."""

Compare = Callable[[Connection], Awaitable[list[str]]]


class SchemaWatch:
    def __init__(self, compare: Compare, sound_seconds: float = SOUND_SECONDS) -> None:
        self._compare, self._sound_seconds = compare, sound_seconds
        self._compare_at = float("-inf")
        self._problem: str | None = None

    async def problem(self, conn: Connection) -> str | None:
        """Return the problem of the last or a new comparison, or None."""
        if time.monotonic() >= self._compare_at:
            self._problem = await self._look(conn)
            self._compare_at = time.monotonic() + (RECHECK_SECONDS if self._problem else self._sound_seconds)
        return self._problem

    def doubt(self) -> None:
        """Compare anew on the next call."""
        self._compare_at = float("-inf")

    async def _look(self, conn: Connection) -> str | None:
        try:
            steps = await self._compare(conn)
        except GeomillError as error:
            return error.message
        return f"the schema is not up to date: {steps[0]}; run 'geomill db migrate'" if steps else None
