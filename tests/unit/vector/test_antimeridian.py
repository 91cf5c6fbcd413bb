"""Where longitudes end: nothing is lost, nothing is turned inside out, and what is wide stays wide."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyproj
import pytest
import shapely
from hypothesis import given, settings
from hypothesis import strategies as st

from geomill.vector.antimeridian import mend, wrap

longitudes = st.floats(-355, 355, allow_nan=False)


def array(*geometries: Any) -> Any:
    geometry_array = np.empty(len(geometries), dtype=object)
    geometry_array[:] = geometries
    return geometry_array


def projector(source: str) -> Any:
    transformer = pyproj.Transformer.from_crs(source, 4326, always_xy=True)
    return lambda points: np.column_stack(transformer.transform(points[:, 0], points[:, 1]))


@settings(deadline=None)
@given(longitudes, st.floats(0.1, 300), st.floats(-80, 80), st.floats(0.1, 9))
def test_wrapping_keeps_the_area_and_stays_on_the_map(west: float, width: float, south: float, height: float) -> None:
    before = shapely.box(west, south, west + width, south + height)
    after = wrap(array(before))[0][0]
    assert after.area == pytest.approx(before.area, rel=1e-9)
    assert after.is_valid
    assert after.bounds[0] >= -180
    assert after.bounds[2] <= 180
    assert wrap(array(after))[1] == 0


@settings(deadline=None)
@given(st.floats(-179, 179), st.floats(-80, 80))
def test_what_lies_on_the_map_is_not_touched(x: float, y: float) -> None:
    line, wide = shapely.LineString([(-179, 0), (179, 1)]), shapely.box(-170, -10, 170, 10)
    geometries = array(shapely.Point(x, y), wide, line, None)
    wrapped, count = wrap(geometries)
    assert count == 0
    assert wrapped is geometries


@given(st.floats(160, 199), st.floats(1, 30), st.floats(-60, 50))
@settings(max_examples=50, deadline=None)
def test_a_polygon_around_it_keeps_its_area(west: float, width: float, south: float) -> None:
    """EPSG:3832 has its middle at 150° east, so nothing is torn there; degrees tear it."""
    there = pyproj.Transformer.from_crs(4326, 3832, always_xy=True)
    corners = [(west, south), (west + width, south), (west + width, south + 5), (west, south + 5)]
    before = shapely.Polygon([there.transform(*corner) for corner in corners])
    project = projector("EPSG:3832")
    torn = shapely.transform(array(before), project)
    mended, count = mend(torn, array(before), project)
    assert mended[0].is_valid
    assert mended[0].area == pytest.approx(width * 5, rel=1e-6)
    if west < 179.999 and west + width > 180.001:
        assert (count, len(mended[0].geoms)) == (1, 2)


def test_a_wide_polygon_is_not_turned_into_its_complement() -> None:
    there = pyproj.Transformer.from_crs(4326, 3857, always_xy=True)
    before = shapely.Polygon([there.transform(x, y) for x, y in ((-170, -10), (170, -10), (170, 10), (-170, 10))])
    project = projector("EPSG:3857")
    mended, count = mend(shapely.transform(array(before), project), array(before), project)
    assert count == 0
    assert mended[0].area == pytest.approx(340 * 20, rel=1e-6)


def test_a_hole_and_a_line_come_along() -> None:
    there = pyproj.Transformer.from_crs(4326, 3832, always_xy=True)

    def moved(geometry: Any) -> Any:
        return shapely.transform(geometry, lambda points: np.column_stack(there.transform(points[:, 0], points[:, 1])))

    shell = shapely.box(170, -10, 190, 10).difference(shapely.box(182, -1, 184, 1))
    line = shapely.LineString([(175, 0), (185, 5)])
    before, project = array(moved(shell), moved(line)), projector("EPSG:3832")
    mended, count = mend(shapely.transform(before, project), before, project)
    assert count == 2
    assert mended[0].area == pytest.approx(shell.area, rel=1e-6)
    assert mended[1].length == pytest.approx(line.length, rel=1e-3)


def test_a_polygon_around_a_pole_reaches_it() -> None:
    """Polar stereographic: a circle around the pole has no beginning and no end in degrees."""
    angles = np.linspace(0, 2 * np.pi, 37)[:-1] + 0.1
    before = shapely.Polygon(np.column_stack([2e6 * np.cos(angles), 2e6 * np.sin(angles)]))
    project = projector("EPSG:3413")
    mended, _ = mend(shapely.transform(array(before), project), array(before), project)
    assert mended[0].is_valid
    assert mended[0].bounds[3] == 90
    assert mended[0].bounds[0] == pytest.approx(-180)
    assert mended[0].bounds[2] == pytest.approx(180)
    assert mended[0].contains(shapely.Point(0, 85))
    assert not mended[0].contains(shapely.Point(0, 60))
