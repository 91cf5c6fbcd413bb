"""Builds a MosaicJSON, the index of tiles by location."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import morecantile
from rasterio.crs import CRS
from rasterio.warp import transform_bounds

from geomill.raster.grid import Grid, Tile

TMS = morecantile.tms.get("WebMercatorQuad")
WORLD_PIXELS = 256
HIGHEST_LATITUDE = 85.051128


def mosaic_json(grid: Grid, tiles: Mapping[str, Tile], tile_size: int, name: str) -> dict[str, Any]:
    """Return the MosaicJSON. `tiles` are keyed by path relative to the mosaic's own file."""
    bounds = geographic_bounds(grid, grid.bounds)
    highest = max_zoom(grid)
    lowest = max(0, highest - max(0, math.ceil(math.log2(tile_size / WORLD_PIXELS))))
    paths_by_quadkey: dict[str, list[str]] = {}
    for path, tile in tiles.items():
        for key in _quadkeys(geographic_bounds(grid, grid.bounds_of(tile)), lowest):
            paths_by_quadkey.setdefault(key, []).append(path)
    return {
        "mosaicjson": "0.0.3",
        "name": name,
        "version": "1.0.0",
        "minzoom": lowest,
        "maxzoom": highest,
        "quadkey_zoom": lowest,
        "bounds": list(bounds),
        "center": [(bounds[0] + bounds[2]) / 2, (bounds[1] + bounds[3]) / 2, lowest],
        "tiles": dict(sorted(paths_by_quadkey.items())),
    }


def geographic_bounds(grid: Grid, bounds: tuple[float, float, float, float]) -> tuple[float, float, float, float]:
    """Return west, south, east and north. East exceeds 180 if the grid crosses the antimeridian."""
    crs = CRS.from_user_input(grid.crs)
    if crs.is_geographic:
        return bounds
    west, south, east, north = transform_bounds(crs, CRS.from_epsg(4326), *bounds, densify_pts=21)
    return (west, south, east if west <= east else east + 360, north)


def max_zoom(grid: Grid) -> int:
    """Return the first zoom at which a pixel of the map is no larger than a pixel of the grid."""
    west, _, east, _ = geographic_bounds(grid, grid.bounds)
    degrees = (east - west) / grid.width
    return min(24, max(0, math.ceil(math.log2(360 / (degrees * WORLD_PIXELS)) - 0.01)))


def _quadkeys(bounds: tuple[float, float, float, float], zoom: int) -> Iterator[str]:
    """Yield the quadkeys that the bounds touch, excluding edges."""
    west, south, east, north = bounds
    south, north = max(south, -HIGHEST_LATITUDE), min(north, HIGHEST_LATITUDE)
    if south >= north:
        return
    for left, right in _turned(west, east):
        for tile in _tiles(left, south, right, north, zoom):
            yield TMS.quadkey(tile)


def _turned(west: float, east: float) -> Iterable[tuple[float, float]]:
    """Return the range within -180 to 180, in two parts if it crosses the antimeridian."""
    if east <= 180 and west >= -180:
        return [(west, east)]
    if west >= 180:
        return [(west - 360, east - 360)]
    if west < -180:
        return [(west + 360, 180.0), (-180.0, east)] if east > -180 else [(west + 360, east + 360)]
    return [(west, 180.0), (-180.0, east - 360)]


def _tiles(west: float, south: float, east: float, north: float, zoom: int) -> Iterator[morecantile.Tile]:
    margin = 1e-9
    first = TMS.tile(west + margin, north - margin, zoom)
    last = TMS.tile(east - margin, south + margin, zoom)
    for x in range(first.x, last.x + 1):
        for y in range(first.y, last.y + 1):
            yield morecantile.Tile(x, y, zoom)
