"""Repairs of geometries as rules: whatever goes in, what comes out is valid, of one type, and wound the right way."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import shapely
from hypothesis import example, given, settings
from hypothesis import strategies as st

from geomill.vector.facts import Family, LoadingRules
from geomill.vector.geometry import GeometryRepairs

numbers = st.floats(-80, 80, allow_nan=False, width=32)
points = st.tuples(numbers, numbers)
rings = st.lists(points, min_size=3, max_size=8)
NOTHING = 1e-6
RULES = LoadingRules(target_crs="EPSG:4326", srid=4326, family=Family.POLYGON)


def hardened(geometries: list[Any], *, plain: bool) -> tuple[Any, dict[str, int]]:
    wkb = pa.array([None if geometry is None else shapely.to_wkb(geometry) for geometry in geometries], pa.binary())
    repairs = GeometryRepairs(RULES, "EPSG:4326", plain=plain)
    repaired = np.empty(len(geometries), dtype=object)
    for part in repairs.harden(wkb, np.arange(len(geometries)) + 1):
        repaired[part.rows] = shapely.from_wkb(part.wkb.to_numpy(zero_copy_only=False))
    return repaired, dict(repairs.counts)


SPIKES = [(-1, 0), (0, 0), (-1, -67.9), (-1, -1), (-1, -1), (-69.2, -1), (-1, -2.4), (-1, -21.7)]
NEAR = [(0, -1), (0, 0), (1e-30, -1), (-80, 27.3), (1e-38, -1)]


@settings(deadline=None)
@given(st.lists(st.one_of(st.none(), rings), min_size=1, max_size=6), st.booleans())
@example(shapes=[SPIKES], plain=True)
@example(shapes=[NEAR], plain=False)
def test_what_comes_out_is_good(shapes: list[Any], plain: bool) -> None:
    geometries = [None if shape is None else shapely.Polygon(shape) for shape in shapes]
    repaired, counts = hardened(geometries, plain=plain)
    assert len(repaired) == len(geometries)
    for before, after in zip(geometries, repaired, strict=True):
        if after is None:
            assert before is None or shapely.make_valid(before).area < NOTHING
            continue
        assert after.geom_type == "MultiPolygon"
        assert after.is_valid
        assert all(part.exterior.is_ccw and not any(hole.is_ccw for hole in part.interiors) for part in after.geoms)
    assert counts.get("geometry_null", 0) == geometries.count(None)


@settings(deadline=None)
@given(st.lists(rings, min_size=1, max_size=6))
def test_it_does_not_matter_whether_bytes_are_used_again(shapes: list[Any]) -> None:
    geometries = [shapely.Polygon(shape) for shape in shapes]
    first, second = hardened(geometries, plain=True), hardened(geometries, plain=False)
    assert first[1] == second[1]
    assert all(shapely.equals_identical(first[0], second[0]) | shapely.is_missing(first[0]))


@settings(deadline=None)
@given(st.lists(rings, min_size=1, max_size=6))
def test_what_is_good_stays_as_it_is(shapes: list[Any]) -> None:
    repaired = [
        geometry
        for geometry in hardened([shapely.Polygon(shape) for shape in shapes], plain=False)[0]
        if geometry is not None
    ]
    if repaired:
        again, counts = hardened(repaired, plain=True)
        assert counts == {}
        assert all(shapely.equals_identical(again, np.array(repaired, dtype=object)))
