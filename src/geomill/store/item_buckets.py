"""Items of a fan-out in at most a hundred buckets of neighbours, so that a strip shows where the work stands."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from geomill.domain.states import NodeStatus

MOST_BUCKETS = 100


@dataclass(frozen=True, slots=True)
class BucketOfItems:
    """The items from `first` to `last`, by state."""

    first: int
    last: int
    states: Counter[str] = field(default_factory=Counter)

    @property
    def size(self) -> int:
        return self.last - self.first + 1

    def sent(self, items_sent: int) -> int:
        return min(max(items_sent - self.first, 0), self.size)


def empty(total: int) -> list[BucketOfItems]:
    """Return the buckets of a list of this length. Item `i` is in the bucket `i * len(buckets) // total`."""
    number = min(total, MOST_BUCKETS)
    starts = [-(-bucket * total // number) for bucket in range(number + 1 if number else 0)]
    return [BucketOfItems(first, end - 1) for first, end in pairwise(starts)]


def add_leased(buckets: Sequence[BucketOfItems], leased: Sequence[int], row_states: Mapping[int, str]) -> None:
    """Count the items that workers have as running, unless their row knows more. An item that is only sent may have no
    row."""
    total = buckets[-1].last + 1 if buckets else 0
    dispatched = NodeStatus.DISPATCHED.value
    for index in leased:
        row_state = row_states.get(index)
        if index >= total or row_state not in (None, dispatched):
            continue
        states = buckets[index * len(buckets) // total].states
        states[NodeStatus.RUNNING.value] += 1
        if row_state == dispatched:
            states[dispatched] -= 1


def add_without_rows(buckets: Sequence[BucketOfItems], items_sent: int, unsent: NodeStatus) -> None:
    """Count the items of which nothing is known but whether they were sent. A row may be newer than the count of sent
    items."""
    for bucket in buckets:
        unknown = max(bucket.size - bucket.states.total(), 0)
        waiting = min(max(bucket.sent(items_sent) - bucket.states.total(), 0), unknown)
        bucket.states[NodeStatus.DISPATCHED.value] += waiting
        bucket.states[unsent.value] += unknown - waiting
        for state in [state for state, number in bucket.states.items() if number <= 0]:
            del bucket.states[state]
