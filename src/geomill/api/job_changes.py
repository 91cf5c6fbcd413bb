"""Changes of all jobs, for the streams of lists.

The history of jobs says which jobs have changed: each look reads the events since the look before, and the rows of
their jobs. All listeners share the looks, and each applies its own filter to them.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from operator import attrgetter

from geomill.api.watching import Tail
from geomill.domain.engine.job import Job
from geomill.store import events, job_lists
from geomill.store.pool import Pool, transaction_time

MOST_EVENTS = 20_000
MOST_JOBS = 1_000
"""The most jobs that one look reports. Beyond that, listeners are told to read their list again."""
KEPT_LOOKS = 120
"""How many looks a slow listener may fall behind: a minute."""


@dataclass(frozen=True, slots=True)
class Changes:
    """The jobs that have changed since the look before. `position` is where a listener that comes back goes on."""

    number: int
    position: int
    jobs: list[Job] = field(default_factory=list)
    overflow: bool = False


class JobChanges:
    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        self._tail: Tail | None = None
        self._number = 0
        self._kept: deque[Changes] = deque(maxlen=KEPT_LOOKS)

    async def look(self) -> Changes:
        """Return the latest changes, and keep them for slow listeners."""
        self._number += 1
        async with self._pool.connection() as conn:
            if self._tail is None:
                self._tail = Tail(await events.newest(conn))
            rows = await events.after(conn, self._tail.floor, limit=MOST_EVENTS + 1)
            unseen = self._tail.unseen(rows, attrgetter("event_id"), await transaction_time(conn))
            job_ids = {row.job_id for row in unseen}
            if len(rows) > MOST_EVENTS or len(job_ids) > MOST_JOBS:
                self._tail = Tail(await events.newest(conn))
                changes = Changes(self._number, self._tail.floor, overflow=True)
            else:
                changes = Changes(self._number, self._tail.floor, await job_lists.of_ids(conn, sorted(job_ids)))
        self._kept.append(changes)
        return changes

    def since(self, number: int) -> list[Changes] | None:
        """Return the looks after the one with this number, or None if they are no longer kept."""
        if self._kept and self._kept[0].number > number + 1:
            return None
        return [changes for changes in self._kept if changes.number > number]

    async def since_position(self, position: int) -> list[Job] | None:
        """Return the jobs that have changed since an event, or None if there are too many."""
        async with self._pool.connection() as conn:
            rows = await events.after(conn, position, limit=MOST_EVENTS + 1)
            job_ids = {row.job_id for row in rows}
            if len(rows) > MOST_EVENTS or len(job_ids) > MOST_JOBS:
                return None
            return await job_lists.of_ids(conn, sorted(job_ids))
