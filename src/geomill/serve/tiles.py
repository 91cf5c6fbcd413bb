"""Checks that a grid has a tile. morecantile invents levels that a grid does not have, down to z = 999999999999."""

from __future__ import annotations

from functools import lru_cache

from fastapi import Request
from morecantile import tms as grids

from geomill.errors import InputError, NotFoundError, Problem

GRID = "tileMatrixSetId"


def check_tile(request: Request) -> None:
    """Raise `NotFoundError` if the path names a tile that its grid does not have."""
    path = request.path_params
    if not {GRID, "z", "x", "y"} <= path.keys():
        return
    sizes = _sizes(str(path[GRID]))
    zoom, column, row = (_whole(name, path[name]) for name in ("z", "x", "y"))
    width, height = sizes.get(zoom, (0, 0))
    if sizes and not (0 <= column < width and 0 <= row < height):
        raise NotFoundError(
            f"the grid {path[GRID]} has no tile {zoom}/{column}/{row}",
            remedy=f"use a level from {min(sizes)} to {max(sizes)}",
        )


@lru_cache(maxsize=100)
def _sizes(grid: str) -> dict[int, tuple[int, int]]:
    """Return columns and rows of each level. Empty for an unknown grid, which the route refuses."""
    if grid not in grids.list():
        return {}
    return {int(level.id): (level.matrixWidth, level.matrixHeight) for level in grids.get(grid).tileMatrices}


def _whole(name: str, value: object) -> int:
    text = str(value)
    if not text.removeprefix("-").isdecimal() or len(text) > 20:
        problem = Problem(name, f"must be a whole number, not {text[:20]!r}")
        raise InputError(f"the request is wrong: {problem}", problems=[problem])
    return int(text)
