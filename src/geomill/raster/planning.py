"""Chooses the target system of a raster, and computes the output grid.

The output has about as many pixels as the source: the size of its pixels is taken in the middle of the source, where a
pixel keeps its area. Projections stretch without limit towards their edges, so extents say nothing about resolution.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from rasterio.crs import CRS
from rasterio.errors import CRSError
from rasterio.io import DatasetReader

from geomill.datasets.refusals import refused
from geomill.domain.access.confidential import without_places
from geomill.domain.crs import EXAMPLES, is_crs
from geomill.raster.extent import (
    SMALLEST_LIST,
    Bounds,
    Placed,
    enclosed_pole,
    placed,
    sample_points,
    transform_points,
    unrolled_bounds,
)
from geomill.raster.grid import Grid, aligned
from geomill.raster.inspection import short_crs
from geomill.raster.tiers import Tier

AUTO, SOURCE = "auto", "source"
WEB_MERCATOR = CRS.from_epsg(3857)
RADIUS = 6_378_137.0
HIGHEST_LATITUDE = 85.0511287798066
"""The latitude at which the square map of Web Mercator ends."""
FEWEST, MOST = 0.25, 16
"""The bounds of the number of output pixels, in pixels of the source."""
ALWAYS_ALLOWED = 1_000_000
"""An output of so few pixels is never too large, for example that of a row of pixels that runs diagonally."""


def target_crs(dataset: DatasetReader, requested: str, tier: Tier = Tier.ANALYSIS) -> CRS:
    """Return the target system. `auto` is Web Mercator for pictures that it can show, else the source's own system."""
    if requested == AUTO:
        return WEB_MERCATOR if tier is Tier.VISUALIZATION and fits_web_mercator(dataset) else dataset.crs
    if requested == SOURCE:
        return dataset.crs
    if not is_crs(requested):
        raise refused(
            "bad_target_crs",
            f"target_crs {requested[:80]!r} is not a CRS: write it as {EXAMPLES}, or as '{SOURCE}' or '{AUTO}'",
        )
    try:
        return CRS.from_user_input(requested)
    except CRSError as error:
        raise refused(
            "bad_target_crs", f"the target CRS {requested[:80]!r} is unknown: {without_places(str(error))}"
        ) from error


def fits_web_mercator(dataset: DatasetReader) -> bool:
    """Whether Web Mercator shows all of the raster, up to strips beyond 85° of latitude on a map of the world."""
    west, south, east, north = unrolled_bounds(dataset)
    inside = south >= -HIGHEST_LATITUDE and north <= HIGHEST_LATITUDE
    return not enclosed_pole(dataset) and east <= 180 and (inside or east - west == 360)


def output_grid(dataset: DatasetReader, requested: str, tier: Tier = Tier.ANALYSIS) -> tuple[Grid, list[str]]:
    """Return the grid, and warnings that say what changes. The grid is the source's own if no warping is needed."""
    target = target_crs(dataset, requested, tier)
    if keeps_grid(dataset, target):
        return _own_grid(dataset), []
    _refuse_poles(dataset, target)
    bounds, warnings = _bounds(dataset, target)
    around_pole = target == WEB_MERCATOR and enclosed_pole(dataset)  # it stretches without limit towards the pole
    side = finest_side if around_pole else pixel_side
    grid = aligned(short_crs(target), bounds, side(dataset, target, bounds))
    share = _share_inside(dataset) if target == WEB_MERCATOR else 1.0
    _check_size(dataset, grid, share)
    scale = (grid.width / dataset.width, grid.height / dataset.height / share)
    return grid.model_copy(update={"scale": scale}), [*warnings, _change(dataset, grid)]


def keeps_grid(dataset: DatasetReader, target: CRS) -> bool:
    """Whether pixels are copied. Rows that are stored from south to north are copied in reverse order."""
    step = dataset.transform
    return dataset.crs == target and not step.b and not step.d and step.a > 0 and step.e != 0


def _own_grid(dataset: DatasetReader) -> Grid:
    step = dataset.transform
    top = step.f if step.e < 0 else step.f + step.e * dataset.height
    return Grid(
        crs=short_crs(dataset.crs),
        transform=(step.a, 0.0, step.c, 0.0, -abs(step.e), top),
        width=dataset.width,
        height=dataset.height,
    )


def _refuse_poles(dataset: DatasetReader, target: CRS) -> None:
    if target.is_geographic and enclosed_pole(dataset):
        raise refused(
            "covers_pole",
            f"the raster covers a pole, a point that {short_crs(target)[:20]} makes a line as wide as the world: "
            "leave out target_crs, or use 'source' or a polar CRS, such as EPSG:3413",
            target_crs=AUTO,
        )


def _bounds(dataset: DatasetReader, target: CRS) -> tuple[Bounds, list[str]]:
    """Return the bounds of the output in the target system, and warnings."""
    if target == WEB_MERCATOR:
        return _in_web_mercator(dataset)
    if target.is_geographic and target != dataset.crs:
        bounds = unrolled_bounds(dataset, target)
        crossing = "the raster crosses the antimeridian: longitudes of the output continue beyond 180°"
        return bounds, [crossing] if bounds[2] > 180 else []
    xs, ys = sample_points(dataset, target)
    return (float(xs.min()), float(ys.min()), float(xs.max()), float(ys.max())), []


