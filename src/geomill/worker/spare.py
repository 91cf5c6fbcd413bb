"""One task more than there is room for, so that no tenant can hold a whole worker.

Turns are given when a slot becomes free. A tenant whose tasks run for hours may have taken every slot while nobody else
was there, and whoever comes next would wait for hours. A slot that is kept free for others would cost a lone tenant
its share of the machine. So a worker that is full begins one task beyond its slots, of a tenant who has none of them.
It looks for such a tenant at most once per poll.

What it does badly: a third tenant waits until a task ends, if the spare one runs for hours, too. And while the spare
task runs, the worker uses more memory than its slots would.
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
    """For a task of these queues, of a tenant who is none of the holders."""

    queues: Sequence[str]
    holders: Collection[str]


@dataclass
class Spare:
    options: WorkerOptions
    _looked_at: float = field(default=float("-inf"))

    def search(self, slots: Collection[Slot]) -> Search | None:
        """What to look for now: nothing if there is room, if the spare task is under way, or soon after a look."""
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
