"""Counts of this process, which are added to those in the database every few seconds."""

from __future__ import annotations

import time
from bisect import bisect_left
from collections import Counter
from dataclasses import dataclass
from math import inf

from geomill.domain.tally import BUCKETS, COUNT, SUM, Tally
from geomill.sql import queries
from geomill.store.pool import Connection
from geomill.store.recordset import recordset

EVERY_SECONDS = 5.0
_BOUNDS = (*BUCKETS, inf)
_PLACES = (*_BOUNDS, SUM)


@dataclass(frozen=True, slots=True)
class _Row:
    name: str
    bucket: str
    value: float


class Tallies:
    """Counts in memory. A crash loses those of the last few seconds."""

    def __init__(self) -> None:
        self._counts: Counter[tuple[str, float]] = Counter()
        self._observed: dict[str, list[float]] = {}
        self._told = time.monotonic()

    def count(self, name: str, times: int = 1) -> None:
        if times:
            self._counts[name, COUNT] += times

    def observe(self, name: str, seconds: float) -> None:
        """Count a duration in the first bucket that it does not exceed. Readers add the buckets up."""
        observed = self._observed.get(name)
        if observed is None:
            observed = self._observed[name] = [0.0] * len(_PLACES)
        if seconds > 0.0:  # measured by two clocks, it may be negative
            observed[-1] += seconds
        observed[bisect_left(_BOUNDS, seconds)] += 1

    @property
    def due(self) -> bool:
        return bool(self._counts or self._observed) and time.monotonic() - self._told >= EVERY_SECONDS

    async def tell(self, conn: Connection) -> None:
        """Add the counts to those in the database, in the same order everywhere, so that no two processes deadlock."""
        counts = self._take()
        self._told = time.monotonic()
        rows = [_Row(name, f"{bucket}", value) for (name, bucket), value in sorted(counts.items())]
        try:
            await conn.execute(queries("tallies").add, {"rows": recordset(rows)})
        except BaseException:  # also a cancellation: the counts are written next time
            self._counts.update(counts)
            raise

    def _take(self) -> Counter[tuple[str, float]]:
        counts, self._counts = self._counts, Counter()
        observed, self._observed = self._observed, {}
        for name, values in observed.items():
            for place, value in zip(_PLACES, values, strict=True):
                if value:
                    counts[name, place] += value  # type: ignore[assignment]  # a sum of seconds is no integer
        return counts


async def read(conn: Connection) -> list[Tally]:
    return [Tally.from_row(row) for row in await (await conn.execute(queries("tallies").all)).fetchall()]