def _in_web_mercator(dataset: DatasetReader) -> tuple[Bounds, list[str]]:
    """Clip the raster to the square map of Web Mercator."""
    west, south, east, north = unrolled_bounds(dataset)
    if east > 180:
        raise refused(
            "crosses_antimeridian",
            "the raster crosses the antimeridian, where EPSG:3857 ends: leave out target_crs, or use 'source' or "
            "'EPSG:4326'",
            target_crs=AUTO,
        )
    lowest, highest = (min(max(latitude, -HIGHEST_LATITUDE), HIGHEST_LATITUDE) for latitude in (south, north))
    if lowest >= highest:
        raise refused(
            "outside_target",
            f"the raster lies beyond {HIGHEST_LATITUDE:.2f}° of latitude, where EPSG:3857 ends: leave out target_crs, "
            "or use 'source' or a polar CRS, such as EPSG:3413",
            target_crs=AUTO,
        )
    left, right = (RADIUS * math.radians(longitude) for longitude in (west, east))
    bottom, top = (RADIUS * math.asinh(math.tan(math.radians(latitude))) for latitude in (lowest, highest))
    cut = (south, north) != (lowest, highest)
    return (left, bottom, right, top), [f"data beyond {HIGHEST_LATITUDE:.2f}° of latitude was cut off"] if cut else []


def _share_inside(dataset: DatasetReader) -> float:
    """Return the share of the latitudes that Web Mercator shows."""
    _, south, _, north = unrolled_bounds(dataset)
    shown = min(north, HIGHEST_LATITUDE) - max(south, -HIGHEST_LATITUDE)
    return shown / (north - south) if north > south else 1.0


def pixel_side(dataset: Placed, target: CRS, bounds: Bounds) -> float:
    """Return the side of a square as large as a pixel in the middle of the source, in units of the target.

    It is the median of some pixels, because one of them may lie on both sides of the antimeridian.
    """
    return math.sqrt(float(np.median(_pixel_areas(dataset, target, bounds)[:9])))


def finest_side(dataset: Placed, target: CRS, bounds: Bounds) -> float:
    """Return the side of a square as large as the smallest pixels in the target, but for a few."""
    return math.sqrt(float(np.percentile(_pixel_areas(dataset, target, bounds), 5)))


def _pixel_areas(dataset: Placed, target: CRS, bounds: Bounds) -> NDArray[np.float64]:
    """Return areas in the target of pixels all over the source, from its middle outwards."""
    near = [offset.ravel() for offset in np.meshgrid([0, -2, 2], [0, -2, 2])]
    u, v = (fractions.ravel() for fractions in np.meshgrid(*[np.linspace(0.025, 0.975, 39)] * 2))
    order = np.argsort(np.hypot(u - 0.5, v - 0.5), kind="stable")  # for a middle that the target does not show
    columns = np.concatenate([dataset.width / 2 + near[0], (u * dataset.width)[order]])
    rows = np.concatenate([dataset.height / 2 + near[1], (v * dataset.height)[order]])
    corners = [(columns + c, rows + r) for c, r in ((-0.5, 0), (0.5, 0), (0, -0.5), (0, 0.5))]
    points = [
        transform_points(dataset.crs, target, *placed(dataset, *corner), smallest=SMALLEST_LIST) for corner in corners
    ]
    (left, left_y), (right, right_y), (above_x, above), (below_x, below) = (map(np.asarray, xy) for xy in points)
    with np.errstate(invalid="ignore"):
        areas: NDArray[np.float64] = np.abs((right - left) * (below - above) - (right_y - left_y) * (below_x - above_x))
        inside = np.isfinite(areas) & (areas > 0) & (above >= bounds[1]) & (above <= bounds[3])
    if not inside.any():
        message = (
            f"no pixel of the raster has a place in {short_crs(target)[:20]}: leave out target_crs, or choose another"
        )
        raise refused("outside_target", message, target_crs=AUTO)
    return areas[inside]


def _check_size(dataset: DatasetReader, grid: Grid, share: float) -> None:
    """Refuse an output that has lost most of the source's pixels, or that inflates them."""
    before, after = dataset.width * dataset.height * share, grid.width * grid.height
    if after < FEWEST * before or after > max(MOST * before, ALWAYS_ALLOWED):
        raise refused(
            "target_unfit",
            f"{dataset.width:,} by {dataset.height:,} pixels would become {grid.width:,} by {grid.height:,} in "
            f"{grid.crs[:20]}, which does not fit the place of the raster: leave out target_crs, or choose another",
            target_crs=AUTO,
        )


def _change(dataset: DatasetReader, grid: Grid) -> str:
    return (
        f"the raster was resampled from {dataset.width:,} by {dataset.height:,} pixels in {_label(dataset.crs)} to "
        f"{grid.width:,} by {grid.height:,} in {_label(CRS.from_user_input(grid.crs))}"
    )


def _label(crs: CRS) -> str:
    code = short_crs(crs)
    return code if len(code) <= 20 else "its own system"
