"""How the free slots are divided among the queues: by weight, and fairly over time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence


class Shares:
    """Smooth weighted round-robin: with one free slot at a time, a queue of weight 3 gets three turns of four, spread
    out, and none is forgotten."""

    def __init__(self, queues: Sequence[str], weights: Mapping[str, int]) -> None:
        self._weights = {name: weights.get(name, 1) for name in queues}
        if min(self._weights.values()) < 1:
            raise ValueError("a queue's weight is at least 1")
        self._total = sum(self._weights.values())
        self._credit = dict.fromkeys(queues, 0)

    def of(self, free: int) -> dict[str, int]:
        """Queue → slots, the first queue to be served first. They add up to `free`."""
        rounds, rest = divmod(free, self._total)
        shares = {name: weight * rounds for name, weight in self._weights.items()}
        for _ in range(rest):
            for name, weight in self._weights.items():
                self._credit[name] += weight
            chosen = max(self._credit, key=self._credit.__getitem__)
            self._credit[chosen] -= self._total
            shares[chosen] += 1
        return shares
