"""Outlines valid data as a geometry in longitude and latitude."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np
import shapely
from affine import Affine
from numpy.typing import NDArray
from rasterio.crs import CRS
from rasterio.features import shapes
from rasterio.warp import transform as transform_points
from shapely.geometry import MultiPolygon, Polygon, box, mapping, shape
from shapely.geometry.polygon import orient

WGS84 = CRS.from_epsg(4326)
DIGITS = 7
Bounds = tuple[float, float, float, float]


def footprint(valid: NDArray[np.bool_], affine: Affine, crs: CRS) -> dict[str, Any]:
    """Return the outline of the valid pixels of a small image, at the resolution of its pixels."""
    cells = shapes(valid.astype(np.uint8), mask=valid, transform=affine, connectivity=8)
    outline = shapely.unary_union([shape(geometry) for geometry, _ in cells])
    pixel = max(abs(affine.a), abs(affine.e))
    simple = outline.simplify(pixel, preserve_topology=True)
    length = max(valid.shape) * pixel / 20
    parts = [part for polygon in _polygons(simple) for part in _geographic(polygon.segmentize(length), crs)]
    return as_geometry(parts)


def as_geometry(parts: list[Polygon]) -> dict[str, Any]:
    rounded = [orient(shapely.set_precision(part, 10**-DIGITS)) for part in parts if part.area > 0]
    flat = [polygon for part in rounded for polygon in _polygons(part)]
    geometry: dict[str, Any] = mapping(
        flat[0] if len(flat) == 1 else MultiPolygon([orient(polygon) for polygon in flat])
    )
    return {"type": geometry["type"], "coordinates": _lists(geometry["coordinates"])}


def from_bounds(bounds: Bounds) -> dict[str, Any]:
    """Return the geometry of bounds. They cross the antimeridian if west is greater than east or east is greater than
    180."""
    west, south, east, north = bounds
    return as_geometry(list(_cut(box(west, south, east + 360 if east < west else east, north))))


def bbox_of(geometry: dict[str, Any]) -> list[float]:
    """Return the bounding box. West is greater than east if the geometry lies on both sides of the antimeridian."""
    west, south, east, north = shape(geometry).bounds
    parts = list(_polygons(shape(geometry)))
    eastern = [part.bounds for part in parts if part.bounds[2] >= 180]
    western = [part.bounds for part in parts if part.bounds[0] <= -180]
    if eastern and western and len(parts) > 1 and not any(p[0] <= -180 and p[2] >= 180 for p in eastern):
        west = min(part.bounds[0] for part in parts if part.bounds[0] > 0)
        east = max(part.bounds[2] for part in parts if part.bounds[2] < 0)
    return [round(value, DIGITS) for value in (west, south, east, north)]


def _geographic(polygon: Polygon, crs: CRS) -> Iterator[Polygon]:
    """Transform a polygon to degrees and cut it at the antimeridian. Only the transformed coordinates may be shifted by
    360."""
    rings = [_ring(polygon.exterior, crs), *(_ring(hole, crs) for hole in polygon.interiors)]
    yield from _cut(shapely.make_valid(Polygon(rings[0], rings[1:])))


def _ring(ring: Any, crs: CRS) -> list[tuple[float, float]]:
    xs, ys = ring.coords.xy
    if crs.is_geographic:
        return list(zip(xs, ys, strict=True))
    longitudes, latitudes = transform_points(crs, WGS84, list(xs), list(ys))
    return list(zip(_unrolled(longitudes), latitudes, strict=True))


def _unrolled(longitudes: list[float]) -> list[float]:
    """Return continuous longitudes. Neighbouring points are close, so a jump over half the globe crosses the
    antimeridian. A polygon that is merely wide has no such jump."""
    unrolled, turn = longitudes[:1], 0.0
    for before, after in pairwise(longitudes):
        if abs(after - before) > 180:
            turn += 360.0 if after < before else -360.0
        unrolled.append(after + turn)
    lowest = min(unrolled)
    return [x + 360 for x in unrolled] if lowest < -180 else unrolled


def _cut(geometry: Any) -> Iterator[Polygon]:
    """Yield the polygons, with parts beyond 180° moved to the other side."""
    inside = geometry.intersection(box(-180, -90, 180, 90))
    beyond = geometry.intersection(box(180, -90, 540, 90))
    yield from _polygons(inside)
    for polygon in _polygons(beyond):
        yield shapely.transform(polygon, lambda points: points - np.array([360.0, 0.0]))


def _polygons(geometry: Any) -> Iterator[Polygon]:
    for part in getattr(geometry, "geoms", [geometry]):
        if part.geom_type == "Polygon" and not part.is_empty:
            yield part
        elif part.geom_type in ("MultiPolygon", "GeometryCollection"):
            yield from _polygons(part)


def _lists(coordinates: Any) -> Any:
    return [_lists(part) for part in coordinates] if isinstance(coordinates, tuple | list) else coordinates
