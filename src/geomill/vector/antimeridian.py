"""Repairs geometries at the 180th meridian, in degrees of longitude and latitude.

Two errors occur there. A geometry that was transformed from another CRS may have vertices on both sides of the meridian
and then seems to reach around the Earth the other way. And some files have longitudes beyond 180. The repair is the
same: longitudes are made continuous, and the part beyond the edge is cut off and moved to the other side.

A geometry is not repaired only because it is wide. The source geometry decides the direction of an edge: the middle of
the source edge, transformed too, lies either between the ends or on the other side of the Earth. The repair therefore
needs the geometry before its transformation, and is not applied if the longitudes come directly from the file.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import shapely
from numpy.typing import NDArray
from shapely.geometry.base import BaseGeometry

Floats = NDArray[np.float64]
Geometries = NDArray[Any]
Project = Callable[[Floats], Floats]
"""Transforms rows of source coordinates to longitudes and latitudes."""

WORLD = 360.0


def mend(after: Geometries, before: Geometries, project: Project) -> tuple[Geometries, int]:
    """Repair the transformed geometries that cross the 180th meridian. Returns all geometries and the number
    repaired."""
    bounds = shapely.bounds(after)
    wide = np.flatnonzero(
        bounds[:, 2] - bounds[:, 0] > WORLD / 2
    )  # one that crosses the meridian has vertices at both ends
    mended, count = after.copy(), 0
    for index in wide:
        unwrapped = unwrap(after[index], before[index], project)
        if unwrapped is not None:
            mended[index] = unwrapped
            count += 1
    return wrap(mended)[0], count


def wrap(geometries: Geometries) -> tuple[Geometries, int]:
    """Bring all longitudes between -180 and 180: move geometries by whole turns, and cut those across the edge."""
    bounds = shapely.bounds(geometries)
    with np.errstate(invalid="ignore"):  # empty geometries have NaN bounds
        outside = np.flatnonzero((bounds[:, 0] < -180) | (bounds[:, 2] > 180))
    if not len(outside):
        return geometries, 0
    wrapped = geometries.copy()
    turns = np.floor((bounds[outside, 0] + 180) / WORLD)
    astride = bounds[outside, 2] > 180 + WORLD * turns
    for turn in np.unique(turns[~astride]):
        moved = outside[~astride & (turns == turn)]
        wrapped[moved] = _moved(wrapped[moved], -turn)
    for index in outside[astride]:
        wrapped[index] = _cut(wrapped[index])
    return wrapped, len(outside)


def _moved(geometries: Geometries, turns: float) -> Geometries:
    shift = np.array([WORLD * turns, 0.0, 0.0])
    moved: Geometries = shapely.transform(geometries, lambda xyz: xyz + shift[: xyz.shape[1]], include_z=None)
    return moved


def _cut(geometry: BaseGeometry) -> BaseGeometry:
    low, high = geometry.bounds[0], geometry.bounds[2]
    first, last = int(np.floor((low + 180) / WORLD)), int(np.ceil((high + 180) / WORLD))
    whole = geometry if geometry.is_valid else shapely.make_valid(geometry)
    parts: list[BaseGeometry] = []
    for turn in range(first, last):
        window = shapely.box(-180 + WORLD * turn, -1_000, 180 + WORLD * turn, 1_000)
        inside = shapely.intersection(whole, window)
        parts += [part for part in shapely.get_parts(_moved(np.array([inside]), -turn)) if _same_kind(part, whole)]
    return _together(parts)


def _same_kind(part: BaseGeometry, whole: BaseGeometry) -> bool:
    """Return whether a part has the dimension of the whole. One that only touches a window becomes a line or a
    point."""
    return not part.is_empty and int(shapely.get_dimensions(part)) == int(shapely.get_dimensions(whole))


def _together(parts: Sequence[BaseGeometry]) -> BaseGeometry:
    if len(parts) == 1:
        return parts[0]
    kinds = {0: shapely.multipoints, 1: shapely.multilinestrings, 2: shapely.multipolygons}
    return kinds[int(shapely.get_dimensions(parts[0]))](parts) if parts else shapely.GeometryCollection()


def unwrap(after: BaseGeometry, before: BaseGeometry, project: Project) -> BaseGeometry | None:
    """Return the geometry with continuous longitudes, which may exceed 180, or None if no edge crosses the meridian."""
    parts = list(zip(shapely.get_parts(after), shapely.get_parts(before), strict=True))
    if not any(_crossings(*pair, project) for pair in parts):
        return None
    return _together([_unwrapped(*pair, project) for pair in parts])


def _crossings(after: BaseGeometry, before: BaseGeometry, project: Project) -> bool:
    rings = zip(_rings(after), _rings(before), strict=True)
    return any(bool(np.any(turns(new, old, project))) for new, old in rings)


def _rings(geometry: BaseGeometry) -> list[Floats]:
    """Return the lines of a geometry, each as rows of coordinates."""
    if geometry.geom_type == "Polygon":
        return [
            shapely.get_coordinates(ring, include_z=geometry.has_z) for ring in (geometry.exterior, *geometry.interiors)
        ]
    return [shapely.get_coordinates(geometry, include_z=geometry.has_z)]


def turns(after: Floats, before: Floats, project: Project) -> NDArray[np.int64]:
    """Return for each edge 1 if it crosses the 180th meridian eastwards, -1 if westwards, and otherwise 0."""
    longitudes = after[:, 0]
    steps = np.diff(longitudes)
    suspects = np.flatnonzero(np.abs(steps) > WORLD / 2)
    crossings = np.zeros(len(steps), dtype=np.int64)
    if not len(suspects):
        return crossings
    middles = project((before[suspects, :2] + before[suspects + 1, :2]) / 2)[:, 0]
    direct = (longitudes[suspects] + longitudes[suspects + 1]) / 2
    behind = _apart(middles, direct) > _apart(middles, direct + WORLD / 2)
    crossings[suspects[behind]] = -np.sign(steps[suspects[behind]]).astype(np.int64)
    return crossings


def _apart(first: Floats, second: Floats) -> Floats:
    """Return the degrees between two longitudes, the short way."""
    return np.abs((first - second + WORLD / 2) % WORLD - WORLD / 2)


def _unwrapped(after: BaseGeometry, before: BaseGeometry, project: Project) -> BaseGeometry:
    lines = [_run_on(new, turns(new, old, project)) for new, old in zip(_rings(after), _rings(before), strict=True)]
    if after.geom_type != "Polygon":
        return shapely.LineString(lines[0]) if after.geom_type == "LineString" else after
    shell, *holes = (_closed(line) for line in lines)
    return shapely.Polygon(shell, [_beside(hole, shell) for hole in holes])


def _run_on(line: Floats, crossings: NDArray[np.int64]) -> Floats:
    continuous = line.copy()
    continuous[1:, 0] += WORLD * np.cumsum(crossings)
    return continuous


def _closed(ring: Floats) -> Floats:
    """Close a ring. One around a pole does not return to its start, so it is led over the pole."""
    if abs(ring[-1, 0] - ring[0, 0]) < WORLD / 2:
        return ring
    pole = 90.0 if ring[:, 1].mean() > 0 else -90.0
    over = np.vstack([ring[-1], ring[0], ring[0]])
    over[:2, 1] = pole
    return np.vstack([ring, over])


def _beside(hole: Floats, shell: Floats) -> Floats:
    """Move a hole by a whole turn if it was unwrapped to another turn than its shell."""
    low, high = shell[:, 0].min(), shell[:, 0].max()
    moved = hole.copy()
    for turn in (0, 1, -1):
        if low <= hole[:, 0].min() + WORLD * turn and hole[:, 0].max() + WORLD * turn <= high:
            moved[:, 0] += WORLD * turn
            break
    return moved
