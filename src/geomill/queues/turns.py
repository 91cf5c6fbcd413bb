"""The rule by which tenants share a queue: whose message is next. Pure.

Messages of one queue, priority and tenant are a line: first come, first served. Lines of a higher priority go before
those of a lower one. Among lines of the same priority, the next message is that of the tenant who holds the fewest of
the consumer's slots, and among equals that of the tenant who is next in the order of names, after the one served last.

So a tenant who has nothing under way waits for the next free slot and no longer, however long the lines of the others
are; one with few long tasks and one with many short ones have the same number of slots; and a single slot passes from
tenant to tenant. Each consumer follows the rule for its own slots. That is enough: whichever slot becomes free first,
anywhere, goes to the tenant with the fewest slots there.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field

HOUSE = ""
"""The tenant of work that no platform has submitted: operators' jobs, schedules, exports."""


@dataclass(frozen=True, slots=True)
class TenantLine:
    queue_name: str
    priority: int
    tenant: str


def allot(
    lines: Collection[TenantLine], free: int, slots_in_use: Mapping[str, int], last: str | None
) -> tuple[dict[TenantLine, int], str]:
    """Return how many of the free slots each line of a queue gets, as if lines had no end, and who gets the last slot.

    `slots_in_use` is how many slots each tenant has already, `last` the tenant who was served last before.
    """
    highest = max(line.priority for line in lines)
    served = sorted((line for line in lines if line.priority == highest), key=lambda line: line.tenant)
    if last is not None:
        served.sort(key=lambda line: line.tenant <= last)
    heap = [(slots_in_use.get(line.tenant, 0), place) for place, line in enumerate(served)]
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
    """The turns that a consumer has given to tenants, by queue."""

    slots_in_use: Callable[[str], Mapping[str, int]] = lambda _: {}
    """Returns how many slots of this consumer each tenant has, with messages of the named queue."""
    _last: dict[str, str] = field(default_factory=dict)
    _proposed: dict[str, str] = field(default_factory=dict)

    def shares(self, lines: Collection[TenantLine], free: int, received: Iterable[str] = ()) -> dict[TenantLine, int]:
        """Return how many messages to take from each line of one queue. `received` are the tenants of messages that
        have just come and occupy no slot yet. The turn counts once `given` is called."""
        (queue_name,) = {line.queue_name for line in lines}
        in_use = Counter(received)
        in_use.update(self.slots_in_use(queue_name))
        shares, self._proposed[queue_name] = allot(lines, free, in_use, self._last.get(queue_name))
        return shares

    def given(self, queue_names: Iterable[str]) -> None:
        """Record that the messages proposed for these queues were taken."""
        for name in queue_names:
            if name in self._proposed:
                self._last[name] = self._proposed.pop(name)

    def alone(self, tenants: Mapping[str, str]) -> None:
        """Record the tenant served last in queues in which only one tenant waited."""
        self._last.update(tenants)
