from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from geomill.vector.pyramid import DEEPEST, PyramidExtent, TilePlace

DEGREES = st.floats(-180, 180, allow_nan=False)
LATITUDES = st.floats(-85, 85, allow_nan=False)


@given(DEGREES, LATITUDES, st.integers(0, DEEPEST))
def test_a_point_is_in_some_tile_of_each_zoom_below_one_that_it_is_in(x: float, y: float, zoom: int) -> None:
    here, places = PyramidExtent(x, y, x, y), [TilePlace(0, 0, 0)]
    for _ in range(zoom):
        places = [child for place in places for child in place.children if here.within(child)]
        assert 1 <= len(places) <= 9  # with those whose margin it is in


def test_a_tile_elsewhere_has_nothing_in_common() -> None:
    assert PyramidExtent(10, 10, 11, 11).within(TilePlace(1, 0, 0)) is None
    assert PyramidExtent(10, 10, 11, 11).within(TilePlace(1, 1, 0)) == PyramidExtent(10, 10, 11, 11)


@given(st.integers(1, 10**9), st.integers(1, 10**9), DEGREES, LATITUDES)
def test_more_features_or_less_room_make_it_deeper(few: int, many: int, x: float, y: float) -> None:
    few, many = sorted((few, many))
    small, large = PyramidExtent(x, y, min(x + 1, 180), y), PyramidExtent(-180, -85, 180, 85)
    assert large.deepest_zoom(few) <= large.deepest_zoom(many) <= small.deepest_zoom(many) <= DEEPEST


@pytest.mark.parametrize(("rows", "zoom"), [(1, 0), (200, 0), (201, 1), (1_000_000, 7)])
def test_the_deepest_zoom_of_the_world(rows: int, zoom: int) -> None:
    assert PyramidExtent(-180, -85.05, 180, 85.05).deepest_zoom(rows) == zoom


def test_across_the_antimeridian_and_beyond_the_map() -> None:
    assert PyramidExtent.of([170, -10, -170, 10]) == PyramidExtent(-180, -10, 180, 10)
    assert PyramidExtent.of([0, -90, 10, 0]).beyond_the_map
    assert not PyramidExtent.of([0, -80, 10, 0]).beyond_the_map
    assert math.isfinite(PyramidExtent.of([0, -90, 10, 90]).deepest_zoom(10**6))
