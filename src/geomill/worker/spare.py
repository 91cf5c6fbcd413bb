"""The spare: one task beyond the slots, so that no tenant can occupy a whole worker.

Turns are given when a slot becomes free. A tenant whose tasks run for hours may have taken every slot while no other
tenant was there, and the next tenant would wait for hours. A slot that is kept free for others would cost a lone tenant
its share of the machine. So a full worker begins one task beyond its slots, of a tenant that has none of them. It looks
for such a tenant at most once per poll.

Weaknesses: if the spare runs for hours, too, a third tenant waits until a task ends. And while the spare runs, the
worker uses more memory than its slots would.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

from geomill.domain.engine.message import HEAVY_QUEUE
from geomill.worker.options import WorkerOptions
from geomill.worker.slots import Slot


@dataclass(frozen=True, slots=True)
class Search:
    """A search for a task in these queues, of a tenant that is not among the holders."""

    queues: Sequence[str]
    holders: Collection[str]


@dataclass
class Spare:
    options: WorkerOptions
    _looked_at: float = field(default=float("-inf"))

    def search(self, slots: Collection[Slot]) -> Search | None:
        """Return what to search for now. None if there is a free slot, if the spare is under way, or soon after the
        last search."""
        now = time.monotonic()
        if now - self._looked_at < self.options.poll_seconds:
            return None
        self._looked_at = now
        return self._search(slots)

    def _search(self, slots: Collection[Slot]) -> Search | None:
        options, spare = self.options, self.options.spare
        heavy = [slot for slot in slots if slot.delivery.queue_name == HEAVY_QUEUE]
        beyond, heavy_beyond = len(slots) - options.concurrency, len(heavy) - max(options.processes, 1)
        if beyond >= spare:
            return None
        if beyond >= 0:
            queues = [name for name in options.queues if name != HEAVY_QUEUE or heavy_beyond < spare]
            return Search(queues, {slot.delivery.tenant for slot in slots})
        if HEAVY_QUEUE in options.queues and 0 <= heavy_beyond < spare:
            return Search([HEAVY_QUEUE], {slot.delivery.tenant for slot in heavy})
        return None
