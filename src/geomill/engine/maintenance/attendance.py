"""Looks whether everything that waits has somebody to do it, and notes what has not, so that nothing waits in silence.

    recall: submissions whose workflow this orchestrator knows → note: queues that nobody serves → give up: what has
    waited too long in one of them

A worker that is merely busy serves its queue: the time of `timeout_seconds` runs only while nobody is there at all.

What it does badly: without a live orchestrator nobody looks, and a queue is still listed that a worker serves since.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass, field

import psycopg

from geomill.errors import UnavailableError
from geomill.store import attendance
from geomill.store.attendance import Unserved
from geomill.store.duties import Duties
from geomill.store.pool import Connection, Pool
from geomill.store.signals import notify, owner_channel
from geomill.workflows.collection import WorkflowCatalogue

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class AttendanceOptions:
    timeout_seconds: float | None = None
    """None waits for ever."""
    look_seconds: float = 2.0

    @classmethod
    def of(cls, dispatch_timeout_sec: float) -> AttendanceOptions:
        return cls(dispatch_timeout_sec or None)


@dataclass
class Attendance:
    pool: Pool
    job_queue: str
    catalogue: WorkflowCatalogue
    recalled: Callable[[], None]
    """Told when there are submissions again that can be claimed."""
    options: AttendanceOptions = field(default_factory=AttendanceOptions)
    duties: Duties | None = None
    _noted: set[str] = field(default_factory=set)

    async def run(self) -> None:
        """As a duty of the orchestrator, beside its loop."""
        while True:
            try:
                async with self.pool.connection() as conn:
                    await self.run_once(conn)
            except (psycopg.Error, UnavailableError) as error:
                log.warning("the look at the queues failed, again in a moment: %s", error)
                if self.duties:
                    self.duties.failed("attendance", error)
            else:
                if self.duties:
                    self.duties.passed("attendance")
            await asyncio.sleep(self.options.look_seconds)

    async def run_once(self, conn: Connection) -> list[Unserved]:
        if await attendance.recall(conn, self.job_queue, [workflow.workflow_id for workflow in self.catalogue.all()]):
            self.recalled()
        unserved = await attendance.note(conn)
        self._say({queue.queue_name for queue in unserved})
        if unserved and self.options.timeout_seconds is not None:
            owners = await attendance.give_up(conn, self.options.timeout_seconds)
            await notify(conn, [owner_channel(owner) for owner in owners])
        return unserved

    def _say(self, names: set[str]) -> None:
        for name in sorted(names - self._noted):
            log.warning("nobody serves the queue '%s', and something waits in it", name, extra={"action": "attendance"})
        self._noted = names
