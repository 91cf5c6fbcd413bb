"""The hull of many geometries, bit by bit, and what a catalogue says of it.

Where longitudes end, a hull is torn: what lies on both sides of the 180th meridian seems to reach around the Earth. So
it is kept twice, around Greenwich and around the meridian, and the narrower one is true.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import shapely
from numpy.typing import NDArray
from shapely.geometry import mapping
from shapely.geometry.base import BaseGeometry

from geomill.vector.antimeridian import WORLD, wrap
from geomill.vector.facts import LayerExtent
from geomill.vector.projecting import PLATE_CARREE, Projection

Ring = list[tuple[float, float]]
_MANY = 1_000
_MANY_POINTS = 200_000
"""All of them may be corners of the hull, which goes through JSON."""
_STRIPS = 64
_STEPS = 50
"""Into so many parts each side of a hull is cut before it is transformed: straight lines do not stay straight."""
_NEAR_POLE = 89.999
"""What covers a pole has no outline in degrees."""


class Hull:
    def __init__(self, *, geographic: bool) -> None:
        self._geographic = geographic
        self._hulls: list[BaseGeometry] = []
        self._pacific: list[BaseGeometry] = []

    def add(self, points: NDArray[np.float64]) -> None:
        """Those that `outline` gives."""
        if not len(points):
            return
        self._hulls.append(_hull(points))
        if self._geographic:
            self._pacific.append(_hull(_turned(points)))

    def extent(self) -> LayerExtent:
        return LayerExtent(hull=_ring(self._hulls), pacific=_ring(self._pacific))


def outline(bounds: NDArray[np.float64], coordinates: Callable[[], NDArray[np.float64]]) -> NDArray[np.float64]:
    """Points with the hull of geometries: their coordinates; of many, some that are found faster."""
    if len(bounds) > _MANY:
        return _corners(bounds)
    points = coordinates()
    return points if len(points) <= _MANY_POINTS else _corners(np.hstack([points, points]))


def _corners(bounds: NDArray[np.float64]) -> NDArray[np.float64]:
    """Of boxes around all that lie in one strip of the map. Their hull is a little wide, and made in no time."""
    west, south, east, north = bounds[np.isfinite(bounds).all(axis=1)].T
    if not len(west):
        return np.empty((0, 2))
    edges = np.linspace(west.min(), west.max(), _STRIPS + 1)[1:-1]
    strips = np.searchsorted(edges, west)
    order = np.argsort(strips, kind="stable")
    begins = np.flatnonzero(np.diff(strips[order], prepend=-1))
    low, left = np.minimum.reduceat(south[order], begins), np.minimum.reduceat(west[order], begins)
    high, right = np.maximum.reduceat(north[order], begins), np.maximum.reduceat(east[order], begins)
    return np.column_stack([np.concatenate([left, right, right, left]), np.concatenate([low, low, high, high])])


def _turned(points: NDArray[np.float64]) -> NDArray[np.float64]:
    longitudes = points[:, 0]
    return np.column_stack([np.where(longitudes < 0, longitudes + WORLD, longitudes), points[:, 1]])


def _hull(coordinates: NDArray[np.float64]) -> BaseGeometry:
    points = np.vstack([coordinates, coordinates[:1]])
    return shapely.convex_hull(shapely.linestrings(points))


def _ring(hulls: Sequence[BaseGeometry]) -> Ring:
    if not hulls:
        return []
    coordinates = shapely.get_coordinates(_hull(shapely.get_coordinates(np.array(hulls, dtype=object))))
    return [(float(x), float(y)) for x, y in coordinates]


def footprint(extents: Iterable[LayerExtent], crs: str) -> tuple[dict[str, Any], list[float]]:
    """Geometry and bbox in degrees, if anything has a place. West is more than east across the 180th meridian."""
    found = list(extents)
    west = [point for one in found for point in one.hull]
    pacific = [point for one in found for point in one.pacific]
    project = Projection(crs, PLATE_CARREE)
    if not project.same:
        outline = _hull(np.array(west))
        _, south, _, north = project.bounds(outline.bounds)
        if max(-south, north) > _NEAR_POLE:
            return _described(shapely.box(-WORLD / 2, south, WORLD / 2, north))
        dense = shapely.segmentize(outline, max(_length(west) / _STEPS, 1e-9))
        turned = project(shapely.get_coordinates(dense))
        west = [(float(x), float(y)) for x, y in turned if np.isfinite([x, y]).all()]
        pacific = [(x + WORLD if x < 0 else x, y) for x, y in west]
    near, far = _hull(np.array(west)), _hull(np.array(pacific))
    return _described(far if _width(far) < _width(near) and far.bounds[2] > WORLD / 2 else near)


def _described(whole: BaseGeometry) -> tuple[dict[str, Any], list[float]]:
    low, south, high, north = (round(float(value), 9) for value in whole.bounds)
    shape = shapely.orient_polygons(wrap(np.array([whole], dtype=object))[0][0], exterior_cw=False)
    return _plain(mapping(shape)), [_degrees(low), south, _degrees(high), north]


def _plain(value: Any) -> Any:
    """JSON has lists only."""
    if isinstance(value, dict):
        return {key: _plain(one) for key, one in value.items()}
    return [_plain(one) for one in value] if isinstance(value, list | tuple) else value


def _length(points: Sequence[tuple[float, float]]) -> float:
    return float(np.ptp(np.array(points), axis=0).max())


def _width(geometry: BaseGeometry) -> float:
    return float(geometry.bounds[2] - geometry.bounds[0])


def _degrees(longitude: float) -> float:
    return longitude if longitude <= WORLD / 2 else longitude - WORLD
