"""Footprints: they cover what was loaded, and are no wider than they must be."""

from __future__ import annotations

from typing import Any

import pytest
import shapely
from hypothesis import given, settings
from hypothesis import strategies as st

from geomill.vector.extent import Hull, footprint, outline

places = st.tuples(st.floats(-170, 170, width=32), st.floats(-80, 80, width=32))


def extent_of(*batches: Any, crs: str = "EPSG:4326") -> tuple[Any, list[float]]:
    extents = []
    for batch in batches:
        hull = Hull(geographic=crs == "EPSG:4326")
        hull.add(outline(shapely.bounds(batch), lambda batch=batch: shapely.get_coordinates(batch)))
        extents.append(hull.extent())
    geometry, bbox = footprint(extents, crs)
    return shapely.geometry.shape(geometry), bbox


@settings(deadline=None, max_examples=50)
@given(st.lists(places, min_size=1, max_size=30), st.booleans())
def test_it_covers_everything(points: list[tuple[float, float]], many: bool) -> None:
    boxes = [shapely.box(x, y, x + 1, y + 1) for x, y in points] * (100 if many else 1)
    shape, (west, south, east, north) = extent_of(boxes[::2], boxes[1::2]) if len(boxes) > 1 else extent_of(boxes)
    assert all(shape.buffer(1e-9).covers(box) for box in boxes)
    low, lowest, high, highest = shapely.total_bounds(boxes)
    assert (south, north) == pytest.approx((lowest, highest), abs=1e-8)  # rounded to nine places
    if west < east:
        assert (west, east) == pytest.approx((low, high), abs=1e-8)


def test_both_sides_of_the_antimeridian_are_one_place() -> None:
    fiji = [shapely.box(177, -19, 179, -17)], [shapely.box(-180, -19, -178, -17)]
    shape, bbox = extent_of(*fiji)
    assert bbox == [177.0, -19.0, -178.0, -17.0]
    assert shape.geom_type == "MultiPolygon"
    assert shape.area == pytest.approx(10)


def test_a_single_place_is_a_point() -> None:
    shape, bbox = extent_of([shapely.Point(5, 45)])
    assert (shape.geom_type, bbox) == ("Point", [5.0, 45.0, 5.0, 45.0])


def test_a_projected_layer_and_one_around_a_pole() -> None:
    shape, bbox = extent_of([shapely.box(500_000, 5_000_000, 600_000, 5_100_000)], crs="EPSG:32633")
    assert bbox == pytest.approx([15.0, 45.15, 16.3, 46.06], abs=0.02)
    assert shape.contains(shapely.Point(15.6, 45.6))
    polar, bbox = extent_of([shapely.box(-1e6, -1e6, 1e6, 1e6)], crs="EPSG:3413")
    assert (bbox[0], bbox[2], bbox[3]) == (-180.0, 180.0, 90.0)
    assert polar.contains(shapely.Point(100, 89))
