"""Makes rounds, without the jobs that block them.

A round writes for many jobs in one statement. One job can make it fail in two ways:

- Another transaction holds a row that the job needs. After `lock_timeout` the locked rows are determined, without
  waiting, and the round is made without their jobs. Those jobs are tried again, apart from the others, after a pause
  that grows up to two seconds.
- The database refuses the write. The round is split in halves until the job is found. The job fails, with a
  reference to the log. If the database refuses that too, or the job may not be the cause, the job is parked: its state
  stays, nobody works on it, and an operator releases it. If it cannot be parked, this process leaves it alone.

Weakness: a locked row that belongs neither to the job nor to its asset is found by halves, each of which waits.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import psycopg

from geomill.domain.access.confidential import new_reference
from geomill.engine.advance import Kicks, LockedRoundError, Round, advance
from geomill.engine.large import LargeOutputs
from geomill.engine.owned import OwnedJob
from geomill.queues.floors import Effort, Floor
from geomill.store import jobs
from geomill.store.duties import Duties
from geomill.store.locking import impatient
from geomill.store.passing import passes
from geomill.store.pool import Connection

log = logging.getLogger(__name__)

FIRST_PAUSE_SECONDS = 0.1
LONGEST_PAUSE_SECONDS = 2.0
SEARCH_SECONDS = 1.0
"""How long a round searches for the jobs whose rows are locked. Jobs that are not checked by then wait, too."""
PARK_AGAIN_SECONDS = 2.0
ABOUT_THE_JOB = ("22", "23", "44", "54", "P0")
"""Classes of errors that the content of a row causes. Others, such as a missing right or column, may affect all
jobs."""


@dataclass
class Rounds:
    owner_id: str
    owned: dict[str, OwnedJob]
    kicks: Kicks
    large: LargeOutputs
    duties: Duties
    wake: Callable[[], None]
    """Called when a job that was left out may be tried again."""
    _locked: set[str] = field(default_factory=set)
    _returning: set[str] = field(default_factory=set)
    """Jobs whose pause is over."""
    _pauses: dict[str, float] = field(default_factory=dict)
    unparked: dict[str, str] = field(default_factory=dict)
    """Job → reason, for jobs that could not be parked. This process leaves them alone."""
    _park_at: float = 0.0
    _floor: Floor = field(default_factory=Floor)
    _effort: Effort = field(default_factory=Effort)

    @property
    def idle(self) -> set[str]:
        return self._locked | self.unparked.keys()

    async def once(self, conn: Connection) -> Round:
        """Make a round of all jobs but the idle ones. Raises the database's error if it refuses the round."""
        if self.unparked and time.monotonic() >= self._park_at:
            await self._park_again(conn)
        if self._returning:
            return await self._try_returning(conn)
        now = time.monotonic()
        floor = self._floor.sequence if self._effort.spare(now) else 0
        try:
            done = await advance(conn, self.owner_id, self.owned, self.kicks, self.large, idle=self.idle, floor=floor)
        except LockedRoundError as locked:
            return await self._without_locked(conn, locked.jobs)
        if self._pauses:
            self._pauses = {job_id: pause for job_id, pause in self._pauses.items() if job_id in self._locked}
        self._remember(done, floor, now)
        return done

    async def _try_returning(self, conn: Connection) -> Round:
        """Try jobs again whose rows were locked. The other jobs are left out, because they would wait if the rows are
        still locked."""
        returning, self._returning = frozenset(self._returning), set()
        return await self._without_locked(conn, returning)

    def look_from_the_head(self) -> None:
        """Read the inbox from its head next time. Reports of jobs that were idle or had another owner may lie before
        the floor."""
        self._floor = Floor()

    def _remember(self, done: Round, floor: int, now: float) -> None:
        """Update the floor of the inbox. While a long transaction keeps dead rows from being vacuumed, the inbox is
        read from its floor and only now and then from its head (queues/floors.py)."""
        if done.reached:
            self._floor.reach(done.reached, now)
        if not floor:
            self._effort.note(done.look_seconds, done.reports, now)
            if wait := self._effort.wait(now):
                asyncio.get_running_loop().call_later(wait, self.wake)
        if done.unknown:
            self.look_from_the_head()

    async def in_parts(self, conn: Connection) -> Round:
        """Make a round in parts after the database refused it. The job that causes this is failed or parked, the others
        go on."""
        done = Round()
        async with impatient(conn):
            await self._in_halves(conn, sorted(self.owned.keys() - self.idle), done, time.monotonic() + SEARCH_SECONDS)
        return done

    # Locks

    async def _without_locked(self, conn: Connection, concerned: frozenset[str]) -> Round:
        done = Round()
        async with impatient(conn):
            affected = concerned & self.owned.keys()
            free = await jobs.unlocked(conn, affected)
            self._defer(sorted(affected - free))
            if free:
                await self._in_halves(conn, sorted(free), done, time.monotonic() + SEARCH_SECONDS)
        done.reports = max(done.reports, 1)  # more reports may have arrived meanwhile
        return done

    async def _in_halves(self, conn: Connection, chosen: Sequence[str], done: Round, deadline: float) -> None:
        only = frozenset(chosen)
        try:
            part = await advance(conn, self.owner_id, self.owned, self.kicks, self.large, idle=self.idle, only=only)
        except LockedRoundError:
            if len(chosen) == 1 or time.monotonic() > deadline:
                self._defer(chosen)
                return
        except psycopg.DatabaseError as refusal:
            if passes(refusal):
                raise
            if len(chosen) == 1:
                await self._end(conn, chosen[0], refusal)
                return
        else:
            done.add(part)
            return
        middle = len(chosen) // 2
        await self._in_halves(conn, chosen[:middle], done, deadline)
        await self._in_halves(conn, chosen[middle:], done, deadline)

    def _defer(self, chosen: Sequence[str]) -> None:
        if not chosen:
            return
        log.warning("rows of %s are locked: the others go on", ", ".join(chosen[:5]), extra={"action": "defer"})
        loop = asyncio.get_running_loop()
        for job_id in chosen:
            pause = self._pauses.get(job_id, FIRST_PAUSE_SECONDS)
            self._pauses[job_id] = min(pause * 2, LONGEST_PAUSE_SECONDS)
            self._locked.add(job_id)
            loop.call_later(pause, self._try_again, job_id)

    def _try_again(self, job_id: str) -> None:
        self._locked.discard(job_id)
        self._returning.add(job_id)
        self.look_from_the_head()
        self.wake()

    # Refusals

    async def _end(self, conn: Connection, job_id: str, refusal: psycopg.DatabaseError) -> None:
        reference = new_reference()
        log.error("the database refuses the job %s, reference %s: %s", job_id, reference, refusal)
        if (refusal.sqlstate or "").startswith(ABOUT_THE_JOB):
            try:
                reason = f"internal error: see the log for the reference {reference}"
                await jobs.quarantine(conn, self.owner_id, job_id, reason)
            except psycopg.DatabaseError as error:
                if passes(error):
                    raise
                log.error("the database refuses to end the job %s, reference %s: %s", job_id, reference, error)  # noqa: TRY400
            else:
                self.owned.pop(job_id, None)
                return
        reason = f"the database refuses to store the job's state: see the log for the reference {reference}"
        await self.park(conn, job_id, reason)

    async def park(self, conn: Connection, job_id: str, reason: str) -> None:
        """Park a job. Nobody works on it until an operator releases it."""
        self.owned.pop(job_id, None)
        try:
            await jobs.park(conn, self.owner_id, job_id, reason)
        except psycopg.DatabaseError as error:
            if passes(error):
                raise
            log.error("the job %s cannot be parked and is left alone: %s", job_id, error)  # noqa: TRY400
            self.unparked[job_id] = reason
            self.duties.failed("parking", error)
            self._park_at = time.monotonic() + PARK_AGAIN_SECONDS
            asyncio.get_running_loop().call_later(PARK_AGAIN_SECONDS, self.wake)
        else:
            log.error("the job %s is parked: %s", job_id, reason, extra={"action": "park"})
            self.unparked.pop(job_id, None)
            if not self.unparked:
                self.duties.passed("parking")

    async def _park_again(self, conn: Connection) -> None:
        for job_id, reason in list(self.unparked.items()):
            await self.park(conn, job_id, reason)
