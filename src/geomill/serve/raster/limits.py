"""Limits of one request, so that none can exhaust the memory of the process."""

from __future__ import annotations

import math
from collections.abc import Iterator

from starlette.requests import Request

from geomill.errors import InputError, Problem
from geomill.serve.tiles import check_tile

LARGEST_SIDE = 2048
"""The maximum width and height of an image in pixels."""
LARGEST_BUFFER = 64
MOST_BANDS = 16
LONGEST_EXPRESSION = 500
MOST_FEATURES = 100
MOST_TILES = 256
"""The maximum number of a mosaic's files that one image is read from."""
MOST_SCENES = 64
"""The maximum number of scenes that one image is read from. Below them the overview is shown."""
AT_ONCE = 16
"""The maximum number of concurrent requests for pixels. The others wait."""

LARGEST_COORDINATE = 1e9
_COORDINATES = {"lon": 360, "minx": 360, "maxx": 360, "lat": 90, "miny": 90, "maxy": 90}
"""Degrees. Longitudes count modulo 360, so that a box may cross the antimeridian."""
_FINITE = ("rescale", "p", "c", "histogram_range")
LARGEST_ZOOM = 30
"""The maximum zoom. TiTiler iterates over all levels between the requested minimum and maximum."""
_RANGES = {
    "width": (1, LARGEST_SIDE),
    "height": (1, LARGEST_SIDE),
    "max_size": (1, LARGEST_SIDE),
    "tilesize": (1, LARGEST_SIDE),
    "buffer": (-LARGEST_BUFFER, LARGEST_BUFFER),
    "padding": (0, LARGEST_BUFFER),
    "cover_scale": (0, 20),
    "minzoom": (0, LARGEST_ZOOM),
    "maxzoom": (0, LARGEST_ZOOM),
    "tile_scale": (1, 8),
    "histogram_bins": (1, 1000),
}


def check(request: Request) -> None:
    check_tile(request)
    if problems := list(_problems(request)):
        raise InputError(f"the request is wrong: {problems[0]}", problems=problems)


def _problems(request: Request) -> Iterator[Problem]:
    query = request.query_params
    yield from _places(request)
    yield from _numbers(request)
    if len(query.getlist("bidx")) > MOST_BANDS:
        yield Problem("bidx", f"must be at most {MOST_BANDS} bands, not {len(query.getlist('bidx'))}")
    for name in ("expression", "color_formula"):
        if len(query.get(name, "")) > LONGEST_EXPRESSION:
            yield Problem(name, f"must have at most {LONGEST_EXPRESSION} characters")
    if len(query.get("expression", "").split(";")) > MOST_BANDS:
        yield Problem("expression", f"must be at most {MOST_BANDS} expressions")


def _numbers(request: Request) -> Iterator[Problem]:
    query = request.query_params
    for name in _FINITE:
        for number in ",".join(query.getlist(name)).split(","):
            if not math.isfinite(_number(number)):
                yield Problem(name, f"must be finite, not {number[:20]}")
    for name, (least, largest) in _RANGES.items():
        for value in (request.path_params.get(name), *query.getlist(name)):
            if value is not None and not least <= _number(value, least) <= largest:
                yield Problem(name, f"must be from {least} to {largest}, not {str(value)[:20]}")


def _places(request: Request) -> Iterator[Problem]:
    """Check points and boxes in the path. They are in degrees unless the caller names another system."""
    path = request.path_params
    degrees = request.query_params.get("coord_crs") is None
    for name, largest in _COORDINATES.items():
        if name in path and not abs(_number(path[name])) <= (largest if degrees else LARGEST_COORDINATE):
            yield Problem(name, f"must be a number of at most {largest} degrees, not {str(path[name])[:20]}")
    for least, most in (("minx", "maxx"), ("miny", "maxy")):
        if least in path and most in path and not _number(path[least]) < _number(path[most], 1):
            yield Problem(most, f"must be greater than {least}")


def _number(text: object, otherwise: float = 0.0) -> float:
    """Return the number, or `otherwise` if the text is not a number; the route refuses it later."""
    try:
        return float(str(text))
    except ValueError:
        return otherwise


class Countdown:
    """Counts the features of one request."""

    def __init__(self) -> None:
        self._left = MOST_FEATURES

    def take(self) -> None:
        self._left -= 1
        if self._left < 0:
            raise InputError(f"the request has more than {MOST_FEATURES} features", remedy="split the request")
