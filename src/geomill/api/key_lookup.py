"""Looks up keys in the database, with one query for all waiting requests.

A flood of wrong keys therefore costs the database one query at a time, and a valid key among them waits for at most two
queries.
"""

from __future__ import annotations

import asyncio
from itertools import islice

from geomill.store import keys
from geomill.store.pool import Pool

MOST_AT_ONCE = 500
PATIENCE_SECONDS = 5.0

Answer = asyncio.Future[keys.StoredKey | None]


class KeyLookup:
    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        self._waiting: dict[str, Answer] = {}
        self._task: asyncio.Task[None] | None = None

    async def find(self, key_id: str) -> keys.StoredKey | None:
        answer = self._waiting.get(key_id)
        if answer is None:
            answer = self._waiting[key_id] = asyncio.get_running_loop().create_future()
            answer.add_done_callback(_read)
        if self._task is None:
            self._task = asyncio.create_task(self._run(), name="find keys")
        return await asyncio.shield(answer)

    async def _run(self) -> None:
        try:
            while self._waiting:
                batch = {key_id: self._waiting.pop(key_id) for key_id in list(islice(self._waiting, MOST_AT_ONCE))}
                await self._answer(batch)
        finally:
            self._task = None

    async def _answer(self, batch: dict[str, Answer]) -> None:
        try:
            async with self._pool.connection(timeout=PATIENCE_SECONDS) as conn:
                stored_keys = await keys.find_many(conn, batch)
        except BaseException as error:
            for answer in batch.values():
                answer.set_exception(error if isinstance(error, Exception) else ConnectionError("the gateway ends"))
            if not isinstance(error, Exception):
                raise
            return
        for key_id, answer in batch.items():
            answer.set_result(stored_keys.get(key_id))


def _read(answer: Answer) -> None:
    """Retrieve the exception, so that asyncio does not warn if all waiting requests have gone."""
    answer.exception()
