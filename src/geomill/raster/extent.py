"""Where a raster lies on the globe.

Bounds come from points all over the raster, not only from its edges: a map of the whole world has corners outside the
globe. Longitudes lie on a circle, so the raster is the part of the circle outside the largest gap between its points.
"""

from __future__ import annotations

import math
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from rasterio._err import CPLE_BaseError
from rasterio.crs import CRS
from rasterio.io import DatasetReader
from rasterio.warp import transform
from shapely.geometry import Point, Polygon

from geomill.datasets.refusals import refused

WGS84 = CRS.from_epsg(4326)
EDGE_STEPS = 400
LATTICE = 120, 60
"""Number of points across and down inside the raster, which are at most 3° apart on a map of the world."""
SMALLEST_LIST = 64
LARGEST_STEP = 4.5
"""In degrees. A smaller gap between longitudes is the distance of two points, not an end of the raster."""
Bounds = tuple[float, float, float, float]
Points = tuple[NDArray[np.float64], NDArray[np.float64]]


class Placed(Protocol):
    """A raster with a place, such as a dataset or a reader."""

    @property
    def crs(self) -> CRS: ...
    @property
    def transform(self) -> Any: ...
    @property
    def width(self) -> int: ...
    @property
    def height(self) -> int: ...


def transform_points(source: CRS, target: CRS, xs: Any, ys: Any, smallest: int = 1) -> tuple[list[float], list[float]]:
    """Transform points. A point that has no place in the target system becomes infinite.

    GDAL refuses some lists of points as a whole, so they are halved until only `smallest` are left. Each attempt takes
    milliseconds.
    """
    try:
        points = transform(source, target, list(xs), list(ys))
    except CPLE_BaseError:
        if len(xs) <= smallest:
            return [math.inf] * len(xs), [math.inf] * len(xs)
        half = len(xs) // 2
        first = transform_points(source, target, xs[:half], ys[:half], smallest)
        second = transform_points(source, target, xs[half:], ys[half:], smallest)
        return [*first[0], *second[0]], [*first[1], *second[1]]
    return points[0], points[1]


def sample_pixels(width: int, height: int) -> Points:
    """Return columns and rows of points on the edges and inside."""
    along = np.linspace(0, 1, EDGE_STEPS + 1)
    u, v = (lattice.ravel() for lattice in np.meshgrid(*(np.linspace(0, 1, count + 1) for count in LATTICE)))
    zero, one = np.zeros_like(along), np.ones_like(along)
    return (
        np.concatenate([along, along, zero, one, u]) * width,
        np.concatenate([zero, one, along, along, v]) * height,
    )


def placed(dataset: Placed, columns: Any, rows: Any) -> Points:
    """Return the coordinates of pixels in the raster's own system."""
    step = dataset.transform
    columns, rows = np.asarray(columns, np.float64), np.asarray(rows, np.float64)
    return step.a * columns + step.b * rows + step.c, step.d * columns + step.e * rows + step.f


def sample_points(dataset: DatasetReader, target: CRS) -> Points:
    """Return the points of the raster that have a place in the target system."""
    xs, ys = placed(dataset, *sample_pixels(dataset.width, dataset.height))
    if dataset.crs.is_geographic:  # grids of points at the centres of pixels go beyond the poles by half a pixel
        ys = np.clip(ys, -90, 90)
    places = transform_points(dataset.crs, target, xs.tolist(), ys.tolist(), smallest=SMALLEST_LIST)
    target_x, target_y = map(np.asarray, places)
    usable = np.isfinite(target_x) & np.isfinite(target_y)
    if target.is_geographic and not dataset.crs.is_geographic:
        usable &= returns(dataset.crs, (xs, ys), (target_x, target_y), math.sqrt(abs(dataset.transform.determinant)))
    if not usable.any():
        raise refused("crs_unusable", "no part of the raster can be converted to the target coordinate system")
    return target_x[usable], target_y[usable]


def returns(crs: CRS, points: Any, degrees: Any, tolerance: float) -> NDArray[np.bool_]:
    """Return which points come back from their degrees. Beside the globe on a map of the world, some projections find
    a place on its other side."""
    backs = transform_points(WGS84, crs, degrees[0], degrees[1], smallest=SMALLEST_LIST)
    back_x, back_y = map(np.asarray, backs)
    with np.errstate(invalid="ignore"):
        same: NDArray[np.bool_] = np.hypot(back_x - np.asarray(points[0]), back_y - np.asarray(points[1])) < tolerance
    return same


