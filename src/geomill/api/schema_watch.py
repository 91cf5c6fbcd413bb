"""Whether the schema is whole, for those who are asked each second: comparing it takes some 20 ms."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable

from geomill.errors import GeomillError
from geomill.store.pool import Connection

RECHECK_SECONDS = 5.0
"""How long a schema counts as wrong after it was found so."""
SOUND_SECONDS = 15.0
"""How long a schema counts as right."""

Compare = Callable[[Connection], Awaitable[list[str]]]


class SchemaWatch:
    def __init__(self, compare: Compare, sound_seconds: float = SOUND_SECONDS) -> None:
        self._compare, self._sound_seconds = compare, sound_seconds
        self._compare_at = float("-inf")
        self._problem: str | None = None

    async def problem(self, conn: Connection) -> str | None:
        """What is wrong, from the last comparison or a new one."""
        if time.monotonic() >= self._compare_at:
            self._problem = await self._look(conn)
            self._compare_at = time.monotonic() + (RECHECK_SECONDS if self._problem else self._sound_seconds)
        return self._problem

    def doubt(self) -> None:
        """The next question is answered by a new comparison."""
        self._compare_at = float("-inf")

    async def _look(self, conn: Connection) -> str | None:
        try:
            steps = await self._compare(conn)
        except GeomillError as error:
            return error.message
        return f"the schema is not up to date: {steps[0]}; run 'geomill db migrate'" if steps else None
