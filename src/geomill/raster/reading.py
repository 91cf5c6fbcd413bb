"""The strategy of reading a source: which of its pixels a tile needs, and whether windows can be read directly."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum

from rasterio._err import CPLE_BaseError
from rasterio.crs import CRS
from rasterio.enums import Compression
from rasterio.io import DatasetReader
from rasterio.warp import transform_bounds

from geomill.datasets.refusals import refused
from geomill.domain.access.confidential import without_places
from geomill.raster.grid import Grid, Tile
from geomill.raster.opening import MEGABYTE, bytes_per_pixel

LARGEST_STRIP = 8 * MEGABYTE
"""Uncompressed bytes. A window of a striped file costs all strips that it touches."""


class Strategy(StrEnum):
    ONE_PASS = "one_pass"  # noqa: S105  not a password
    TWO_PASS = "two_pass"  # noqa: S105


@dataclass(frozen=True)
class Layout:
    strategy: Strategy
    reason: str


def layout(dataset: DatasetReader, *, remote: bool) -> Layout:
    """Return the reading strategy. Windows can be read directly from tiles and small strips; from others each window
    would read far too much."""
    height, width = dataset.block_shapes[0]
    if width < dataset.width or dataset.profile.get("tiled") or dataset.driver != "GTiff":
        return Layout(Strategy.ONE_PASS, f"the source has tiles of {width} by {height}: windows are read directly")
    if remote:
        return Layout(Strategy.TWO_PASS, "the source is remote and striped: it is copied once, then cut")
    compressed = dataset.compression not in (None, Compression.none)
    strip = (dataset.height if is_one_strip(dataset) else height) * width * bytes_per_pixel(dataset)
    if compressed and strip > LARGEST_STRIP:
        return Layout(
            Strategy.TWO_PASS, f"a strip of the source has {strip:,} bytes uncompressed: it is cut once, row by row"
        )
    return Layout(Strategy.ONE_PASS, f"the source is local, with strips of {height} rows: windows are read directly")


def is_one_strip(dataset: DatasetReader) -> bool:
    """Whether the file is one strip. GDAL shows a large strip as single rows but can decompress them only in order, so
    reading backwards starts again from the top."""
    first, second = (dataset.get_tag_item(f"BLOCK_OFFSET_0_{row}", "TIFF", bidx=1) for row in (0, 1))
    return first is not None and second is None


def source_window(dataset: DatasetReader, grid: Grid, tile: Tile, overlap: int) -> tuple[int, int, int, int] | None:
    """Return the source pixels that a tile needs, with a margin: column, row, width, height. None if it needs none."""
    crs = CRS.from_user_input(grid.crs)
    left, bottom, right, top = grid.bounds_of(tile)
    try:
        box = transform_bounds(crs, dataset.crs, left, bottom, right, top, densify_pts=41)
    except CPLE_BaseError as error:
        raise refused(
            "crs_unusable", f"{tile.tile_id} cannot be placed in the source: {without_places(str(error))}"
        ) from error
    boxes = _turned(box) if dataset.crs.is_geographic and crs != dataset.crs else [box]
    windows = [window for turned in boxes if (window := _pixels(dataset, turned, overlap))]
    if not windows:
        return None
    first, highest = min(window[0] for window in windows), min(window[1] for window in windows)
    last, lowest = max(window[2] for window in windows), max(window[3] for window in windows)
    return first, highest, last - first, lowest - highest


def _turned(box: tuple[float, ...]) -> list[tuple[float, ...]]:
    """Return the box at all turns of the globe at which a source in degrees may lie."""
    west, south, east, north = box
    east = east + 360 if east < west else east
    return [(west + turn, south, east + turn, north) for turn in (-360, 0, 360)]


def _pixels(dataset: DatasetReader, box: tuple[float, ...], overlap: int) -> tuple[int, int, int, int] | None:
    """Return first column, first row, end column and end row."""
    corners = [~dataset.transform @ (x, y) for x in (box[0], box[2]) for y in (box[1], box[3])]
    if not all(math.isfinite(value) for corner in corners for value in corner):
        return 0, 0, dataset.width, dataset.height
    first = max(math.floor(min(c for c, _ in corners)) - overlap, 0)
    last = min(math.ceil(max(c for c, _ in corners)) + overlap, dataset.width)
    highest = max(math.floor(min(r for _, r in corners)) - overlap, 0)
    lowest = min(math.ceil(max(r for _, r in corners)) + overlap, dataset.height)
    return (first, highest, last, lowest) if first < last and highest < lowest else None
