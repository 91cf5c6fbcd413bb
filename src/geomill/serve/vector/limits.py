"""Limits of one request for features."""

from __future__ import annotations

import math
from collections.abc import Iterator

from starlette.requests import Request

from geomill.errors import InputError, Problem
from geomill.serve.tiles import check_tile

LARGEST_ZOOM = 30
MOST = {"ids": 1_000, "properties": 500, "sortby": 20}


def check(request: Request) -> None:
    check_tile(request)
    if problems := list(_problems(request)):
        raise InputError(f"the request is wrong: {problems[0]}", problems=problems)


def _problems(request: Request) -> Iterator[Problem]:
    query = request.query_params
    for name, most in MOST.items():
        number = sum(value.count(",") + 1 for value in query.getlist(name))
        if number > most:
            yield Problem(name, f"must have at most {most} entries, not {number}")
    for name in ("minzoom", "maxzoom"):
        for value in query.getlist(name):
            if not 0 <= _number(value) <= LARGEST_ZOOM:
                yield Problem(name, f"must be from 0 to {LARGEST_ZOOM}, not {value[:20]}")
    for value in query.getlist("simplify"):
        if not 0 <= _number(value) < math.inf:
            yield Problem("simplify", f"must be a number of at least 0, not {value[:20]}")


def _number(text: str) -> float:
    """Return the number, or 0 if the text is not a number; the route refuses it later."""
    try:
        return float(text)
    except ValueError:
        return 0.0
