"""Whose turn it is: the rule by which tenants share a queue. Pure.

Messages of one queue, priority and tenant are a line: first come, first served. Lines of a higher priority go before
those of a lower one. Among lines of the same priority, the next message is that of the tenant who holds the fewest of
the consumer's slots, and among equals that of the tenant who is next in the order of names, after the one served last.

So a tenant who has nothing under way waits for the next free slot and no longer, however long the lines of the others
are; one with few long tasks and one with many short ones have the same number of slots; and a single slot passes from
tenant to tenant. Each consumer follows the rule for its own slots. That is enough: whichever slot becomes free first,
anywhere, goes to whoever has the fewest there.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field

HOUSE = ""
"""The tenant of whatever no platform has submitted: operators' jobs, schedules, exports."""


@dataclass(frozen=True, slots=True)
class TenantLine:
    queue_name: str
    priority: int
    tenant: str


def allot(
    lines: Collection[TenantLine], free: int, held: Mapping[str, int], last: str | None
) -> tuple[dict[TenantLine, int], str]:
    """How many of the free slots each line of a queue gets, as if lines had no end, and who gets the last slot.

    `held` is how many slots each tenant has already, `last` the tenant who was served last before.
    """
    highest = max(line.priority for line in lines)
    served = sorted((line for line in lines if line.priority == highest), key=lambda line: line.tenant)
    if last is not None:
        served.sort(key=lambda line: line.tenant <= last)
    heap = [(held.get(line.tenant, 0), place) for place, line in enumerate(served)]
    heapq.heapify(heap)
    shares: Counter[TenantLine] = Counter()
    place = 0
    for _ in range(free):
        slots, place = heap[0]
        heapq.heapreplace(heap, (slots + 1, place))
        shares[served[place]] += 1
    return dict(shares), served[place].tenant


@dataclass
class TenantTurns:
    """What a consumer remembers of the turns that it has given."""

    held: Callable[[str], Mapping[str, int]] = lambda _: {}
    """How many slots of this consumer each tenant has, with messages of a queue."""
    _last: dict[str, str] = field(default_factory=dict)
    _proposed: dict[str, str] = field(default_factory=dict)

    def shares(self, lines: Collection[TenantLine], free: int, received: Iterable[str] = ()) -> dict[TenantLine, int]:
        """How many messages to take of each line of one queue. `received` are the tenants of those that have just come
        and are not among the held ones. The turn counts once it is `given`."""
        (queue_name,) = {line.queue_name for line in lines}
        held = Counter(received)
        held.update(self.held(queue_name))
        shares, self._proposed[queue_name] = allot(lines, free, held, self._last.get(queue_name))
        return shares

    def given(self, queue_names: Iterable[str]) -> None:
        """What was proposed for these queues has been taken."""
        for name in queue_names:
            if name in self._proposed:
                self._last[name] = self._proposed.pop(name)

    def alone(self, tenants: Mapping[str, str]) -> None:
        """Queue → tenant, of queues in which nobody else waited."""
        self._last.update(tenants)
