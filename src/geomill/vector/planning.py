"""Divides a layer into chunks.

Chunks are loaded in parallel, and only unfinished ones are loaded again after a crash. Batches, not chunks, bound the
memory.
"""

from __future__ import annotations

from geomill.vector.facts import Chunk, LayerFacts

ROWS = 100_000
MOST = 256


def chunks(facts: LayerFacts, start: int, stop: int, chunk_rows: int | None = None) -> list[Chunk]:
    """Divide the range of `Layer.bounds_of_ids` into chunks of about `chunk_rows` rows."""
    count = min(max(-(-facts.rows // (chunk_rows or ROWS)), 1), MOST, max(stop - start, 1))
    edges = [start + (stop - start) * number // count for number in range(count + 1)]
    return [Chunk(number=number, start=edges[number], stop=edges[number + 1]) for number in range(count)]
