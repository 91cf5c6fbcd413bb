"""Live events of jobs, for any number of listeners.

One query twice a second serves all listeners of a job. Between queries no connection is held. A listener reads events
only when there are new ones, from its last position, so a client that reconnects continues where it stopped.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import psycopg
from fastapi.sse import ServerSentEvent

from geomill.api import lookup
from geomill.api.lookup import JobStanding
from geomill.api.views.jobs import progress_of
from geomill.contract.jobs import QUEUED, Progress
from geomill.domain.engine.event import JobEvent
from geomill.domain.engine.message import JobQueueMessage
from geomill.domain.states import JOB_MACHINE
from geomill.errors import TooManyRequests
from geomill.store import attendance, events
from geomill.store.passing import passes
from geomill.store.pool import Pool, transaction_time

log = logging.getLogger(__name__)

LOOK_SECONDS = 0.5
EVENT_BATCH = 500
STREAMS_PER_CALLER = 20
STREAM_PATIENCE_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class Look:
    """The result of one look at a job. `standing` is None if the job no longer exists."""

    number: int
    standing: JobStanding | None
    latest_event: int
    now: datetime
    waits: str | None = None
    """Why no orchestrator has claimed the job, if that is known."""

    @property
    def ended(self) -> bool:
        if isinstance(self.standing, JobQueueMessage):
            return False
        return self.standing is None or self.standing.job.status in JOB_MACHINE.terminal

    def progress(self) -> dict[str, Any]:
        if self.standing is None or isinstance(self.standing, JobQueueMessage):
            return {"status": QUEUED, **Progress.queued(self.waits).model_dump(mode="json")}
        current = progress_of(self.standing, self.now).model_dump(mode="json")
        running = [node.node_id for node in self.standing.nodes if node.status.value == "running"]
        return {"status": self.standing.job.status.value, **current, "running_nodes": running}

    def outcome(self) -> dict[str, Any]:
        if self.standing is None or isinstance(self.standing, JobQueueMessage):
            return {"status": "gone", "result": None, "error": "the job no longer exists"}
        return self.standing.job.outcome()


class Streams:
    def __init__(self, pool: Pool, job_queue: str, per_caller: int = STREAMS_PER_CALLER) -> None:
        self._pool, self._job_queue, self._per_caller = pool, job_queue, per_caller
        self._callers: Counter[str] = Counter()
        self._watches: dict[str, _Watch] = {}
        self._closing = False

    def close(self) -> None:
        """End every stream. Clients then reconnect to another instance."""
        self._closing = True
        for watch in self._watches.values():
            watch.stop()

    @contextmanager
    def admitted(self, subject: str) -> Iterator[None]:
        """Count a stream for its caller. Raises `TooManyRequests`."""
        if self._callers[subject] >= self._per_caller:
            raise TooManyRequests(
                f"{subject} already follows {self._per_caller} jobs, the most that are allowed",
                remedy="close a stream before opening another",
                retry_after=STREAM_PATIENCE_SECONDS,
            )
        self._callers[subject] += 1
        try:
            yield
        finally:
            self._callers[subject] -= 1
            if not self._callers[subject]:
                del self._callers[subject]

    async def follow(self, job_id: str, after: int) -> AsyncIterator[ServerSentEvent]:
        """Yield the job's events after the given one, its progress and finally its outcome."""
        async with self._watching(job_id) as watch:
            sent: dict[str, Any] = {}
            number = 0
            while not self._closing:
                look = await watch.next(number)
                if look is None:
                    return
                number = look.number
                while after < look.latest_event:
                    for event in await self._events(job_id, after):
                        after = event.event_id
                        yield ServerSentEvent(event="event", id=str(after), data=event)
                if look.progress() != sent:
                    sent = look.progress()
                    yield ServerSentEvent(event="progress", data=sent)
                if look.ended:
                    yield ServerSentEvent(event="end", data=look.outcome())
                    return

    async def _events(self, job_id: str, after: int) -> list[JobEvent]:
        async with self._pool.connection() as conn:
            return await events.of_job(conn, job_id, after=after, limit=EVENT_BATCH)

    @asynccontextmanager
    async def _watching(self, job_id: str) -> AsyncIterator[_Watch]:
        watch = self._watches.get(job_id)
        if watch is None or watch.over:
            watch = self._watches[job_id] = _Watch(self._pool, self._job_queue, job_id)
        watch.listeners += 1
        try:
            yield watch
        finally:
            watch.listeners -= 1
            if not watch.listeners:
                watch.stop()
                if self._watches.get(job_id) is watch:
                    del self._watches[job_id]


class _Watch:
    """Watches one job until it has ended or nobody listens."""

    def __init__(self, pool: Pool, job_queue: str, job_id: str) -> None:
        self._pool, self._job_queue, self._job_id = pool, job_queue, job_id
        self._look: Look | None = None
        self._news = asyncio.Event()
        self._task = asyncio.create_task(self._run(), name=f"watch {job_id}")
        self._task.add_done_callback(self._over)
        self.listeners = 0

    @property
    def over(self) -> bool:
        return self._task.done() or self._task.cancelling() > 0

    def stop(self) -> None:
        self._task.cancel()

    async def next(self, number: int) -> Look | None:
        """Return the latest look once it is later than `number`, or None if the watch has ended."""
        while self._look is None or self._look.number <= number:
            if self._task.done():
                return None
            await self._news.wait()
        return self._look

    async def _run(self) -> None:
        while self._look is None or not self._look.ended:
            if self._look:
                await asyncio.sleep(LOOK_SECONDS)
            await self._try_to_look()

    async def _try_to_look(self) -> None:
        try:
            self._look = await self._look_once()
        except psycopg.Error as error:
            if not passes(error):
                raise
            log.warning("could not look at a job: %s", error, extra={"action": "stream", "job_id": self._job_id})
            await asyncio.sleep(LOOK_SECONDS)
        else:
            self._tell()

    async def _look_once(self) -> Look:
        """Read the job before its events, so that the event of its end is among them."""
        number = self._look.number + 1 if self._look else 1
        async with self._pool.connection() as conn:
            standing = await lookup.find(conn, self._job_queue, self._job_id)
            latest = await events.latest(conn, self._job_id)
            waits = None
            if isinstance(standing, JobQueueMessage):
                waits = await attendance.why_queued(conn, self._job_queue, self._job_id)
            return Look(number, standing, latest, await transaction_time(conn), waits)

    def _tell(self) -> None:
        self._news.set()
        self._news = asyncio.Event()

    def _over(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and (error := task.exception()):
            log.error("a stream broke off", exc_info=error, extra={"action": "stream", "job_id": self._job_id})
        self._tell()
