"""How the free slots are divided among the queues: by weight, and fairly over time."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType

NO_LIMITS: Mapping[str, int] = MappingProxyType({})


class Shares:
    """Smooth weighted round-robin: with one free slot at a time, a queue of weight 3 gets three turns of four, spread
    out, and none is forgotten.

    A queue that gave less than it was asked for is empty, and is asked again only once it has called. So the slots go
    where the work is, in one round trip."""

    def __init__(self, queues: Sequence[str], weights: Mapping[str, int]) -> None:
        self._weights = {name: weights.get(name, 1) for name in queues}
        if min(self._weights.values()) < 1:
            raise ValueError("a queue's weight is at least 1")
        self._credit = dict.fromkeys(queues, 0)
        self._hopeful = set(queues)

    @property
    def hopeful(self) -> bool:
        """Whether any queue may have something."""
        return bool(self._hopeful)

    def called(self, queues: Iterable[str] | None = None) -> None:
        """These may have something again; all of them when nobody knows."""
        self._hopeful.update(self._weights if queues is None else queues)

    def of(self, free: int, limits: Mapping[str, int] = NO_LIMITS) -> dict[str, int]:
        """Queue → slots, the first queue to be served first. They add up to `free`, unless all are empty or limited."""
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
        """These had less than they were asked for. One that gave all its limit allows may have more."""
        self._hopeful.difference_update(queues)
