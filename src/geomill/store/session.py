"""The connections of our pools: a session that an error has spoiled is not used again, and its successor is looked for
every two seconds at most.

psycopg's pool waits twice as long after each failure to connect, so it stays away about as long as the server did. Here
the waiting is part of connecting: the pool never sees a failure.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from itertools import chain, repeat
from types import TracebackType
from typing import Any, Self

import psycopg
from psycopg import AsyncConnection
from psycopg.rows import DictRow
from psycopg_pool import PoolClosed

from geomill.store.passing import spoils_session

log = logging.getLogger(__name__)

PAUSES = (0.1, 0.5, 1.0, 2.0)
"""Seconds between attempts to connect; the last one again and again."""


def pauses() -> Iterator[float]:
    return chain(PAUSES, repeat(PAUSES[-1]))


class Session(AsyncConnection[DictRow]):
    @classmethod
    async def connect(cls, conninfo: str = "", *, closing: asyncio.Event, **options: Any) -> Self:  # type: ignore[override]
        """Until it succeeds, or `closing` is set."""
        said = ""
        for pause in pauses():
            try:
                return await super().connect(conninfo, **options)
            except psycopg.OperationalError as error:
                if str(error) != said:
                    said = str(error)
                    log.warning("no connection to the database, tried again until there is one: %s", error)
            if await _is_set_within(pause, closing):
                break
        raise PoolClosed("the pool was closed before there was a connection")

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if error is not None and spoils_session(error):
            await self.close()
        await super().__aexit__(kind, error, traceback)


async def _is_set_within(seconds: float, event: asyncio.Event) -> bool:
    try:
        async with asyncio.timeout(seconds):
            return await event.wait()
    except TimeoutError:
        return False
