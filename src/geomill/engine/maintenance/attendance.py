"""Finds queues that no process serves and records them, so that no message waits unnoticed.

    recall submissions whose workflow this orchestrator knows → record unserved queues → give up messages that have
    waited too long in one of them

A busy worker still serves its queue: `timeout_seconds` counts only while no worker serves it.

Weakness: without a live orchestrator the list is not updated, so it may contain a queue that a worker serves again.
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
from geomill.workflows.registry import WorkflowRegistry

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class AttendanceOptions:
    timeout_seconds: float | None = None
    """How long a message waits in an unserved queue before it is given up. None: forever."""
    look_seconds: float = 2.0

    @classmethod
    def of(cls, dispatch_timeout_sec: float) -> AttendanceOptions:
        return cls(dispatch_timeout_sec or None)


@dataclass
class Attendance:
    pool: Pool
    job_queue: str
    workflow_registry: WorkflowRegistry
    recalled: Callable[[], None]
    """Called when submissions that were put aside can be claimed again."""
    options: AttendanceOptions = field(default_factory=AttendanceOptions)
    duties: Duties | None = None
    _noted: set[str] = field(default_factory=set)

    async def run(self) -> None:
        """Run as a duty of the orchestrator, beside its main loop."""
        while True:
            try:
                async with self.pool.connection() as conn:
                    await self.run_once(conn)
            except (psycopg.Error, UnavailableError) as error:
                log.warning("the check for unserved queues failed and is repeated: %s", error)
                if self.duties:
                    self.duties.failed("attendance", error)
            else:
                if self.duties:
                    self.duties.passed("attendance")
            await asyncio.sleep(self.options.look_seconds)

    async def run_once(self, conn: Connection) -> list[Unserved]:
        if await attendance.recall(
            conn, self.job_queue, [workflow.workflow_id for workflow in self.workflow_registry.all()]
        ):
            self.recalled()
        unserved = await attendance.note(conn)
        self._say({queue.queue_name for queue in unserved})
        if unserved and self.options.timeout_seconds is not None:
            owners = await attendance.give_up(conn, self.options.timeout_seconds)
            await notify(conn, [owner_channel(owner) for owner in owners])
        return unserved

    def _say(self, names: set[str]) -> None:
        for name in sorted(names - self._noted):
            log.warning(
                "messages wait in the queue '%s', but no process serves it", name, extra={"action": "attendance"}
            )
        self._noted = names
