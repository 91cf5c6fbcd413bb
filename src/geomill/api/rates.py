"""Rate limits: a bucket of tokens for each caller, in this process."""

from __future__ import annotations

import time
from collections.abc import Callable

MOST_BUCKETS = 10_000


class Buckets:
    """Token buckets by name. Each holds up to `burst` tokens and gains `rate` a second.

    To bound memory, a new bucket evicts the one that was unused for longest. A new bucket is full, so a flood of names
    weakens the limit but never blocks anyone wrongly.
    """

    def __init__(
        self, rate: float, burst: float, *, most: int = MOST_BUCKETS, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._rate, self._burst, self._most, self._clock = rate, burst, most, clock
        self._levels: dict[str, tuple[float, float]] = {}

    def take(self, name: str) -> float:
        """Take a token. Returns zero on success, else the seconds until one is available."""
        level = self._level(name)
        if level < 1:
            return (1 - level) / self._rate
        self._levels.pop(name, None)
        if len(self._levels) >= self._most:
            del self._levels[next(iter(self._levels))]
        self._levels[name] = (level - 1, self._clock())
        return 0.0

    def wait(self, name: str) -> float:
        """Return the result of `take` without taking a token."""
        return max(0.0, (1 - self._level(name)) / self._rate)

    def _level(self, name: str) -> float:
        level, at = self._levels.get(name, (self._burst, 0.0))
        return min(self._burst, level + (self._clock() - at) * self._rate)
