"""Geometries that skip GEOS are those that GEOS would leave unchanged to the last bit."""

from __future__ import annotations

import math
import struct
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import shapely
from hypothesis import given, settings
from hypothesis import strategies as st

from geomill.vector.facts import Family
from geomill.vector.soundness import Sound, sound, types

numbers = st.floats(-200, 200, allow_nan=False, width=32) | st.sampled_from([0.0, 1.0, 180.0, -180.0, 1e-200])
pairs = st.tuples(numbers, numbers)
grid = st.tuples(st.integers(-3, 3), st.integers(-3, 3))
rings = st.lists(pairs, min_size=3, max_size=9) | st.lists(grid, min_size=3, max_size=12)
PENTAGRAM = [(math.cos(turn * 0.8 * math.pi), math.sin(turn * 0.8 * math.pi)) for turn in range(5)]


def looked_at(geometries: list[Any], family: Family = Family.POLYGON, **options: bool) -> Sound:
    return sound(packed(geometries), family, **{"multi": True, "geographic": True, **options})


def packed(geometries: list[Any]) -> pa.Array:
    return pa.array(
        [
            geometry if geometry is None or isinstance(geometry, bytes) else shapely.to_wkb(geometry)
            for geometry in geometries
        ]
    )


@settings(deadline=None, max_examples=300)
@given(st.lists(rings, min_size=1, max_size=5))
def test_polygons_that_are_taken_are_valid_and_wound_well(shapes: list[Any]) -> None:
    polygons = [shapely.Polygon(shape) for shape in shapes]
    sound_rows = looked_at(polygons)
    for row, bounds in zip(sound_rows.rows, sound_rows.bounds, strict=True):
        assert polygons[row].is_valid
        assert polygons[row].exterior.is_ccw
        assert tuple(bounds) == polygons[row].bounds
        assert shapely.box(-180, -90, 180, 90).covers(polygons[row])


@settings(deadline=None)
@given(st.lists(st.floats(0.1, 1.0), min_size=4, max_size=12), grid, st.floats(1e-3, 10))
def test_plain_polygons_are_taken(radii: list[float], middle: tuple[int, int], size: float) -> None:
    angles = np.linspace(0, 2 * np.pi, len(radii), endpoint=False)
    around = np.column_stack([radii * np.cos(angles), radii * np.sin(angles)]) * size + np.array(middle) * 10
    polygon = shapely.orient_polygons(shapely.convex_hull(shapely.Polygon(around)))  # seen from everywhere in it
    several = shapely.MultiPolygon([polygon])
    sound_rows = looked_at([polygon, None, several, shapely.reverse(polygon)])
    assert sound_rows.rows.tolist() == [0, 2]


@pytest.mark.parametrize(
    "wrong",
    [
        shapely.Polygon(PENTAGRAM),  # twice around
        shapely.Polygon([(0, 0), (1, 1), (1, 0), (0, 1)]),
        shapely.Polygon([(0, 0), (1, 0), (1, 1), (1, 1), (0, 1)]),  # right, but a case for GEOS
        shapely.Polygon([(0, 0), (1, 0), (2, 0)]),
        shapely.Polygon([(0, 0), (4, 0), (4, 4), (0, 4)], [[(1, 1), (2, 1), (2, 2)]]),
        shapely.Polygon([(179, 0), (181, 0), (181, 1), (179, 1)]),
        shapely.Polygon([(0, 0, 1), (1, 0, 1), (1, 1, 1)]),
        shapely.MultiPolygon([shapely.box(0, 0, 1, 1), shapely.box(2, 2, 3, 3)]),
        shapely.Polygon(),
        shapely.Point(1, 1),
        shapely.GeometryCollection([shapely.box(0, 0, 1, 1)]),
        shapely.to_wkb(shapely.box(0, 0, 1, 1), byte_order=0),
        shapely.to_wkb(shapely.set_srid(shapely.box(0, 0, 1, 1), 4326), include_srid=True),
        shapely.to_wkb(shapely.box(0, 0, 1, 1))[:-1],
        shapely.to_wkb(shapely.box(0, 0, 1, 1)) + b"\0",
        struct.pack("<BIIIdddddd", 1, 3, 1, 2**32 - 1, *[0.0] * 6),
        struct.pack("<BIIIdddddddd", 1, 3, 1, 4, 0, 0, 1, 0, 1, 1, 0, 0.5),  # open
        struct.pack("<BIIIdddddddd", 1, 3, 1, 4, math.nan, 0, 1, 0, 1, 1, math.nan, 0),
        struct.pack("<BIIIdddddddd", 1, 3, 1, 4, 0, 0, math.inf, 0, 1, 1, 0, 0),
        b"",
        b"\x01",
    ],
)
def test_what_is_wrong_or_unusual_is_left_to_geos(wrong: Any) -> None:
    good = shapely.box(0, 0, 1, 1)
    assert looked_at([good, wrong, None, good]).rows.tolist() == [0, 3]
    assert looked_at([wrong]).rows.tolist() == []


def test_points_and_lines() -> None:
    line, still = shapely.LineString([(0, 0), (1, 1)]), shapely.LineString([(1, 1), (1, 1)])
    lines = [line, still, shapely.MultiLineString([line]), shapely.MultiLineString([line, line]), None]
    assert looked_at(lines, Family.LINE).rows.tolist() == [0, 2]
    points = [shapely.Point(1, 2), shapely.MultiPoint([(1, 2)]), shapely.Point(), shapely.Point(999, 0), line]
    assert looked_at(points, Family.POINT).rows.tolist() == [0, 1]
    assert looked_at(points, Family.POINT, multi=False).rows.tolist() == [0]
    assert looked_at(points, Family.POINT, multi=False, geographic=False).rows.tolist() == [0, 3]


def test_a_part_of_an_array_is_looked_at_alone() -> None:
    squares = packed([shapely.Polygon(PENTAGRAM), shapely.box(0, 0, 1, 1), shapely.box(5, 5, 6, 6)])
    sound_rows = sound(squares.slice(1), Family.POLYGON, multi=True, geographic=True)
    assert sound_rows.rows.tolist() == [0, 1]
    assert sound_rows.bounds.tolist() == [[0, 0, 1, 1], [5, 5, 6, 6]]
    assert len(sound(squares.slice(0, 0), Family.POLYGON, multi=True, geographic=True).rows) == 0


def test_types_are_read_of_whatever_has_one() -> None:
    given_ones = [None, b"", b"\x01", shapely.box(0, 0, 1, 1), shapely.MultiPoint([(1, 2)]), b"\x01\x03"]
    assert types(packed(given_ones)).tolist() == [0, 0, 0, 3, 4, 0]
