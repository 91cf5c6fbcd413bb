"""Coordinates in reference systems other than degrees: OGC API Features, part 2.

TiPG ignores `crs` and `bbox-crs` and would read a box in metres as degrees. Axes are in the order of the system's
definition: in EPSG:4326, latitude is first.
"""

from __future__ import annotations

import math
import re
from functools import lru_cache
from typing import Annotated, NamedTuple

from fastapi import Query
from pyproj import CRS, Transformer
from pyproj.exceptions import CRSError, ProjError
from tipg.dependencies import bbox_query

from geomill.errors import InputError, Problem, UnknownReferenceSystem

CONFORMANCE = "http://www.opengis.net/spec/ogcapi-features-2/1.0/conf/crs"
CRS84 = "http://www.opengis.net/def/crs/OGC/1.3/CRS84"
CRS84_HEIGHT = "http://www.opengis.net/def/crs/OGC/0/CRS84h"
_EPSG = "http://www.opengis.net/def/crs/EPSG/0/"
EVERYWHERE = (CRS84, f"{_EPSG}4326", f"{_EPSG}3857")
"""Systems that every collection offers, in addition to that of its table."""
DEGREES = {CRS84: CRS84, "OGC:CRS84": CRS84, CRS84_HEIGHT: CRS84_HEIGHT, "OGC:CRS84h": CRS84_HEIGHT}
_CODE = re.compile(r"(?:https?://www\.opengis\.net/def/crs/EPSG/[0-9.]+/|EPSG:)([0-9]{4,6})", re.IGNORECASE)


class Axes(NamedTuple):
    srid: int
    swapped: bool
    """Whether northing or latitude comes first."""


class Systems(NamedTuple):
    """Reference systems of a collection. `obeyed` is false if a column is called `crs`: the parameter then filters by
    it."""

    srid: int | None
    heights: bool = False
    obeyed: bool = True

    @property
    def default(self) -> str:
        return CRS84_HEIGHT if self.heights else CRS84

    @property
    def storage(self) -> str | None:
        """Return the system of the table. PostGIS stores degrees with longitude first, unlike EPSG:4326."""
        if self.srid is None or self.srid == 4326:
            return self.default
        return f"{_EPSG}{self.srid}" if self.obeyed and _axes(self.srid) else None

    @property
    def offered(self) -> list[str]:
        systems = (self.default, *EVERYWHERE, self.storage) if self.obeyed else (self.default,)
        return list(dict.fromkeys(system for system in systems if system))

    def chosen(self, text: str | None) -> str:
        if text is None or not self.obeyed:
            return self.default
        uri = named(text)
        if uri not in self.offered:
            raise _unknown("crs", text, f"one of {', '.join(self.offered)}")
        return uri


def named(text: str) -> str | None:
    """Return the URI of a system, or None if it is unknown."""
    text = text.removeprefix("[").removesuffix("]")
    code = _CODE.fullmatch(text)
    return f"{_EPSG}{int(code[1])}" if code else DEGREES.get(text.replace("https://", "http://"))


def axes(uri: str | None) -> Axes | None:
    """Return the axes of a system, or None for degrees with longitude first and for unknown systems."""
    return _axes(int(uri.removeprefix(_EPSG))) if uri and uri.startswith(_EPSG) else None


async def box_in_degrees(
    bbox: Annotated[str | None, Query(description="Spatial Filter.")] = None,
    bbox_crs: Annotated[
        str | None, Query(alias="bbox-crs", description="Reference system of `bbox`; degrees by default.")
    ] = None,
) -> list[float] | None:
    """Read `bbox` instead of TiPG."""
    uri = None if bbox_crs is None else named(bbox_crs)
    system = axes(uri)
    if bbox_crs is not None and system is None and uri not in DEGREES:
        raise _unknown("bbox-crs", bbox_crs, f"{CRS84} or a URI of EPSG, such as {EVERYWHERE[-1]}")
    if system is None or not bbox:
        box: list[float] | None = bbox_query(bbox)
        if box and not all(math.isfinite(corner) for corner in box):
            raise _wrong(f"{bbox[:100] if bbox else ''!r} must have only finite numbers")
        return box
    bounds = [float(number) for number in bbox.split(",")]
    if len(bounds) != 4:
        raise _wrong(f"{bbox[:100]!r} must have four numbers if bbox-crs is given")
    west, south, east, north = (bounds[place] for place in ((1, 0, 3, 2) if system.swapped else range(4)))
    degrees = _to_degrees(system.srid).transform_bounds(west, south, east, north)
    if not all(math.isfinite(number) for number in degrees):
        raise _wrong(f"{bbox[:100]!r} lies outside EPSG:{system.srid}")
    return list(degrees)


@lru_cache(maxsize=100)
def _axes(srid: int) -> Axes | None:
    """Return the axes of an EPSG code, or None.

    PostGIS orders axes by PROJ's rules for maps. The directions do not reveal that order, because both axes of a polar
    system point north. So one point is transformed in both orders.
    """
    try:
        system = CRS.from_epsg(srid)
        if not (system.is_geographic or system.is_projected):
            return None
        area = system.area_of_use
        place = (area.west + 0.3, area.south + 0.2) if area else (0.3, 0.2)
        x, y = Transformer.from_crs(4326, system, always_xy=True).transform(*place)
        first, second = Transformer.from_crs(4326, system).transform(place[1], place[0])
    except (CRSError, ProjError):
        return None
    return Axes(srid, (first, second) == (y, x))


@lru_cache(maxsize=100)
def _to_degrees(srid: int) -> Transformer:
    return Transformer.from_crs(srid, 4326, always_xy=True)


def _unknown(field: str, text: str, choices: str) -> UnknownReferenceSystem:
    problem = Problem(field, f"{text[:100]!r} is not a known reference system", f"use {choices}")
    return UnknownReferenceSystem(f"the request is wrong: {problem}", problems=[problem])


def _wrong(message: str) -> InputError:
    problem = Problem("bbox", message)
    return InputError(f"the request is wrong: {problem}", problems=[problem])
