"""Live events of jobs, lists, assets and instances, for any number of listeners.

One look twice a second serves all listeners of the same thing. Between looks no connection is held. A listener of a job
reads events or log lines only when there are new ones, from its last position, so a client that reconnects continues
where it stopped.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from operator import attrgetter
from typing import Any

from fastapi.sse import ServerSentEvent

from geomill.api import lookup, snapshots
from geomill.api.job_changes import JobChanges
from geomill.api.lookup import JobStanding
from geomill.api.snapshots import SNAPSHOT_SECONDS, Snapshot
from geomill.api.views.jobs import progress_of
from geomill.api.views.logs import log_line
from geomill.api.watching import LOOK_SECONDS, Found, Row, SharedWatch, Tail
from geomill.contract.jobs import QUEUED, JobSummary, Progress
from geomill.domain.engine.event import JobEvent
from geomill.domain.engine.job import Job
from geomill.domain.engine.log import TaskLog
from geomill.domain.engine.message import JobQueueMessage
from geomill.domain.states import JOB_MACHINE
from geomill.errors import TooManyRequests
from geomill.store import attendance, events, logs
from geomill.store.job_lists import JobFilter
from geomill.store.logs import LogFilter
from geomill.store.pool import Connection, Pool, transaction_time

BATCH = 500
MOST_REMEMBERED = 10_000
"""The most jobs that a stream of a list remembers, to tell when one of them passes its filter no longer."""
STREAMS_PER_CALLER = 20
STREAM_PATIENCE_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class Look:
    """The result of one look at a job. `standing` is None if the job no longer exists."""

    standing: JobStanding | None
    latest_event: int
    latest_line: int
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
        self._watches: dict[str, SharedWatch[Any]] = {}
        self._changes = JobChanges(pool)
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
                f"{subject} already has {self._per_caller} streams open, the most that are allowed",
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
        tail, number = Tail(after), 0
        sent: dict[str, Any] = {}
        async with self._watching(job_id, partial(self._look, job_id), is_last=attrgetter("ended")) as watch:
            while not self._closing and (numbered := await watch.next(number)):
                number, look = numbered
                async for event in self._unseen(tail, look, look.latest_event, partial(_events, job_id), _EVENT):
                    yield ServerSentEvent(event="event", id=str(event.event_id), data=event)
                if look.progress() != sent:
                    sent = look.progress()
                    yield ServerSentEvent(event="progress", data=sent)
                if look.ended:
                    yield ServerSentEvent(event="end", data=look.outcome())
                    return

    async def follow_logs(self, job_id: str, chosen: LogFilter, after: int) -> AsyncIterator[ServerSentEvent]:
        """Yield the job's log lines after the given one, and finally its outcome."""
        tail, number = Tail(after), 0
        async with self._watching(job_id, partial(self._look, job_id), is_last=attrgetter("ended")) as watch:
            while not self._closing and (numbered := await watch.next(number)):
                number, look = numbered
                async for line in self._unseen(tail, look, look.latest_line, partial(_lines, job_id, chosen), _LINE):
                    yield ServerSentEvent(event="line", id=str(line.log_id), data=log_line(line))
                if look.ended:
                    yield ServerSentEvent(event="end", data=look.outcome())
                    return

    async def follow_jobs(self, chosen: JobFilter, after: int | None) -> AsyncIterator[ServerSentEvent]:
        """Yield the jobs of a filter as they change. With `after`, the position of an earlier stream, those that have
        changed since then come first."""
        listener = _ListListener(chosen)
        async with self._watching("all jobs", self._changes.look) as watch:
            numbered = await watch.next(0)
            if numbered is None:
                return
            number, position = numbered[0], numbered[1].position
            change_number = numbered[1].number
            yield ServerSentEvent(event="ready", id=str(position), data={})
            if after is not None:
                for event in listener.tell(await self._changes.since_position(after), position):
                    yield event
            while not self._closing and (numbered := await watch.next(number)):
                number = numbered[0]
                looks = self._changes.since(change_number)
                change_number = numbered[1].number
                if looks is None:
                    yield _reset(numbered[1].position)
                for changes in looks or ():
                    for event in listener.tell(None if changes.overflow else changes.jobs, changes.position):
                        yield event

    async def follow_reviews(self, last_version: str) -> AsyncIterator[ServerSentEvent]:
        """Yield the assets that wait for review, and then each that comes, changes or goes."""
        async for event in self._follow_snapshots("assets", snapshots.waiting_for_review, last_version):
            yield event

    async def follow_instances(self, last_version: str) -> AsyncIterator[ServerSentEvent]:
        """Yield the running processes, and then each that comes, changes or goes."""
        async for event in self._follow_snapshots("instances", snapshots.live_instances, last_version):
            yield event

    async def _follow_snapshots(
        self, name: str, read: Callable[[Pool], Awaitable[Snapshot]], last_version: str
    ) -> AsyncIterator[ServerSentEvent]:
        async with self._watching(f"all {name}", partial(read, self._pool), seconds=SNAPSHOT_SECONDS) as watch:
            async for event in snapshots.follow(watch, last_version):
                yield event
                if self._closing:
                    return

    async def _unseen(
        self,
        tail: Tail,
        look: Look,
        latest: int,
        read: Callable[[Connection, int], Awaitable[tuple[Sequence[Row], int | None]]],
        number: Callable[[Row], int],
    ) -> AsyncIterator[Row]:
        """Yield the rows that have come since the last look. `read` returns some rows after a number, and where to go
        on if there are more."""
        end: int | None = tail.floor if tail.grows(latest, look.now) else None
        while end is not None:
            async with self._pool.connection() as conn:
                rows, end = await read(conn, tail.floor)
            for row in tail.unseen(rows, number, look.now):
                yield row
            if end is not None:
                tail.pass_by(end)

    async def _look(self, job_id: str) -> Look:
        """Read the job before its events and lines, so that the event of its end is among them."""
        async with self._pool.connection() as conn:
            standing = await lookup.find(conn, self._job_queue, job_id)
            latest_event = await events.latest(conn, job_id)
            latest_line = await logs.latest(conn, job_id)
            waits = None
            if isinstance(standing, JobQueueMessage):
                waits = await attendance.why_queued(conn, self._job_queue, job_id)
            return Look(standing, latest_event, latest_line, await transaction_time(conn), waits)

    @asynccontextmanager
    async def _watching(
        self,
        name: str,
        look: Callable[[], Awaitable[Found]],
        *,
        seconds: float = LOOK_SECONDS,
        is_last: Callable[[Found], bool] | None = None,
    ) -> AsyncIterator[SharedWatch[Found]]:
        """Join the watch of this name, or begin it. It ends with its last listener."""
        watch = self._watches.get(name)
        if watch is None or watch.over:
            watch = self._watches[name] = SharedWatch(name, look, seconds, is_last)
        watch.listeners += 1
        try:
            yield watch
        finally:
            watch.listeners -= 1
            if not watch.listeners:
                watch.stop()
                if self._watches.get(name) is watch:
                    del self._watches[name]


