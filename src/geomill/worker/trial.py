"""Finds the task that takes its workers down, among those that ran beside it.

Whatever ran when a worker was lost is charged a loss. A task with two losses is a suspect, and is put on trial when it
is leased again: for a few seconds it alone is charged if its worker is lost, and nothing else begins there. One worker
tries one suspect at a time; the others wait for the next trial, here or elsewhere. A task that survives its trial goes
on as any other. So the guilty one gathers its losses alone and is given up, and innocent tasks lose time, not attempts.

What it does badly: a task that strikes later than that is charged together with its company.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from geomill.queues import postgres as queue
from geomill.queues.postgres import Delivery
from geomill.store.pool import Connection
from geomill.worker.slots import Slot

log = logging.getLogger(__name__)

TRIAL_SECONDS = 5.0


class Trial:
    def __init__(self, wake: Callable[[], None], seconds: float = TRIAL_SECONDS) -> None:
        """`wake` is called when the trial is over: the database is to be told."""
        self._wake = wake
        self._seconds = seconds
        self._suspect: Slot | None = None
        self._acquitted: list[Delivery] = []

    @property
    def is_under_way(self) -> bool:
        return self._suspect is not None

    async def open(self, conn: Connection, slot: Slot) -> bool:
        """Whether the suspect may start now. If not, it is back on its queue, or no longer ours."""
        if self._suspect:
            await queue.defer(conn, [slot.delivery], self._seconds)
            return False
        if not await queue.put_on_trial(conn, slot.delivery):
            return False
        log.info("%s was lost with its workers before: it is on trial", slot.message.task_id)
        self._suspect = slot
        asyncio.get_running_loop().call_later(self._seconds, self._acquit, slot)
        return True

    def close(self, slot: Slot) -> None:
        """The task has ended, or is no longer ours."""
        if self._suspect is slot:
            self._suspect = None

    def _acquit(self, slot: Slot) -> None:
        if self._suspect is slot:
            self._suspect = None
            self._acquitted.append(slot.delivery)
            self._wake()

    async def tell(self, conn: Connection) -> None:
        """Those who survived are charged like the others from now on."""
        if acquitted := self._acquitted[:]:
            await queue.acquit(conn, acquitted)
            del self._acquitted[: len(acquitted)]
