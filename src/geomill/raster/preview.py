"""Small images of a raster for people. Colours depend on the type of the raster."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

import numpy as np
from affine import Affine
from numpy.typing import NDArray
from rasterio.enums import ColorInterp, Resampling
from rasterio.errors import NotGeoreferencedWarning
from rasterio.io import DatasetReader, MemoryFile

from geomill.raster.facts import RasterType
from geomill.raster.grid import Grid, Window
from geomill.raster.rendering import OUTERMOST, RAMPS, red_green_blue

Palette = Mapping[int, tuple[int, int, int, int]]


@dataclass
class Canvas:
    """A small version of a raster."""

    data: NDArray[Any]
    valid: NDArray[np.bool_]
    affine: Affine
    palette: Palette | None = None
    colors: tuple[ColorInterp, ...] = ()

    @classmethod
    def of(
        cls,
        grid: Grid,
        parts: Iterable[tuple[Window, Callable[[], AbstractContextManager[DatasetReader]]]],
        side: int,
        kind: RasterType,
    ) -> Canvas:
        """Read a canvas from the overviews of COGs, each a window of the grid."""
        factor = max(1.0, max(grid.width, grid.height) / side)
        width, height = max(1, round(grid.width / factor)), max(1, round(grid.height / factor))
        across, down = grid.width / width, grid.height / height
        canvas: Canvas | None = None
        for window, open_part in parts:
            with open_part() as dataset:
                if canvas is None:
                    canvas = cls._blank(dataset, height, width, grid.affine @ Affine.scale(across, down))
                canvas.paste(dataset, window, across, down, kind)
        assert canvas is not None, "parts must not be empty"
        return canvas

    @classmethod
    def _blank(cls, dataset: DatasetReader, height: int, width: int, affine: Affine) -> Canvas:
        palette = dataset.colormap(1) if dataset.colorinterp[0] is ColorInterp.palette else None
        data = np.zeros((dataset.count, height, width), dataset.dtypes[0])
        return cls(data, np.zeros((height, width), bool), affine, palette, dataset.colorinterp)

    def paste(self, dataset: DatasetReader, window: Window, across: float, down: float, kind: RasterType) -> None:
        left, top = round(window.column / across), round(window.row / down)
        right, bottom = round((window.column + window.width) / across), round((window.row + window.height) / down)
        if right <= left or bottom <= top:
            return
        shape = bottom - top, right - left
        how = Resampling.nearest if kind is RasterType.CATEGORICAL else Resampling.average
        self.data[:, top:bottom, left:right] = dataset.read(out_shape=(dataset.count, *shape), resampling=how)
        mask = dataset.dataset_mask(out_shape=shape) > 0
        if dataset.dtypes[0].startswith("float"):
            mask &= np.isfinite(self.data[:, top:bottom, left:right]).any(axis=0)
        self.valid[top:bottom, left:right] = mask


def picture(canvas: Canvas, kind: RasterType) -> NDArray[np.uint8]:
    """Return red, green, blue and alpha."""
    if canvas.palette is not None:
        colors = np.array([canvas.palette.get(value, (0, 0, 0, 0)) for value in range(256)], np.uint8)
        rgb = np.moveaxis(colors[canvas.data[0].astype(np.uint8)][..., :3], -1, 0)
    elif kind is RasterType.CATEGORICAL:
        rgb = _distinct_colors(canvas.data[0])
    elif kind in RAMPS:
        rgb = _ramp(_stretched(canvas.data[0], canvas.valid), RAMPS[kind])
        rgb = _shaded(rgb, canvas.data[0], canvas.valid) if kind is RasterType.DEM else rgb
    else:
        rgb = _bands(canvas)
    alpha = np.where(canvas.valid, np.uint8(255), np.uint8(0))
    return np.concatenate([np.where(canvas.valid, rgb, 0), alpha[None]]).astype(np.uint8)


def encoded(image: NDArray[np.uint8], driver: str) -> bytes:
    """Encode an image. `driver` is `PNG` or `WEBP`."""
    _, height, width = image.shape
    with warnings.catch_warnings(), MemoryFile() as memory:
        warnings.simplefilter("ignore", NotGeoreferencedWarning)
        with memory.open(driver=driver, width=width, height=height, count=4, dtype="uint8") as target:
            target.write(image)
        return bytes(memory.read())


def smaller(image: NDArray[np.uint8], side: int) -> NDArray[np.uint8]:
    """Return an image of at most `side` pixels each way. Each of its sides keeps a pixel at least."""
    step = -(-max(image.shape[1:]) // side)
    rows, columns = (slice(min(step // 2, length // 2), None, step) for length in image.shape[1:])
    return image[:, rows, columns]


def _bands(canvas: Canvas) -> NDArray[np.uint8]:
    chosen = _red_green_blue(canvas)
    if canvas.data.dtype == np.uint8 and len(chosen) == 3 and canvas.data.shape[0] in (3, 4):
        return canvas.data[chosen]
    bands = [_stretched(canvas.data[index], canvas.valid) * 255 for index in chosen]
    return np.stack(bands * (3 // len(bands))).astype(np.uint8)


def _red_green_blue(canvas: Canvas) -> list[int]:
    names = [color.name for color in canvas.colors]
    return [band - 1 for band in red_green_blue(canvas.data.shape[0], names)]


def _stretched(band: NDArray[Any], valid: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Scale a band to 0..1, leaving out the lowest and highest two percent."""
    values = band.astype(np.float64)
    valid = valid & np.isfinite(values)
    if not valid.any():
        return np.zeros(band.shape)
    low, high = np.percentile(values[valid], (100 * OUTERMOST, 100 * (1 - OUTERMOST)))
    if high <= low:
        high = low + 1
    stretched: NDArray[np.float64] = np.nan_to_num(np.clip((values - low) / (high - low), 0, 1))
    return stretched


def _ramp(values: NDArray[np.float64], colors: Any) -> NDArray[np.uint8]:
    places = np.linspace(0, 1, len(colors))
    return np.stack([np.interp(values, places, [color[i] for color in colors]) for i in range(3)]).astype(np.uint8)


def _shaded(rgb: NDArray[np.uint8], heights: NDArray[Any], valid: NDArray[np.bool_]) -> NDArray[np.uint8]:
    """Shade heights with light from the north-west."""
    if min(heights.shape) < 2:
        return rgb
    values = np.where(valid, heights.astype(np.float64), 0.0)
    down, across = np.gradient(values)
    spread = np.std(across[valid]) + np.std(down[valid]) if valid.any() else 0.0
    light = np.clip(1.0 + 0.25 * (across + down) / spread, 0.5, 1.3) if spread else np.ones(heights.shape)
    return np.clip(rgb * light, 0, 255).astype(np.uint8)


def _distinct_colors(values: NDArray[Any]) -> NDArray[np.uint8]:
    """Return a colour for each class, which is the same in all images."""
    hashed = (values.astype(np.int64) + 1) * np.int64(2_654_435_761)
    return np.stack([((hashed >> shift) % 200 + 40) for shift in (4, 11, 19)]).astype(np.uint8)
