"""Coordinates in other reference systems than degrees: `crs` and `bbox-crs` of OGC API Features, part 2.

TiPG ignores both, and a box in metres would be read as degrees. Axes are in the order of the system's definition: in
EPSG:4326, latitude is first.
"""

from __future__ import annotations

import math
import re
from functools import lru_cache
from typing import Annotated, NamedTuple

from fastapi import Query
from pyproj import CRS, Transformer
from pyproj.exceptions import CRSError
from tipg.dependencies import bbox_query

from geomill.errors import InputError, Problem

CRS84 = "http://www.opengis.net/def/crs/OGC/1.3/CRS84"
EVERYWHERE = (4326, 3857)
"""Every collection can be had in these; and in the one that its table is in."""
_DEGREES = (CRS84, f"[{CRS84}]", "OGC:CRS84", "[OGC:CRS84]")
_EPSG = re.compile(r"\[?(?:https?://www\.opengis\.net/def/crs/EPSG/[0-9.]+/|EPSG:)([0-9]{4,6})]?", re.IGNORECASE)


class Axes(NamedTuple):
    srid: int
    swapped: bool
    """North comes first."""


def wanted(field: str, text: str | None) -> Axes | None:
    """Nothing means degrees, longitude first."""
    if text is None or text in _DEGREES:
        return None
    match = _EPSG.fullmatch(text)
    found = _axes(int(match[1])) if match else None
    if found is None:
        raise _wrong(field, f"{text[:100]!r} is no reference system that is known here; use {CRS84} or a URI of EPSG")
    return found


def answered(text: str | None, srid: int | None) -> Axes | None:
    """In what a collection of this `srid` answers."""
    found = wanted("crs", text)
    if found and found.srid not in (*EVERYWHERE, srid):
        offered = ", ".join(f"EPSG:{one}" for one in dict.fromkeys((*EVERYWHERE, srid)) if one)
        raise _wrong("crs", f"the collection is not to be had in EPSG:{found.srid}; use {CRS84} or one of {offered}")
    return found


async def box_in_degrees(
    bbox: Annotated[str | None, Query(description="Spatial Filter.")] = None,
    bbox_crs: Annotated[
        str | None, Query(alias="bbox-crs", description="Of `bbox`; degrees if it is not given.")
    ] = None,
) -> list[float] | None:
    """Takes the place of TiPG's own reading of `bbox`."""
    axes = wanted("bbox-crs", bbox_crs)
    if axes is None or not bbox:
        found: list[float] | None = bbox_query(bbox)
        return found
    bounds = [float(one) for one in bbox.split(",")]
    if len(bounds) != 4:
        raise _wrong("bbox", f"{bbox[:100]!r} has not four numbers, which it needs with bbox-crs")
    west, south, east, north = (bounds[place] for place in ((1, 0, 3, 2) if axes.swapped else range(4)))
    degrees = _to_degrees(axes.srid).transform_bounds(west, south, east, north)
    if not all(math.isfinite(one) for one in degrees):
        raise _wrong("bbox", f"{bbox[:100]!r} does not lie in EPSG:{axes.srid}")
    return list(degrees)


@lru_cache(maxsize=100)
def _axes(srid: int) -> Axes | None:
    try:
        axis = CRS.from_epsg(srid).axis_info[0]
    except (CRSError, IndexError):
        return None
    return Axes(srid, axis.direction == "north")


@lru_cache(maxsize=100)
def _to_degrees(srid: int) -> Transformer:
    return Transformer.from_crs(srid, 4326, always_xy=True)


def _wrong(field: str, message: str) -> InputError:
    problem = Problem(field, message)
    return InputError(f"the request is wrong: {problem}", problems=[problem])
