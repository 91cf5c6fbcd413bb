"""Trials, which find the task that takes its workers down among those that ran beside it.

When a worker is lost, all its tasks are charged with a loss. A task with two losses is a suspect. It is put on trial
when it is leased again: for a few seconds it alone is charged if its worker is lost, and no other task begins there. A
worker tries one suspect at a time; the others wait for the next trial, here or elsewhere. A task that survives its
trial goes on like any other. So the guilty task collects its losses alone and is given up, and innocent tasks lose
time, but no attempts.

Weakness: a task that takes its worker down after its trial is charged together with the tasks beside it.
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
        """`wake` is called when the trial is over, so that the result is written."""
        self._wake = wake
        self._seconds = seconds
        self._suspect: Slot | None = None
        self._acquitted: list[Delivery] = []

    @property
    def is_under_way(self) -> bool:
        return self._suspect is not None

    async def open(self, conn: Connection, slot: Slot) -> bool:
        """Whether the suspect may start now. If not, it was returned to its queue, or its lease is lost."""
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
        """End the trial of a task that has ended or whose lease is lost."""
        if self._suspect is slot:
            self._suspect = None

    def _acquit(self, slot: Slot) -> None:
        if self._suspect is slot:
            self._suspect = None
            self._acquitted.append(slot.delivery)
            self._wake()

    async def tell(self, conn: Connection) -> None:
        """Record the tasks that survived their trial. They are charged like all others from now on."""
        if acquitted := self._acquitted[:]:
            await queue.acquit(conn, acquitted)
            del self._acquitted[: len(acquitted)]