_EVENT: Callable[[JobEvent], int] = attrgetter("event_id")
_LINE: Callable[[TaskLog], int] = attrgetter("log_id")


async def _events(job_id: str, conn: Connection, after: int) -> tuple[list[JobEvent], int | None]:
    rows = await events.of_job(conn, job_id, after=after, limit=BATCH)
    return rows, rows[-1].event_id if len(rows) == BATCH else None


async def _lines(job_id: str, chosen: LogFilter, conn: Connection, after: int) -> tuple[list[TaskLog], int | None]:
    page = await logs.page(conn, job_id, chosen, after=after, limit=BATCH)
    return page.lines, page.end if page.more else None


class _ListListener:
    """Tells one listener which jobs of its filter have changed, and which pass it no longer."""

    def __init__(self, chosen: JobFilter) -> None:
        self._chosen = chosen
        self._sent: dict[str, int] = {}
        """Job → the hash of its summary. Summaries themselves would cost a stream twenty megabytes."""

    def tell(self, jobs: list[Job] | None, position: int) -> Iterator[ServerSentEvent]:
        if jobs is None:
            self._sent.clear()
            yield _reset(position)
            return
        for job in jobs:
            summary = JobSummary.of(job)
            if self._chosen.matches(job):
                state = hash(summary.model_dump_json())
                if self._sent.pop(job.job_id, None) != state:
                    yield ServerSentEvent(event="job", id=str(position), data=summary)
                self._sent[job.job_id] = state
            elif self._sent.pop(job.job_id, None) is not None:
                yield ServerSentEvent(event="left", id=str(position), data=summary)
        while len(self._sent) > MOST_REMEMBERED:
            del self._sent[next(iter(self._sent))]


def _reset(position: int) -> ServerSentEvent:
    """Tell a listener that it missed changes and must read its list again."""
    return ServerSentEvent(event="reset", id=str(position), data={})
