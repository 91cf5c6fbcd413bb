"""Chunks cover a layer, once."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from geomill.vector.facts import Format, LayerFacts
from geomill.vector.planning import MOST, chunks


@given(
    st.sampled_from(Format),
    st.integers(1, 10_000_000),
    st.integers(-1_000, 1_000),
    st.integers(1, 20_000_000),
    st.none() | st.integers(1, 10_000),
)
def test_they_cover_it_without_gaps(
    file_format: Format, rows: int, start: int, length: int, chunk_rows: int | None
) -> None:
    facts = LayerFacts(format=file_format, layer=None, rows=rows, crs="EPSG:4326", columns=[])
    planned = chunks(facts, start, start + length, chunk_rows)
    assert [chunk.number for chunk in planned] == list(range(len(planned)))
    assert planned[0].start == start
    assert planned[-1].stop == start + length
    assert all(chunk.stop == following.start for chunk, following in pairwise(planned))
    assert all(chunk.start < chunk.stop for chunk in planned)
    assert len(planned) <= MOST
