"""Outlines valid data as a geometry in longitude and latitude."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np
import shapely
from affine import Affine
from numpy.typing import NDArray
from rasterio.crs import CRS
from rasterio.features import shapes
from shapely.geometry import MultiPolygon, Polygon, box, mapping, shape
from shapely.geometry.polygon import orient

from geomill.raster.extent import WGS84, Bounds, returns, transform_points

DIGITS = 7
HALF = 180.0
MOST_EDGES = 5_000
CELL = 0.5
"""In degrees: the resolution of an outline that cannot follow the pixels."""


def footprint(valid: NDArray[np.bool_], affine: Affine, crs: CRS) -> dict[str, Any]:
    """Return the outline of the valid pixels of a small image, at the resolution of its pixels, or coarser if they are
    scattered."""
    valid, affine = _coarsened(valid, affine)
    outline = _outline(valid, affine)
    pixel = min(abs(affine.a), abs(affine.e))
    simple = outline.simplify(pixel, preserve_topology=True)
    length = max(valid.shape) * max(abs(affine.a), abs(affine.e)) / 20
    try:
        parts = [part for polygon in _polygons(simple) for part in _geographic(polygon.segmentize(length), crs, pixel)]
    except _NoOutline:
        parts = list(_polygons(_outline_in_degrees(valid, affine, crs)))
    return as_geometry(parts)


def _coarsened(valid: NDArray[np.bool_], affine: Affine) -> tuple[NDArray[np.bool_], Affine]:
    """Merge pixels until their outline has few edges. The time of the work below grows with their square."""
    while np.count_nonzero(np.diff(valid, axis=0)) + np.count_nonzero(np.diff(valid, axis=1)) > MOST_EDGES:
        height, width = (length + length % 2 for length in valid.shape)
        even = np.zeros((height, width), bool)
        even[: valid.shape[0], : valid.shape[1]] = valid
        valid = np.logical_or.reduce(even.reshape(height // 2, 2, width // 2, 2), axis=(1, 3))
        affine = affine @ Affine.scale(2)
    return valid, affine


def _outline(valid: NDArray[np.bool_], affine: Affine) -> Any:
    cells = shapes(valid.astype(np.uint8), mask=valid, transform=affine, connectivity=8)
    return shapely.unary_union([shape(geometry) for geometry, _ in cells])


def _outline_in_degrees(valid: NDArray[np.bool_], affine: Affine, crs: CRS) -> Any:
    """Return the outline for rasters around a pole or with corners outside the globe, whose edges make no ring in
    degrees: as that of a map of the world in degrees, whose pixels look up theirs in the image."""
    longitudes, latitudes = np.arange(-180, 180, CELL) + CELL / 2, np.arange(90, -90, -CELL) - CELL / 2
    lattice = [part.ravel() for part in np.meshgrid(longitudes, latitudes)]
    xs, ys = map(np.asarray, transform_points(WGS84, crs, lattice[0].tolist(), lattice[1].tolist(), smallest=64))
    backs = transform_points(crs, WGS84, xs.tolist(), ys.tolist(), smallest=64)
    with np.errstate(invalid="ignore"):
        there = np.abs(np.asarray(backs[1]) - lattice[1]) < CELL
        there &= np.abs((np.asarray(backs[0]) - lattice[0] + 180) % 360 - 180) < CELL
        columns, rows = ~affine @ (xs, ys)
        there &= (columns >= 0) & (columns < valid.shape[1]) & (rows >= 0) & (rows < valid.shape[0])
    mask = np.zeros(len(xs), bool)
    mask[there] = valid[rows[there].astype(int), columns[there].astype(int)]
    world = Affine(CELL, 0, -180, 0, -CELL, 90)
    return _outline(*_coarsened(mask.reshape(len(latitudes), len(longitudes)), world))


def as_geometry(parts: list[Polygon]) -> dict[str, Any]:
    """Return a valid geometry of polygons, which may touch or overlap. Each ring turns as GeoJSON demands."""
    together = shapely.make_valid(shapely.unary_union(parts))
    rounded = shapely.set_precision(together, 10**-DIGITS)
    flat = [orient(polygon) for polygon in _polygons(rounded if rounded.area > 0 else together)]
    geometry: dict[str, Any] = mapping(flat[0] if len(flat) == 1 else MultiPolygon(flat))
    return {"type": geometry["type"], "coordinates": _lists(geometry["coordinates"])}


def from_bounds(bounds: Bounds) -> dict[str, Any]:
    """Return the geometry of bounds. They cross the antimeridian if west is greater than east or east is greater than
    180."""
    west, south, east, north = bounds
    return as_geometry(list(_cut(box(west, south, east + 360 if east < west else east, north))))


def bbox_of(geometry: dict[str, Any]) -> list[float]:
    """Return the bounding box. West is greater than east if the geometry lies on both sides of the antimeridian."""
    west, south, east, north = shape(geometry).bounds
    ranges = sorted((part.bounds[0], part.bounds[2]) for part in _polygons(shape(geometry)))
    reached, gap = west, (0.0, west, east)
    for start, end in ranges:
        gap = max(gap, (start - reached, start, reached))
        reached = max(reached, end)
    at_both_ends = west <= -180 and east >= 180
    if (at_both_ends and gap[0] > 0) or gap[0] > HALF:
        west, east = gap[1], gap[2]
    return [round(value, DIGITS) for value in (west, south, east, north)]


class _NoOutline(Exception):  # noqa: N818
    """The edges of a polygon make no ring in degrees."""


def _geographic(polygon: Polygon, crs: CRS, pixel: float) -> Iterator[Polygon]:
    """Transform a polygon to degrees and cut it at the antimeridian. Only the transformed coordinates may be shifted by
    360."""
    rings = [_ring(ring, crs, pixel) for ring in (polygon.exterior, *polygon.interiors)]
    yield from _cut(shapely.make_valid(Polygon(rings[0], rings[1:])))


def _ring(ring: Any, crs: CRS, pixel: float) -> list[tuple[float, float]]:
    xs, ys = ring.coords.xy
    if crs.is_geographic:
        return list(zip(xs, ys, strict=True))
    longitudes, latitudes = transform_points(crs, WGS84, list(xs), list(ys), smallest=64)
    if not returns(crs, (xs, ys), (longitudes, latitudes), pixel).all():
        raise _NoOutline
    unrolled = _unrolled(longitudes)
    if abs(unrolled[-1] - unrolled[0]) > HALF:  # it turns around a pole
        raise _NoOutline
    return list(zip(unrolled, latitudes, strict=True))


def _unrolled(longitudes: list[float]) -> list[float]:
    """Return continuous longitudes. Neighbouring points are close, so a jump over half the globe crosses the
    antimeridian. A polygon that is merely wide has no such jump."""
    unrolled, turn = longitudes[:1], 0.0
    for before, after in pairwise(longitudes):
        if abs(after - before) > HALF:
            turn += 360.0 if after < before else -360.0
        unrolled.append(after + turn)
    return unrolled


def _cut(geometry: Any) -> Iterator[Polygon]:
    """Yield the polygons, with parts beyond 180° moved to the other side."""
    west, _, east, _ = geometry.bounds
    if east - west >= 360:  # each longitude once
        geometry = geometry.intersection(box(west, -90, west + 360, 90))
    for turn in range(math.floor((west + 180) / 360), math.floor((east + 180) / 360) + 1):
        inside = geometry.intersection(box(360 * turn - 180, -90, 360 * turn + 180, 90))
        for polygon in _polygons(inside):
            yield shapely.transform(polygon, lambda points, turn=turn: points - np.array([360.0 * turn, 0.0]))


def _polygons(geometry: Any) -> Iterator[Polygon]:
    for part in getattr(geometry, "geoms", [geometry]):
        if part.geom_type == "Polygon" and not part.is_empty:
            yield part
        elif part.geom_type in ("MultiPolygon", "GeometryCollection"):
            yield from _polygons(part)


def _lists(coordinates: Any) -> Any:
    return [_lists(part) for part in coordinates] if isinstance(coordinates, tuple | list) else coordinates
