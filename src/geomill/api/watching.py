"""Watches: one look at the database for any number of listeners."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime, timedelta
from typing import Generic, Protocol, TypeVar

import psycopg

from geomill.store.passing import passes

log = logging.getLogger(__name__)

LOOK_SECONDS = 0.5
LATE_SECONDS = 3.0
"""Rows are numbered before they are committed. A row that is this old has no earlier one that is still to come."""

Found = TypeVar("Found")


class SharedWatch(Generic[Found]):
    """Looks again and again until the last look says that nothing more will come, or until nobody listens."""

    def __init__(
        self,
        name: str,
        look: Callable[[], Awaitable[Found]],
        seconds: float = LOOK_SECONDS,
        is_last: Callable[[Found], bool] | None = None,
    ) -> None:
        self._name, self._look, self._seconds, self._is_last = name, look, seconds, is_last
        self._number = 0
        self._found: Found | None = None
        self._news = asyncio.Event()
        self._task = asyncio.create_task(self._run(), name=f"watch {name}")
        self._task.add_done_callback(self._over)
        self.listeners = 0

    @property
    def over(self) -> bool:
        return self._task.done() or self._task.cancelling() > 0

    def stop(self) -> None:
        self._task.cancel()

    async def next(self, number: int) -> tuple[int, Found] | None:
        """Return the number of the latest look and what it found, once it is later than `number`. Returns None if the
        watch has ended."""
        while self._found is None or self._number <= number:
            if self._task.done():
                return None
            await self._news.wait()
        return self._number, self._found

    async def _run(self) -> None:
        while self._found is None or self._is_last is None or not self._is_last(self._found):
            if self._found is not None:
                await asyncio.sleep(self._seconds)
            await self._try_to_look()

    async def _try_to_look(self) -> None:
        """Look once. After a lost connection the next look goes on."""
        try:
            self._found = await self._look()
        except psycopg.Error as error:
            if not passes(error):
                raise
            log.warning("could not look at %s: %s", self._name, error, extra={"action": "stream"})
            await asyncio.sleep(self._seconds)
        else:
            self._number += 1
            self._tell()

    def _tell(self) -> None:
        self._news.set()
        self._news = asyncio.Event()

    def _over(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and (error := task.exception()):
            log.error("a stream of %s broke off", self._name, exc_info=error, extra={"action": "stream"})
        self._tell()


class DatedRow(Protocol):
    @property
    def created_at(self) -> datetime: ...


Row = TypeVar("Row", bound=DatedRow)


class Tail:
    """The end of a table to which rows are only added, read again and again.

    Several processes add rows at the same time, so a row may appear after one with a greater number. Each read begins
    at the `floor`, behind which nothing can appear any more, and rows that were seen already are left out.
    """

    def __init__(self, after: int) -> None:
        self.floor = after
        self._seen: set[int] = set()
        self._latest = after
        self._since: datetime | None = None

    def grows(self, latest: int, now: datetime) -> bool:
        """Return whether there may be unseen rows, if `latest` is the greatest number now."""
        if latest != self._latest or self._since is None:
            self._latest, self._since = latest, now
        return latest > self.floor and now - self._since <= timedelta(seconds=2 * LATE_SECONDS)

    def pass_by(self, number: int) -> None:
        """Begin the next read after this row."""
        self.floor = max(self.floor, number)
        self._seen = {seen for seen in self._seen if seen > self.floor}

    def unseen(self, rows: Sequence[Row], number: Callable[[Row], int], now: datetime) -> list[Row]:
        """Return the rows that were not seen before. `rows` are all rows after the floor, in their order, or the first
        of them."""
        unseen = [row for row in rows if number(row) not in self._seen]
        late = now - timedelta(seconds=LATE_SECONDS)
        recent = next((place for place, row in enumerate(rows) if row.created_at > late), len(rows))
        if recent:
            self.floor = number(rows[recent - 1])
        self._seen = {number(row) for row in rows[recent:]}
        return unseen
