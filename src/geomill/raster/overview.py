"""One small image of many rasters, which may differ in every respect, with the latest on top."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import rasterio
from numpy.typing import NDArray
from rasterio.crs import CRS
from rasterio.enums import ColorInterp
from rasterio.io import DatasetReader, MemoryFile
from rasterio.shutil import copy as copy_file
from rasterio.warp import transform, transform_bounds
from rio_tiler.io import Reader

from geomill.raster.facts import RasterType
from geomill.raster.grid import Grid, Window, aligned
from geomill.raster.pictures import Statistics, colored
from geomill.raster.tiers import Tier, creation_options

WEB_MERCATOR = CRS.from_epsg(3857)
PIXELS = 2048
"""The maximum width and height."""
EQUATOR = 2 * math.pi * 6_378_137
DEEPEST = 24
EDGE = 85.05
"""The latitude beyond which Web Mercator maps show nothing."""


@dataclass(frozen=True)
class OverviewScene:
    kind: RasterType
    statistics: Statistics
    bbox: Sequence[float]
    open: Callable[[], AbstractContextManager[DatasetReader]]


def resolution_at(zoom: int) -> float:
    """Return the size of a pixel in metres at a zoom, with tiles of 256 pixels."""
    return EQUATOR / 256 / float(2**zoom)


def zoom_of(grid: Grid) -> int:
    """Return the zoom at which a map pixel is as large as a pixel in the middle of the grid."""
    column, row = grid.width / 2, grid.height / 2
    corners = [grid.affine @ place for place in ((column, row), (column + 1, row), (column, row + 1))]
    places = transform(CRS.from_user_input(grid.crs), WEB_MERCATOR, *zip(*corners, strict=True))
    (x, right, below_x), (y, right_y, below) = places[0], places[1]
    side = max(math.hypot(right - x, right_y - y), math.hypot(below_x - x, below - y))
    if not 0 < side < EQUATOR:  # Web Mercator does not show poles
        return 0
    return min(max(round(math.log2(resolution_at(0) / side)), 0), DEEPEST)


def overview_grid(bboxes: Sequence[Sequence[float]], zoom: int) -> Grid:
    """Return the grid of the overview, at the given zoom or the deepest one at which it is small enough."""
    crossing = any(box[0] > box[2] for box in bboxes)
    west, east = (-180.0, 180.0) if crossing else (min(box[0] for box in bboxes), max(box[2] for box in bboxes))
    south, north = min(box[1] for box in bboxes), max(box[3] for box in bboxes)
    south, north = (min(max(value, -EDGE), EDGE) for value in (south, north))
    left, bottom, right, top = transform_bounds("EPSG:4326", WEB_MERCATOR, west, south, east, north)
    while zoom and max(right - left, top - bottom) > PIXELS * resolution_at(zoom):
        zoom -= 1
    return aligned("EPSG:3857", (left, bottom, right, top), resolution_at(zoom))


def overview(grid: Grid, scenes: Iterable[OverviewScene]) -> NDArray[np.uint8]:
    """Return red, green, blue and alpha. The first scene is on top."""
    canvas = np.zeros((4, grid.height, grid.width), "uint8")
    for scene in scenes:
        window = _window(grid, scene.bbox)
        rows, columns = slice(window.row, window.end_row), slice(window.column, window.end_column)
        if window.width and window.height and not canvas[3, rows, columns].all():
            _lay_under(canvas[:, rows, columns], _drawn(scene, grid.bounds_of(window), window))
    return canvas


def as_cog(grid: Grid, canvas: NDArray[np.uint8]) -> bytes:
    profile: dict[str, Any] = {"width": grid.width, "height": grid.height, "count": 4, "dtype": "uint8"}
    options = creation_options(Tier.ANALYSIS, RasterType.RGBA, "uint8", None)
    place = {"crs": WEB_MERCATOR, "transform": grid.affine}
    with MemoryFile() as memory:
        with rasterio.open("overview", "w+", driver="MEM", **profile, **place) as target:
            target.colorinterp = (ColorInterp.red, ColorInterp.green, ColorInterp.blue, ColorInterp.alpha)
            target.write(canvas)
            copy_file(target, memory.name, driver="COG", **options)
        return bytes(memory.read())


def _window(grid: Grid, bbox: Sequence[float]) -> Window:
    """Return the window of a scene. It spans all columns if the scene crosses the antimeridian."""
    west, south, east, north = bbox
    if west > east:
        west, east = -180.0, 180.0
    south, north = (min(max(value, -EDGE), EDGE) for value in (south, north))
    left, bottom, right, top = transform_bounds("EPSG:4326", WEB_MERCATOR, west, south, east, north)
    (first, highest), (last, lowest) = ~grid.affine @ (left, top), ~grid.affine @ (right, bottom)
    column, row = max(math.floor(first + 1e-6), 0), max(math.floor(highest + 1e-6), 0)
    end_column, end_row = min(math.ceil(last - 1e-6), grid.width), min(math.ceil(lowest - 1e-6), grid.height)
    return Window(column=column, row=row, width=max(end_column - column, 0), height=max(end_row - row, 0))


def _drawn(scene: OverviewScene, bounds: Sequence[float], window: Window) -> NDArray[np.uint8]:
    how = "nearest" if scene.kind is RasterType.CATEGORICAL else "average"
    with scene.open() as dataset, Reader(None, dataset=dataset) as reader:
        image = colored(
            dataset,
            scene.kind,
            scene.statistics,
            partial(
                reader.part,
                bounds,
                bounds_crs=WEB_MERCATOR,
                width=window.width,
                height=window.height,
                resampling_method=how,
                reproject_method=how,
            ),
        )
    return np.concatenate([image.array.data, (image.mask > 0)[None] * np.uint8(255)])


def _lay_under(top: NDArray[np.uint8], image: NDArray[np.uint8]) -> None:
    free = (top[3] == 0) & (image[3] > 0)
    top[:, free] = image[:, free]
