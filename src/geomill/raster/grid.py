"""The output grid: one lattice of pixels for a whole raster, with tiles as integer windows of it.

A tile stores no extent of its own that could be rounded. It has a column, a row, a width and a height, and its
georeference is computed from the grid's. So tiles abut without gaps or overlaps, and cutting a raster differently gives
the same pixels.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from affine import Affine
from pydantic import BaseModel

from geomill.domain.crs import CrsText

BLOCK = 512
CELL = 1024
"""Width and height in pixels of a piece that is warped at once."""
LARGEST_TILE = 8192
SMALLEST_TILE = 512
TILE_BYTES = LARGEST_TILE * LARGEST_TILE * 3
"""The maximum size of a tile's pixels: 8192 by 8192 in RGB. A process needs about three times as much memory."""
ENOUGH_TILES = 32
"""With fewer tiles than this, tiles are made smaller, so that several processes share the work evenly."""
BATCH_BYTES = 96 * 1024 * 1024
"""The maximum size of a task's pixels: some seconds of work."""
BATCH_SHARE = 16
"""A task gets at most this fraction (1/n) of the remaining work. Tasks get smaller towards the end, so that all
processes finish together."""


class Window(BaseModel, frozen=True):
    """A window of pixels within a grid."""

    column: int
    row: int
    width: int
    height: int

    @property
    def end_column(self) -> int:
        return self.column + self.width

    @property
    def end_row(self) -> int:
        return self.row + self.height


class Tile(Window, frozen=True):
    x: int
    y: int

    @property
    def tile_id(self) -> str:
        return f"tile_x{self.x}_y{self.y}"


class Grid(BaseModel, frozen=True):
    crs: CrsText
    transform: tuple[float, float, float, float, float, float]
    width: int
    height: int
    scale: tuple[float, float] = (1.0, 1.0)
    """Pixels of the grid per pixel of the source, across and down."""

    @property
    def affine(self) -> Affine:
        return Affine(*self.transform)

    @property
    def whole(self) -> Window:
        return Window(column=0, row=0, width=self.width, height=self.height)

    @property
    def bounds(self) -> tuple[float, float, float, float]:
        return self.bounds_of(self.whole)

    def affine_of(self, window: Window) -> Affine:
        return self.affine @ Affine.translation(window.column, window.row)

    def bounds_of(self, window: Window) -> tuple[float, float, float, float]:
        """Return left, bottom, right and top. Neighbours get exactly the same number for their common edge."""
        left, top = self.affine @ (window.column, window.row)
        right, bottom = self.affine @ (window.end_column, window.end_row)
        return left, bottom, right, top

    def tiles(self, size: int) -> Iterator[Tile]:
        """Yield the tiles row by row, from the top left."""
        for y, row in enumerate(range(0, self.height, size)):
            for x, column in enumerate(range(0, self.width, size)):
                width, height = min(size, self.width - column), min(size, self.height - row)
                yield Tile(x=x, y=y, column=column, row=row, width=width, height=height)

    def cells(self, window: Window, size: int) -> Iterator[Window]:
        """Yield the cells of the given size that the window touches. Cells do not depend on the window."""
        for row in range(window.row // size * size, window.end_row, size):
            for column in range(window.column // size * size, window.end_column, size):
                width, height = min(size, self.width - column), min(size, self.height - row)
                yield Window(column=column, row=row, width=width, height=height)


def aligned(crs: str, bounds: tuple[float, float, float, float], resolution: float) -> Grid:
    """Return the grid that covers the bounds, with its origin at a multiple of the resolution. So all rasters of one
    resolution share one lattice."""
    left, bottom, right, top = bounds
    first, last = math.floor(left / resolution + 1e-9), math.ceil(right / resolution - 1e-9)
    highest, lowest = math.ceil(top / resolution - 1e-9), math.floor(bottom / resolution + 1e-9)
    return Grid(
        crs=crs,
        transform=(resolution, 0.0, first * resolution, 0.0, -resolution, highest * resolution),
        width=max(last - first, 1),
        height=max(highest - lowest, 1),
    )


def tile_size(grid: Grid, bytes_per_pixel: int) -> int:
    """Return the tile size: as large as memory allows, in whole cells, but small enough to give many tiles."""
    side = math.isqrt(TILE_BYTES // bytes_per_pixel) // CELL * CELL
    side = min(max(side, SMALLEST_TILE), LARGEST_TILE)
    while side > 2 * CELL and _tiles(grid, side) < ENOUGH_TILES:
        side = max(side // 2 // CELL * CELL, 2 * CELL)
    return side


def _tiles(grid: Grid, side: int) -> int:
    return math.ceil(grid.width / side) * math.ceil(grid.height / side)


def batches(tiles: Sequence[Tile], bytes_per_pixel: int) -> list[list[Tile]]:
    """Group neighbouring tiles, because they read the same blocks of the source."""
    sizes = [tile.width * tile.height * bytes_per_pixel for tile in tiles]
    groups: list[list[Tile]] = []
    left, room = sum(sizes), 0
    for tile, size in zip(tiles, sizes, strict=True):
        if size > room:
            groups.append([])
            room = min(BATCH_BYTES, left // BATCH_SHARE)
        groups[-1].append(tile)
        room -= size
        left -= size
    return groups
