"""How a layer is cut into chunks.

Chunks are for working side by side, and for not doing all of it again after a crash; memory is bounded by batches, not
by chunks. Where a row in the middle can only be reached by reading those before it, there are few.
"""

from __future__ import annotations

from geomill.vector.facts import Chunk, LayerFacts
from geomill.vector.formats import DRIVERS

ROWS = 100_000
MOST = 256
ROWS_IN_ORDER = 250_000
MOST_IN_ORDER = 8


def chunks(facts: LayerFacts, start: int, stop: int, wanted: int | None = None) -> list[Chunk]:
    """`start` and `stop` as of `Layer.bounds_of_ids`; `wanted` rows in each."""
    random = DRIVERS[facts.format].random
    size, most = (wanted or ROWS, MOST) if random else (wanted or ROWS_IN_ORDER, MOST_IN_ORDER)
    count = min(max(-(-facts.rows // size), 1), most, max(stop - start, 1))
    edges = [start + (stop - start) * number // count for number in range(count + 1)]
    return [Chunk(number=number, start=edges[number], stop=edges[number + 1]) for number in range(count)]
