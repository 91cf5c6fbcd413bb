"""Chooses the workers that a round wakes: as many as there is work for.

A worker that has just reported has free slots. If the reports of a round free enough slots for its new tasks, only
those workers are called, each by itself. Otherwise all workers of the queue are called. A worker that cannot take what
it was called for passes the call on to all (worker/referrals.py).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from geomill.store.inbox import Arrival
from geomill.store.signals import Call, direct_call, queue_channel, worker_channel


def free_slots(arrivals: Sequence[Arrival]) -> Counter[str]:
    """Return how many slots of each worker the reports have freed."""
    slots: Counter[str] = Counter()
    for arrival in arrivals:
        if arrival.worker_id:
            slots[arrival.worker_id] += len(arrival.outcomes)
    return slots


def calls(tasks: Mapping[str, int], free: Counter[str]) -> list[Call]:
    """Return whom to call for these numbers of new tasks by queue, if workers have so many free slots."""
    if free.total() < sum(tasks.values()):
        return [Call(queue_channel(queue_name)) for queue_name in tasks]
    left = Counter(free)
    chosen = []
    for queue_name, count in sorted(tasks.items()):
        needed = count
        for worker_id, slots in left.most_common():
            used = min(slots, needed)
            if used:
                chosen.append(Call(worker_channel(worker_id), direct_call(queue_name)))
                left[worker_id] -= used
                needed -= used
    return chosen
