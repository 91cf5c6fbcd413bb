"""What one request may ask for, so that none can take the memory of the process."""

from __future__ import annotations

from collections.abc import Iterator

from starlette.requests import Request

from geomill.errors import InputError, Problem

LARGEST_SIDE = 2048
"""Pixels of a picture, each way."""
LARGEST_BUFFER = 64
MOST_BANDS = 16
LONGEST_EXPRESSION = 500
MOST_FEATURES = 100
MOST_TILES = 256
"""Files of a mosaic that one picture is made from."""
MOST_SCENES = 64
"""Rasters of a series that one picture is made from; what lies below them is seen in the overview."""
AT_ONCE = 16
"""Requests for pixels; the others wait."""

_LARGEST = {
    "width": LARGEST_SIDE,
    "height": LARGEST_SIDE,
    "max_size": LARGEST_SIDE,
    "tilesize": LARGEST_SIDE,
    "buffer": LARGEST_BUFFER,
    "padding": LARGEST_BUFFER,
    "cover_scale": 20,
    "histogram_bins": 1000,
}


def check(request: Request) -> None:
    if problems := list(_problems(request)):
        raise InputError(f"the request is wrong: {problems[0]}", problems=problems)


def _problems(request: Request) -> Iterator[Problem]:
    query = request.query_params
    for name, largest in _LARGEST.items():
        for value in (request.path_params.get(name), *query.getlist(name)):
            if value is not None and _number(value) > largest:
                yield Problem(name, f"must be at most {largest}, not {str(value)[:20]}")
    if len(query.getlist("bidx")) > MOST_BANDS:
        yield Problem("bidx", f"must be at most {MOST_BANDS} bands, not {len(query.getlist('bidx'))}")
    for name in ("expression", "color_formula"):
        if len(query.get(name, "")) > LONGEST_EXPRESSION:
            yield Problem(name, f"must have at most {LONGEST_EXPRESSION} characters")
    if len(query.get("expression", "").split(";")) > MOST_BANDS:
        yield Problem("expression", f"must be at most {MOST_BANDS} expressions")


def _number(text: object) -> float:
    """What is no number is refused by who wants one."""
    try:
        return float(str(text))
    except ValueError:
        return 0.0


class Countdown:
    """Of the features of one request."""

    def __init__(self) -> None:
        self._left = MOST_FEATURES

    def take(self) -> None:
        self._left -= 1
        if self._left < 0:
            raise InputError(f"the request has more than {MOST_FEATURES} features", remedy="ask in parts")
