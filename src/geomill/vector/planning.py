"""How a layer is cut into chunks.

Chunks are for working side by side, and for not doing all of it again after a crash; memory is bounded by batches, not
by chunks.
"""

from __future__ import annotations

from geomill.vector.facts import Chunk, LayerFacts

ROWS = 100_000
MOST = 256


def chunks(facts: LayerFacts, start: int, stop: int, wanted: int | None = None) -> list[Chunk]:
    """`start` and `stop` as of `Layer.bounds_of_ids`; `wanted` rows in each."""
    count = min(max(-(-facts.rows // (wanted or ROWS)), 1), MOST, max(stop - start, 1))
    edges = [start + (stop - start) * number // count for number in range(count + 1)]
    return [Chunk(number=number, start=edges[number], stop=edges[number + 1]) for number in range(count)]
