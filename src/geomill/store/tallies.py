"""What this process has counted, on its way to the database: added there every few seconds, if there is anything."""

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
    """What is lost in a crash is a few seconds of counting."""

    def __init__(self) -> None:
        self._counts: Counter[tuple[str, float]] = Counter()
        self._observed: dict[str, list[float]] = {}
        self._told = time.monotonic()

    def count(self, name: str, times: int = 1) -> None:
        if times:
            self._counts[name, COUNT] += times

    def observe(self, name: str, seconds: float) -> None:
        """In the bucket whose bound it does not exceed; they are added up when they are read."""
        observed = self._observed.get(name)
        if observed is None:
            observed = self._observed[name] = [0.0] * len(_PLACES)
        if seconds > 0.0:  # by two clocks it may be less
            observed[-1] += seconds
        observed[bisect_left(_BOUNDS, seconds)] += 1

    @property
    def due(self) -> bool:
        return bool(self._counts or self._observed) and time.monotonic() - self._told >= EVERY_SECONDS

    async def tell(self, conn: Connection) -> None:
        """In one order everywhere, so that two processes never wait for each other."""
        taken = self._take()
        self._told = time.monotonic()
        rows = [_Row(name, f"{bucket}", value) for (name, bucket), value in sorted(taken.items())]
        try:
            await conn.execute(queries("tallies").add, {"rows": recordset(rows)})
        except BaseException:  # also a cancellation: what was not told is told next time
            self._counts.update(taken)
            raise

    def _take(self) -> Counter[tuple[str, float]]:
        taken, self._counts = self._counts, Counter()
        observed, self._observed = self._observed, {}
        for name, values in observed.items():
            for place, value in zip(_PLACES, values, strict=True):
                if value:
                    taken[name, place] += value  # type: ignore[assignment]  # a sum of seconds is no integer
        return taken


async def read(conn: Connection) -> list[Tally]:
    return [Tally.from_row(row) for row in await (await conn.execute(queries("tallies").all)).fetchall()]