def longitude_range(longitudes: NDArray[np.float64]) -> tuple[float, float]:
    """Return west, from -180 to 180, and east, which exceeds 180 if the range crosses the antimeridian."""
    turned = longitudes % 360
    order = np.argsort(turned)
    gaps = np.diff(turned[order], append=turned[order[0]] + 360)
    largest = int(np.argmax(gaps))
    if gaps[largest] <= LARGEST_STEP:
        return -180.0, 180.0
    return _normal(float(longitudes[order[(largest + 1) % len(order)]]), float(longitudes[order[largest]]))


def _normal(west: float, east: float) -> tuple[float, float]:
    """Turn a range so that west lies from -180 to 180 and east follows it."""
    turns = 360 * math.floor((west + 180) / 360)
    west -= turns
    return west, east - 360 * math.floor((east - west) / 360)


def unrolled_bounds(dataset: DatasetReader, crs: CRS = WGS84) -> Bounds:
    """Return west, south, east and north in degrees of a geographic system. East exceeds 180 if the raster crosses the
    antimeridian."""
    if dataset.crs == crs:  # as they are, because a transformation would turn or round them
        longitudes, latitudes = placed(dataset, *sample_pixels(dataset.width, dataset.height))
        west, east = float(longitudes.min()), float(longitudes.max())
        west, east = (-180.0, 180.0) if east - west >= 360 - 1e-9 else _shifted(west, east)
        return west, max(float(latitudes.min()), -90.0), east, min(float(latitudes.max()), 90.0)
    longitudes, latitudes = sample_points(dataset, crs)
    west, east = (-180.0, 180.0) if enclosed_pole(dataset) else longitude_range(longitudes)
    south = -90.0 if _shows_pole(dataset, -1) else float(latitudes.min())
    north = 90.0 if _shows_pole(dataset, 1) else float(latitudes.max())
    return west, south, east, north


def _shifted(west: float, east: float) -> tuple[float, float]:
    turns = 360 * math.floor((west + 180) / 360)
    return west - turns, east - turns


def bounds_4326(dataset: DatasetReader) -> Bounds:
    """Return the bounds in degrees. West is greater than east if the raster crosses the antimeridian."""
    west, south, east, north = unrolled_bounds(dataset)
    return west, south, east - 360 if east > 180 else east, north


def enclosed_pole(dataset: DatasetReader) -> int:
    """Return 1 or -1 if the raster shows the surroundings of the north or south pole on all sides, else 0.

    On a cylindrical map of the world, a pole is a line or a point at its edge.
    """
    for sign in (1, -1):
        if not dataset.crs.is_geographic and _shows_pole(dataset, sign):
            corners = _pixels_of(dataset, [0.0, 90.0, 180.0, -90.0, 0.0], [*[sign * 89.9] * 4, sign * 90.0])
            around = Polygon(corners[:4]) if np.isfinite(corners).all() else Polygon()
            if around.is_valid and around.contains(Point(corners[4])):
                return sign
    return 0


def _shows_pole(dataset: DatasetReader, sign: int) -> bool:
    """Whether a pole lies in the raster or on its edge. On some maps it is a line."""
    longitudes = list(range(-180, 181, 30))
    xs, ys = transform_points(WGS84, dataset.crs, longitudes, [90.0 * sign] * len(longitudes))
    usable = [(x, y) for x, y in zip(xs, ys, strict=True) if math.isfinite(x) and math.isfinite(y)]
    if not usable:
        return False
    backs = transform_points(dataset.crs, WGS84, [x for x, _ in usable], [y for _, y in usable])[1]
    for point, back in zip(usable, backs, strict=True):
        column, row = ~dataset.transform @ point
        if -1 < column < dataset.width + 1 and -1 < row < dataset.height + 1 and abs(back - 90.0 * sign) < 0.1:
            return True
    return False


def _pixels_of(dataset: DatasetReader, longitudes: list[float], latitudes: list[float]) -> list[tuple[float, float]]:
    xs, ys = transform_points(WGS84, dataset.crs, longitudes, latitudes)
    return [~dataset.transform @ point for point in zip(xs, ys, strict=True)]
