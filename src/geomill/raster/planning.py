"""Computes the output grid, and the strategy of reading the source."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum

from rasterio._err import CPLE_BaseError
from rasterio.crs import CRS
from rasterio.enums import Compression
from rasterio.errors import CRSError
from rasterio.io import DatasetReader
from rasterio.vrt import WarpedVRT
from rasterio.warp import transform_bounds

from geomill.datasets.refusals import refused
from geomill.domain.access.confidential import without_places
from geomill.domain.crs import EXAMPLES, is_crs
from geomill.raster import inspection
from geomill.raster.grid import Grid, Tile, aligned
from geomill.raster.inspection import short_crs, transform_points
from geomill.raster.opening import MEGABYTE, bytes_per_pixel

SOURCE = "source"
MERCATOR_EDGE = 20_037_508.342789244
LARGEST_STRIP = 8 * MEGABYTE
"""Uncompressed bytes. A window of a striped file costs all strips that it touches."""


class Strategy(StrEnum):
    ONE_PASS = "one_pass"  # noqa: S105  not a password
    TWO_PASS = "two_pass"  # noqa: S105


@dataclass(frozen=True)
class Layout:
    strategy: Strategy
    reason: str


def target_crs(dataset: DatasetReader, requested: str) -> CRS:
    if requested == SOURCE:
        return dataset.crs
    if not is_crs(requested):
        raise refused(
            "bad_target_crs", f"target_crs {requested[:80]!r} is not a CRS: write it as {EXAMPLES}, or as '{SOURCE}'"
        )
    try:
        return CRS.from_user_input(requested)
    except CRSError as error:
        raise refused(
            "bad_target_crs", f"the target CRS {requested[:80]!r} is unknown: {without_places(str(error))}"
        ) from error


def output_grid(dataset: DatasetReader, requested_crs: str) -> tuple[Grid, list[str]]:
    """Return the grid, and warnings. The grid is the source's own if no warping is needed."""
    target = target_crs(dataset, requested_crs)
    if keeps_grid(dataset, target):
        grid = Grid(
            crs=short_crs(dataset.crs),
            transform=tuple(dataset.transform[:6]),
            width=dataset.width,
            height=dataset.height,
        )
        return grid, []
    _refuse_poles(dataset, target)
    grid, warnings = _warped_grid(dataset, target)
    scale = (grid.width / dataset.width, grid.height / dataset.height)
    return grid.model_copy(update={"scale": scale}), warnings


def _warped_grid(dataset: DatasetReader, target: CRS) -> tuple[Grid, list[str]]:
    if not dataset.crs.is_geographic and inspection.crosses_antimeridian(inspection.geographic_perimeter(dataset)[0]):
        return _across_antimeridian(dataset, target)
    with WarpedVRT(dataset, crs=target) as suggested:
        bounds, resolution = tuple(suggested.bounds), suggested.transform.a
    bounds, warnings = _inside(target, bounds)
    return aligned(short_crs(target), bounds, resolution), warnings


def keeps_grid(dataset: DatasetReader, target: CRS) -> bool:
    step = dataset.transform
    return dataset.crs == target and not step.b and not step.d and step.a > 0 > step.e


def _refuse_poles(dataset: DatasetReader, target: CRS) -> None:
    if (target.is_geographic or _is_web_mercator(target)) and inspection.contains_pole(dataset):
        raise refused(
            "covers_pole",
            f"the raster covers a pole, which cannot be shown in {short_crs(target)[:20]}: "
            "use target_crs 'source' or a polar CRS, such as EPSG:3413",
        )


def _across_antimeridian(dataset: DatasetReader, target: CRS) -> tuple[Grid, list[str]]:
    """Return a grid across the antimeridian. Longitudes continue beyond 180°; Web Mercator ends there."""
    if _is_web_mercator(target):
        raise refused(
            "crosses_antimeridian",
            "the raster crosses the antimeridian, where EPSG:3857 ends: use target_crs 'EPSG:4326' or 'source'",
        )
    if not target.is_geographic:
        with WarpedVRT(dataset, crs=target) as suggested:
            return aligned(short_crs(target), tuple(suggested.bounds), suggested.transform.a), []
    longitudes, latitudes = transform_points(dataset.crs, target, *inspection.perimeter(dataset, steps=400))
    turned = [x % 360 for x in longitudes]
    corners = [(turned[i], latitudes[i]) for i in (0, 800)]
    diagonal = math.dist(*corners) / math.hypot(dataset.width, dataset.height)
    bounds = (min(turned), min(latitudes), max(turned), max(latitudes))
    return aligned(short_crs(target), bounds, diagonal), [
        "the raster crosses the antimeridian: longitudes of the output continue beyond 180°"
    ]


def _is_web_mercator(crs: CRS) -> bool:
    return bool(crs == CRS.from_epsg(3857))


def _inside(target: CRS, bounds: tuple[float, ...]) -> tuple[tuple[float, float, float, float], list[str]]:
    """Clip bounds to the extent of Web Mercator, which has an edge. Returns warnings too."""
    left, bottom, right, top = bounds
    if not _is_web_mercator(target):
        return (left, bottom, right, top), []
    edge = MERCATOR_EDGE
    inside = (max(left, -edge), max(bottom, -edge), min(right, edge), min(top, edge))
    cut = bottom < -edge * 1.0001 or top > edge * 1.0001
    return inside, ["data beyond 85.06° of latitude was cut off"] if cut else []


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
    corners = [~dataset.transform @ (x, y) for x in (box[0], box[2]) for y in (box[1], box[3])]
    if not all(math.isfinite(value) for corner in corners for value in corner):
        return 0, 0, dataset.width, dataset.height
    first = max(math.floor(min(c for c, _ in corners)) - overlap, 0)
    last = min(math.ceil(max(c for c, _ in corners)) + overlap, dataset.width)
    highest = max(math.floor(min(r for _, r in corners)) - overlap, 0)
    lowest = min(math.ceil(max(r for _, r in corners)) + overlap, dataset.height)
    return (first, highest, last - first, lowest - highest) if first < last and highest < lowest else None
