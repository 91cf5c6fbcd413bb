"""The connections of our pools. A session that an error has spoiled is not used again, nor are the sessions that began
before it. A new connection is tried every two seconds at most.

psycopg's pool waits twice as long after each failure to connect, so it stays away about as long as the server did. Here
the waiting is part of connecting: the pool never sees a failure.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterator
from itertools import chain, repeat
from types import TracebackType
from typing import Any, Self

import psycopg
from psycopg_pool import AsyncConnectionPool, PoolClosed

from geomill.store.connection import token_password
from geomill.store.passing import spoils_session
from geomill.store.replanning import ReplanningConnection

log = logging.getLogger(__name__)

PAUSES = (0.1, 0.5, 1.0, 2.0)
"""Seconds between attempts to connect. The last pause is repeated."""


def pauses() -> Iterator[float]:
    return chain(PAUSES, repeat(PAUSES[-1]))


class Lifeline:
    """State that the sessions of one pool share."""

    def __init__(self) -> None:
        self.closing = asyncio.Event()
        self.generation = 0
        self._drain: Callable[[], Awaitable[None]]

    def of(self, pool: AsyncConnectionPool[Any]) -> None:
        self._drain = pool.drain

    async def renew(self, generation: int) -> None:
        """Give up all sessions of that generation, because the cause that spoiled one may have spoiled all."""
        if generation == self.generation:
            self.generation += 1
            await self._drain()


class Session(ReplanningConnection):
    lifeline: Lifeline
    generation: int

    @classmethod
    async def connect(  # type: ignore[override]
        cls, conninfo: str = "", *, lifeline: Lifeline, **options: Any
    ) -> Self:
        """Connect, and try again until it succeeds or the pool is closing."""
        logged = ""
        for pause in pauses():
            generation = lifeline.generation
            try:
                password = await token_password(conninfo)
                conn = await super().connect(conninfo, password=password, **options)
            except psycopg.OperationalError as error:
                if str(error) != logged:
                    logged = str(error)
                    log.warning("no connection to the database, tried again until there is one: %s", error)
            else:
                conn.lifeline, conn.generation = lifeline, generation
                return conn
            if await _is_set_within(pause, lifeline.closing):
                break
        raise PoolClosed("the pool was closed before there was a connection")

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if error is not None and spoils_session(error):
            await self.close()
            await self.lifeline.renew(self.generation)
        await super().__aexit__(kind, error, traceback)

    async def require_current(self) -> None:
        """Close a session that was still being made when its generation was given up. The pool then makes another."""
        if self.generation != self.lifeline.generation:
            await self.close()
            raise psycopg.OperationalError("sessions of the same generation were spoiled")


async def _is_set_within(seconds: float, event: asyncio.Event) -> bool:
    try:
        async with asyncio.timeout(seconds):
            return await event.wait()
    except TimeoutError:
        return False
