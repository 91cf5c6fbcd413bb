"""Divides free slots among the queues by weight, fairly over time."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType

NO_LIMITS: Mapping[str, int] = MappingProxyType({})


class Shares:
    """Smooth weighted round-robin. With one free slot at a time, a queue of weight 3 beside one of weight 1 gets three
    turns of four, spread out.

    A queue that had fewer messages than slots is empty, and is asked again only after a notification. So the slots go
    to queues with messages, in one round trip."""

    def __init__(self, queues: Sequence[str], weights: Mapping[str, int]) -> None:
        self._weights = {name: weights.get(name, 1) for name in queues}
        if min(self._weights.values()) < 1:
            raise ValueError("the weight of a queue must be at least 1")
        self._credit = dict.fromkeys(queues, 0)
        self._hopeful = set(queues)

    @property
    def hopeful(self) -> bool:
        """Whether any queue may have messages."""
        return bool(self._hopeful)

    def may_have(self, queue_name: str) -> bool:
        """Whether the queue may have messages."""
        return queue_name in self._hopeful

    def called(self, queues: Iterable[str] | None = None) -> None:
        """Record that these queues may have messages again; without an argument, all of them."""
        self._hopeful.update(self._weights if queues is None else queues)

    def of(self, free: int, limits: Mapping[str, int] = NO_LIMITS) -> dict[str, int]:
        """Return the slots of each queue, in the order in which queues are served. They add up to `free`, unless all
        queues are empty or limited."""
        able = self._hopeful - {name for name, limit in limits.items() if limit < 1}
        weights = {name: weight for name, weight in self._weights.items() if name in able}
        if not weights:
            return {}
        total = sum(weights.values())
        rounds, rest = divmod(free, total)
        shares = {name: weight * rounds for name, weight in weights.items()}
        for _ in range(rest):
            for name, weight in weights.items():
                self._credit[name] += weight
            chosen = max(weights, key=self._credit.__getitem__)
            self._credit[chosen] -= total
            shares[chosen] += 1
        return {name: min(share, limits.get(name, share)) for name, share in shares.items()}

    def found_empty(self, queues: Iterable[str]) -> None:
        """Record that these queues had fewer messages than slots. A queue that reached its limit is not among them."""
        self._hopeful.difference_update(queues)
