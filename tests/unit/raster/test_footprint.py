"""Footprints, and what the antimeridian does to them."""

from __future__ import annotations

import numpy as np
import pytest
from affine import Affine
from rasterio.crs import CRS
from shapely.geometry import shape

from geomill.raster.footprint import bbox_of, footprint, from_bounds
from geomill.raster.grid import Grid
from geomill.raster.mosaic import max_zoom, mosaic_json

WGS84 = CRS.from_epsg(4326)


def test_it_follows_the_valid_data() -> None:
    valid = np.zeros((100, 100), bool)
    valid[20:60, 10:90] = True
    geometry = footprint(valid, Affine(0.1, 0, 10, 0, -0.1, 50), WGS84)
    assert geometry["type"] == "Polygon"
    assert shape(geometry).bounds == pytest.approx((11, 44, 19, 48), abs=0.11)
    assert shape(geometry).is_valid


def test_beyond_180_it_comes_back_on_the_other_side() -> None:
    geometry = footprint(np.ones((10, 40), bool), Affine(0.1, 0, 178, 0, -0.1, 10), WGS84)
    assert geometry["type"] == "MultiPolygon"
    assert bbox_of(geometry) == pytest.approx([178, 9, -178, 10])


def test_a_projected_one_over_the_antimeridian_is_cut_there() -> None:
    geometry = footprint(np.ones((50, 60), bool), Affine(5_000, 0, 700_000, 0, -5_000, 2_000_000), CRS.from_epsg(32660))
    assert geometry["type"] == "MultiPolygon"
    box = bbox_of(geometry)
    assert 170 < box[0] < 180
    assert -180 < box[2] < -170
    assert shape(geometry).area < 10


def test_a_merely_wide_one_is_not_turned_into_its_complement() -> None:
    geometry = footprint(np.ones((40, 340), bool), Affine(1, 0, -170, 0, -1, 20), WGS84)
    assert shape(geometry).area == pytest.approx(340 * 40, rel=0.01)
    mercator = footprint(
        np.ones((40, 340), bool), Affine(111_319, 0, -170 * 111_319, 0, -111_319, 2_000_000), CRS.from_epsg(3857)
    )
    assert bbox_of(mercator)[0] == pytest.approx(-170, abs=1)
    assert bbox_of(mercator)[2] == pytest.approx(170, abs=1)


def test_bounds_become_a_geometry() -> None:
    assert from_bounds((10, 0, 20, 5))["type"] == "Polygon"
    assert from_bounds((179, 0, 181, 5))["type"] == "MultiPolygon"
    assert from_bounds((179, 0, -179, 5)) == from_bounds((179, 0, 181, 5))


def test_every_quadkey_that_a_tile_touches_names_it() -> None:
    grid = Grid(crs="EPSG:4326", transform=(0.001, 0, 10, 0, -0.001, 50), width=4096, height=4096)
    tiles = {f"tiles/{tile.tile_id}.tif": tile for tile in grid.tiles(2048)}
    mosaic = mosaic_json(grid, tiles, 2048, "m")
    assert mosaic["bounds"] == list(grid.bounds)
    assert mosaic["maxzoom"] == max_zoom(grid) == 11
    assert mosaic["minzoom"] == mosaic["quadkey_zoom"] == 8
    for path in tiles:
        assert sum(path in paths for paths in mosaic["tiles"].values()) >= 4
    assert all(len(key) == 8 for key in mosaic["tiles"])


def test_a_mosaic_goes_over_the_antimeridian() -> None:
    grid = Grid(crs="EPSG:4326", transform=(0.01, 0, 178, 0, -0.01, 5), width=512, height=512)
    mosaic = mosaic_json(grid, {"t.tif": next(iter(grid.tiles(512)))}, 512, "m")
    first = {key[0] for key in mosaic["tiles"]}
    assert first == {"0", "1", "2", "3"} & first
    assert len(first) >= 2
