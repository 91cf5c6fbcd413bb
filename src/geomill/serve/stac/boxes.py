"""Boxes of a search that cross the antimeridian."""

from __future__ import annotations

import math
from typing import Any


def with_turned_box(search: dict[str, Any]) -> dict[str, Any]:
    """Return the search with a geometry in place of a box that crosses the antimeridian.

    Such a box has a west that is greater than its east, or reaches beyond 180°. PostGIS would take the first for its
    complement, and find nothing in the part of the second that lies beyond.
    """
    bbox = search.get("bbox")
    if not bbox or len(bbox) != 4 or (-180 <= bbox[0] <= bbox[2] <= 180):
        return search
    west, south, east, north = bbox
    boxes = [[_ring(left, south, right, north)] for left, right in _turned(west, east)]
    place = {"type": "MultiPolygon", "coordinates": boxes}
    return {**{key: value for key, value in search.items() if key != "bbox"}, "intersects": place}


def _turned(west: float, east: float) -> list[tuple[float, float]]:
    """Return the ranges within -180 to 180 of a range of longitudes."""
    if east - west >= 360:
        return [(-180.0, 180.0)]
    west -= 360 * math.floor((west + 180) / 360)
    east -= 360 * math.ceil((east - 180) / 360)
    return [(west, east)] if west <= east else [(west, 180.0), (-180.0, east)]


def _ring(west: float, south: float, east: float, north: float) -> list[list[float]]:
    return [[west, south], [east, south], [east, north], [west, north], [west, south]]
