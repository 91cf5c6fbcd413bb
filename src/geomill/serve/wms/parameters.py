"""Parameters of WMS requests. Their names are in any case, and axes come in the order of the version."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass

from rasterio.crs import CRS
from rasterio.errors import CRSError
from starlette.requests import Request

from geomill.serve.vector.crs import axes, named
from geomill.serve.wms.errors import ServiceException

LARGEST_SIDE = 2048
MOST_LAYERS = 8
MOST_PARAMETERS = 60
VERSIONS = ("1.3.0", "1.1.1")
PICTURES = {"image/png": "PNG", "image/jpeg": "JPEG"}
INFO = ("application/json", "text/plain")
_COLOR = re.compile(r"0x[0-9a-fA-F]{6}")
Bounds = tuple[float, float, float, float]


class Query:
    """The parameters of a request, by names in capitals."""

    def __init__(self, request: Request) -> None:
        items = request.query_params.multi_items()
        if len(items) > MOST_PARAMETERS:
            raise ServiceException(f"a request has at most {MOST_PARAMETERS} parameters")
        self._values: Mapping[str, str] = {name.upper(): value for name, value in items}
        self.version = self._version()

    def get(self, name: str, default: str = "") -> str:
        return self._values.get(name, default)

    def require(self, name: str) -> str:
        if not self._values.get(name):
            raise ServiceException(f"the parameter {name} is missing", "MissingParameterValue", name)
        return self._values[name]

    def whole(self, name: str, largest: int, smallest: int = 1) -> int:
        text = self.require(name)
        if not re.fullmatch(r"[0-9]{1,9}", text) or not smallest <= int(text) <= largest:
            raise ServiceException(f"{name} must be from {smallest} to {largest}, not {text[:20]!r}", "", name)
        return int(text)

    def choice(self, name: str, choices: Mapping[str, str] | tuple[str, ...], default: str) -> str:
        value = self.get(name) or default
        plain = value.partition(";")[0].strip().lower()
        if plain not in choices:
            raise ServiceException(f"{name} must be one of {', '.join(choices)}", "InvalidFormat", name)
        return plain

    def _version(self) -> str:
        """Return the version to answer in: the one asked for, or the nearest that there is."""
        return "1.1.1" if (self._values.get("VERSION") or self._values.get("WMTVER") or "1.3.0") < "1.2" else "1.3.0"


@dataclass(frozen=True, slots=True)
class MapRequest:
    """The part of the world that a picture shows. `bounds` are east before north, whatever the version."""

    layers: tuple[str, ...]
    styles: tuple[str, ...]
    crs: CRS
    bounds: Bounds
    width: int
    height: int
    transparent: bool
    background: tuple[int, int, int]


def map_request(query: Query, layers_name: str = "LAYERS") -> MapRequest:
    layers = tuple(query.require(layers_name).split(","))
    styles = tuple(query.get("STYLES").split(",")) if query.get("STYLES") else ("",) * len(layers)
    if len(layers) > MOST_LAYERS:
        raise ServiceException(f"a picture has at most {MOST_LAYERS} layers", "", layers_name)
    if len(styles) != len(layers):
        raise ServiceException("STYLES must have as many names as LAYERS, or be empty", "StyleNotDefined", "STYLES")
    crs, swapped = _system(query)
    color = query.get("BGCOLOR", "0xFFFFFF")
    if not _COLOR.fullmatch(color):
        raise ServiceException("BGCOLOR must be like 0xFFFFFF", "", "BGCOLOR")
    return MapRequest(
        layers,
        styles,
        crs,
        _bounds(query, swapped=swapped),
        query.whole("WIDTH", LARGEST_SIDE),
        query.whole("HEIGHT", LARGEST_SIDE),
        query.get("TRANSPARENT", "FALSE").upper() == "TRUE",
        (int(color[2:4], 16), int(color[4:6], 16), int(color[6:8], 16)),
    )


def _system(query: Query) -> tuple[CRS, bool]:
    """Return the reference system, and whether north comes first in BBOX, as version 1.3.0 has it in EPSG:4326."""
    name = "CRS" if query.version == "1.3.0" else "SRS"
    code = query.get(name) or query.require("SRS" if name == "CRS" else "CRS")
    if code.upper() in ("CRS:84", "OGC:CRS84"):
        return CRS.from_epsg(4326), False
    uri = named(code.upper())
    system = axes(uri)
    if system is None:
        message = f"{code[:60]!r} is not a reference system of this server: use EPSG:3857, EPSG:4326 or CRS:84"
        raise ServiceException(message, "InvalidCRS" if name == "CRS" else "InvalidSRS", name)
    try:
        crs = CRS.from_epsg(system.srid)
    except CRSError:
        raise ServiceException(f"{code[:60]!r} is not known", "InvalidCRS" if name == "CRS" else "InvalidSRS") from None
    return crs, system.swapped and query.version == "1.3.0"


def _bounds(query: Query, *, swapped: bool) -> Bounds:
    text = query.require("BBOX")
    try:
        numbers = [float(number) for number in text.split(",")]
    except ValueError:
        numbers = []
    if len(numbers) != 4 or not all(math.isfinite(number) and abs(number) < 1e12 for number in numbers):
        raise ServiceException(f"BBOX must have four numbers, not {text[:80]!r}", "", "BBOX")
    if swapped:
        numbers = [numbers[1], numbers[0], numbers[3], numbers[2]]
    west, south, east, north = numbers
    if west >= east or south >= north:
        raise ServiceException("BBOX must have the smaller numbers first", "", "BBOX")
    return west, south, east, north
