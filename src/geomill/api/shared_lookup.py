"""Looks up credentials in the database, with one query for all waiting requests.

A flood of wrong credentials therefore costs the database one query at a time, and a valid one among them waits for at
most two queries.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Mapping
from itertools import islice
from typing import Generic, TypeVar

from geomill.store.pool import Connection, Pool

MOST_AT_ONCE = 500
PATIENCE_SECONDS = 5.0

Stored = TypeVar("Stored")
ReadMany = Callable[[Connection, Collection[str]], Awaitable[Mapping[str, Stored]]]


class SharedLookup(Generic[Stored]):
    """Finds rows by name. `read` returns those that exist among many names."""

    def __init__(self, pool: Pool, read: ReadMany[Stored]) -> None:
        self._pool, self._read = pool, read
        self._waiting: dict[str, asyncio.Future[Stored | None]] = {}
        self._task: asyncio.Task[None] | None = None

    async def find(self, name: str) -> Stored | None:
        answer = self._waiting.get(name)
        if answer is None:
            answer = self._waiting[name] = asyncio.get_running_loop().create_future()
            answer.add_done_callback(_retrieve)
        if self._task is None:
            self._task = asyncio.create_task(self._run(), name="find credentials")
        return await asyncio.shield(answer)

    async def _run(self) -> None:
        try:
            while self._waiting:
                await self._answer(
                    {name: self._waiting.pop(name) for name in list(islice(self._waiting, MOST_AT_ONCE))}
                )
        finally:
            self._task = None

    async def _answer(self, batch: dict[str, asyncio.Future[Stored | None]]) -> None:
        try:
            async with self._pool.connection(timeout=PATIENCE_SECONDS) as conn:
                rows = await self._read(conn, batch)
        except BaseException as error:
            for answer in batch.values():
                answer.set_exception(error if isinstance(error, Exception) else ConnectionError("the gateway ends"))
            if not isinstance(error, Exception):
                raise
            return
        for name, answer in batch.items():
            answer.set_result(rows.get(name))


def _retrieve(answer: asyncio.Future[Stored | None]) -> None:
    """Retrieve the exception, so that asyncio does not warn if all waiting requests have gone."""
    answer.exception()
