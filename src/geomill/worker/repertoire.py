"""The repertoire of a worker: its handlers, and what becomes of tasks of other handlers.

While releases are mixed, or workers have different packages, a worker may lease a task whose handler it does not have.
Such a task goes back to its queue for a while, without cost:

    another worker of the queue has the handler ─► until one of those leases the task
    none has it, for less than the wait         ─► a newer worker may be about to start
    none has it                                 ─► the attempt fails with `unknown_handler`

Weakness: a worker with many such tasks leases each of them again and again. So the more it has put back lately, the
longer they stay away from it, and from the others.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from geomill.queues import postgres as queue
from geomill.sdk.execution import Ended, failed
from geomill.store import instances
from geomill.store.instances import Need
from geomill.store.pool import Connection
from geomill.worker.slots import Slot

log = logging.getLogger(__name__)

AWAY_SECONDS = 1.0
"""How long a task stays away if it was the only one lately."""
LONGEST_AWAY_SECONDS = 10.0
REFUSALS_PER_SECOND = 100
"""With more tasks than that, each stays away for longer."""


@dataclass(slots=True)
class _Search:
    """A handler that no worker of the queue has, since when, and when a task last asked for it."""

    begun_at: float
    asked_at: float


class Repertoire:
    def __init__(self, instance_id: str, handlers: Collection[str], wait_seconds: float) -> None:
        self._instance_id = instance_id
        self._handlers = frozenset(handlers)
        self._wait_seconds = wait_seconds
        self._searches: dict[Need, _Search] = {}
        self._refused = 0
        self._refused_at = 0.0

    async def admit(self, conn: Connection, leased: Sequence[Slot]) -> Sequence[Slot]:
        """Return the slots that may begin. The other tasks go back to their queue for another worker."""
        strange = [slot for slot in leased if slot.message.handler not in self._handlers]
        if not strange:
            return leased
        needs = set(map(_need, strange))
        served = await instances.served_elsewhere(conn, self._instance_id, needs)
        waiting = {need for need in needs if self._may_wait(need, need in served)}
        refused = [slot for slot in strange if _need(slot) in waiting]
        if refused:
            await queue.defer(conn, [slot.delivery for slot in refused], self._away_seconds(len(refused)))
        return [slot for slot in leased if slot not in refused]

    def failure(self, slot: Slot) -> Ended:
        """Return the result of a task whose handler nobody has."""
        text = f"no worker of the queue '{_need(slot).queue_name}' has the handler '{_need(slot).handler}'"
        return failed(text, "unknown_handler", retryable=False)

    def _may_wait(self, need: Need, served: bool) -> bool:
        if served:
            self._searches.pop(need, None)
            return True
        now = time.monotonic()
        self._forget_searches(now - max(self._wait_seconds, LONGEST_AWAY_SECONDS))
        if need not in self._searches:
            self._say(need)
        search = self._searches.setdefault(need, _Search(now, now))
        search.asked_at = now
        return now - search.begun_at < self._wait_seconds

    def _forget_searches(self, asked_before: float) -> None:
        for need in [need for need, search in self._searches.items() if search.asked_at < asked_before]:
            del self._searches[need]

    def _say(self, need: Need) -> None:
        log.warning(
            "no worker of the queue '%s' has the handler '%s'; its tasks wait for one for %g s",
            need.queue_name, need.handler, self._wait_seconds,
            extra={"action": "handler_missing", "handler": need.handler},
        )  # fmt: skip

    def _away_seconds(self, count: int) -> float:
        """Return how long the next tasks stay away. What was put back lately is forgotten as time passes."""
        now = time.monotonic()
        self._refused = max(0, self._refused - int((now - self._refused_at) * REFUSALS_PER_SECOND)) + count
        self._refused_at = now
        return min(AWAY_SECONDS + self._refused / REFUSALS_PER_SECOND, LONGEST_AWAY_SECONDS)


def _need(slot: Slot) -> Need:
    return Need(slot.delivery.queue_name, slot.message.handler)
