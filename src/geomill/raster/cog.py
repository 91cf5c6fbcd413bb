"""Writes COGs. Everything is set before the file is written, because reopening a COG to change it destroys its
layout."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import rasterio
from rasterio.crs import CRS
from rasterio.enums import ColorInterp
from rasterio.io import DatasetReader, MemoryFile
from rasterio.shutil import copy as copy_file

from geomill.datasets.intermediates import DRAFT_PREFIX
from geomill.datasets.refusals import refused
from geomill.raster.facts import RasterType, Validity
from geomill.raster.grid import CELL, Grid, Window
from geomill.raster.inspection import alpha_band, bits_of, has_palette, nodata_of, validity_of
from geomill.raster.opening import bytes_per_pixel
from geomill.raster.statistics import STEP, BandStatistics, as_tags, measure, merged_bands
from geomill.raster.tiers import Tier, creation_options
from geomill.raster.warping import Pixels, render

MEDIA_TYPE = "image/tiff; application=geotiff; profile=cloud-optimized"
LARGEST_IN_MEMORY = 160 * 1024 * 1024
"""The maximum size of pixels held in memory. Larger rasters go through a file on the scratch disk."""
CELLS_OF_A_STRIP = 2
PIECE = 2048
"""Width and height in pixels of the pieces of that file."""


@dataclass(frozen=True)
class CogRecipe:
    """How to encode the pixels of a raster."""

    grid: Grid
    kind: RasterType
    tier: Tier
    resampling: str
    ranges: Sequence[tuple[float, float]]
    quality: int = 85
    step: int = STEP
    """The distance between the pixels that statistics of large pieces read."""

    @property
    def jpeg(self) -> bool:
        return self.tier is Tier.VISUALIZATION


@dataclass(frozen=True)
class EncodedCog:
    """A COG that is not stored yet."""

    data: bytes
    statistics: list[BandStatistics]


def tile(dataset: DatasetReader, recipe: CogRecipe, window: Window) -> EncodedCog | None:
    """Encode a window of the grid as a COG, in one pass and in memory. Returns None if no pixel is valid."""
    options = creation_options(recipe.tier, recipe.kind, dataset.dtypes[0], bits_of(dataset), recipe.quality)
    with MemoryFile() as memory:
        with rasterio.open("tile", "w+", driver="MEM", **_profile(dataset, recipe, window)) as canvas:
            statistics = _paint(dataset, recipe, window, canvas)
            if statistics is None:
                return None
            describe(dataset, canvas, statistics)
            copy_file(canvas, memory.name, driver="COG", **options)
        _check(memory)
        return EncodedCog(bytes(memory.read()), statistics)


def _paint(dataset: DatasetReader, recipe: CogRecipe, window: Window, canvas: Any) -> list[BandStatistics] | None:
    """Render the window in strips, so that pixels are not held twice. Returns None if no pixel is valid. A mask is
    written only if it hides pixels."""
    parts, anything, mask = [], False, np.full((window.height, window.width), 255, "uint8")
    for strip in _strips(window):
        pixels = render(dataset, recipe.grid, strip, recipe.resampling)
        parts.append(measure(pixels, recipe.ranges, recipe.step))
        anything = anything or not pixels.empty
        pixels = _for_jpeg(pixels) if recipe.jpeg else pixels
        top = strip.row - window.row
        canvas.write(pixels.data, window=rasterio.windows.Window(0, top, strip.width, strip.height))
        if pixels.mask is not None:
            mask[top : top + strip.height] = pixels.mask
    if anything and not mask.all():
        canvas.write_mask(mask)
    return merged_bands(parts) if anything else None


def _strips(window: Window) -> Iterator[Window]:
    """Yield strips that end where cells of the grid end."""
    row = window.row
    while row < window.end_row:
        end = min((row // CELL + CELLS_OF_A_STRIP) * CELL, window.end_row)
        yield Window(column=window.column, row=row, width=window.width, height=end - row)
        row = end


def _for_jpeg(pixels: Pixels) -> Pixels:
    """Replace alpha and nodata by a mask, because they do not survive JPEG."""
    valid = pixels.valid
    mask = None if valid.all() else valid.astype("uint8") * 255
    data = pixels.data[: pixels.alpha - 1] if pixels.alpha else pixels.data
    return Pixels(data, Validity.MASK, mask)


def _profile(dataset: DatasetReader, recipe: CogRecipe, window: Window) -> dict[str, Any]:
    alpha = alpha_band(dataset)
    return {
        "width": window.width,
        "height": window.height,
        "count": dataset.count - 1 if recipe.jpeg and alpha else dataset.count,
        "dtype": dataset.dtypes[0],
        "crs": CRS.from_user_input(recipe.grid.crs),
        "transform": recipe.grid.affine_of(window),
        "nodata": nodata_of(dataset) if validity_of(dataset) is Validity.NODATA and not recipe.jpeg else None,
    }


def describe(dataset: DatasetReader, target: Any, statistics: Sequence[BandStatistics]) -> None:
    """Copy names, units, scales, colours and tags of the source."""
    count = target.count
    target.colorinterp = [_color(color) for color in dataset.colorinterp[:count]]
    target.scales, target.offsets = dataset.scales[:count], dataset.offsets[:count]
    target.units = [units or "" for units in dataset.units[:count]]
    target.update_tags(**dataset.tags())
    if has_palette(dataset):
        target.write_colormap(1, dataset.colormap(1))
    for index in range(1, count + 1):
        if dataset.descriptions[index - 1]:
            target.set_band_description(index, dataset.descriptions[index - 1])
        source_tags = {key: value for key, value in dataset.tags(index).items() if not key.startswith("STATISTICS_")}
        statistics_tags = as_tags(statistics[index - 1]) if index <= len(statistics) else {}
        target.update_tags(index, **source_tags, **statistics_tags)


def _color(color: ColorInterp) -> ColorInterp:
    return ColorInterp.gray if color is ColorInterp.undefined else color


def _check(memory: MemoryFile) -> None:
    """Check that GDAL opens exactly these bytes as a COG."""
    with memory.open() as dataset:
        if dataset.tags(ns="IMAGE_STRUCTURE").get("LAYOUT") != "COG":
            raise refused("invalid_cog", "the written file is not a COG")


@contextmanager
def whole(
    dataset: DatasetReader, recipe: CogRecipe, advance: Callable[[float, str], None]
) -> Iterator[tuple[bytes | Path, list[BandStatistics]]]:
    """Encode the whole grid as one COG: in memory if it is small, else as a file that is deleted after the block."""
    window = recipe.grid.whole
    if window.width * window.height * bytes_per_pixel(dataset) <= LARGEST_IN_MEMORY:
        cog_tile = tile(dataset, recipe, window)
        if cog_tile is None:
            raise refused("empty", "no pixel of the raster is valid")
        yield cog_tile.data, cog_tile.statistics
        return
    with tempfile.TemporaryDirectory(prefix=DRAFT_PREFIX) as folder:
        yield _by_pieces(dataset, recipe, Path(folder), advance)


def _by_pieces(
    dataset: DatasetReader, recipe: CogRecipe, folder: Path, advance: Callable[[float, str], None]
) -> tuple[Path, list[BandStatistics]]:
    """Encode the grid piece by piece, so that memory does not depend on the size of the raster."""
    plain, finished = folder / "plain.tif", folder / "cog.tif"
    options = creation_options(recipe.tier, recipe.kind, dataset.dtypes[0], bits_of(dataset), recipe.quality)
    bits = {"NBITS": options["NBITS"]} if "NBITS" in options else {}
    masked = recipe.jpeg or validity_of(dataset) in (Validity.ALL, Validity.MASK)
    parts: list[list[BandStatistics]] = []
    profile = _profile(dataset, recipe, recipe.grid.whole)
    layout = {"tiled": True, "blockxsize": 512, "blockysize": 512, "BIGTIFF": "IF_SAFER", "SPARSE_OK": True, **bits}
    with rasterio.Env(GDAL_TIFF_INTERNAL_MASK=True):
        with rasterio.open(plain, "w", driver="GTiff", compress="lzw", **profile, **layout) as target:
            pieces = list(recipe.grid.tiles(PIECE))
            for number, piece in enumerate(pieces):
                advance(0.7 * number / len(pieces), f"piece {number + 1} of {len(pieces)}")
                parts.append(_piece(dataset, recipe, piece, target, masked=masked))
            statistics = merged_bands(parts)
            if not any(band.count for band in statistics):
                raise refused("empty", "no pixel of the raster is valid")
            describe(dataset, target, statistics)
        advance(0.7, "compressing")
        copy_file(plain, finished, driver="COG", **options)
    return finished, statistics


def _piece(
    dataset: DatasetReader, recipe: CogRecipe, piece: Window, target: Any, *, masked: bool
) -> list[BandStatistics]:
    pixels = render(dataset, recipe.grid, piece, recipe.resampling)
    statistics = measure(pixels, recipe.ranges, recipe.step)
    pixels = _for_jpeg(pixels) if recipe.jpeg else pixels
    place = rasterio.windows.Window(piece.column, piece.row, piece.width, piece.height)
    target.write(pixels.data, window=place)
    if masked:
        valid = pixels.valid
        target.write_mask(valid.astype("uint8") * 255, window=place)
    return statistics
