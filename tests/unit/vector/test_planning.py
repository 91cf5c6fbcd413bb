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
def test_they_cover_it_without_gaps(found: Format, rows: int, start: int, length: int, wanted: int | None) -> None:
    facts = LayerFacts(format=found, layer=None, rows=rows, crs="EPSG:4326", columns=[])
    made = chunks(facts, start, start + length, wanted)
    assert [one.number for one in made] == list(range(len(made)))
    assert made[0].start == start
    assert made[-1].stop == start + length
    assert all(one.stop == following.start for one, following in pairwise(made))
    assert all(one.start < one.stop for one in made)
    assert len(made) <= MOST
