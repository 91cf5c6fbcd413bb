"""Cuts a part out of a raster, in its own grid, and writes it as a cloud-optimized GeoTIFF. Runs in a child process."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import rasterio
from rasterio.enums import ColorInterp, MaskFlags
from rasterio.io import DatasetReader, MemoryFile
from rasterio.shutil import copy
from rasterio.windows import Window

from geomill.downloads.order import PixelsOrder
from geomill.raster.opening import StoreSession

ROWS = 512
CACHE_BYTES = 128 * 1024 * 1024


def write_pixels(order: PixelsOrder, folder: Path, tell: Callable[[int], None] | None = None) -> Path:
    """Write the file and return its path. `tell` is called with the rows of pixels so far, and may raise."""
    column, row, width, height = order.window
    credentials = {name: str(value) for name, value in order.options.items()}
    with ExitStack() as stack:
        stack.enter_context(rasterio.Env(session=StoreSession(credentials), GDAL_CACHEMAX=CACHE_BYTES))
        if order.vrt is not None:
            memory = stack.enter_context(MemoryFile(order.vrt.encode(), ext=".vrt"))
            source = stack.enter_context(memory.open(driver="VRT"))
        else:
            source = stack.enter_context(rasterio.open(order.path, driver="GTiff"))
        draft = folder / "draft.tif"
        _copy_window(source, Window(column, row, width, height), draft, tell)
        path = folder / "clip.tif"
        copy(draft, path, driver="COG", COMPRESS="DEFLATE", PREDICTOR="YES", BIGTIFF="IF_SAFER")
        draft.unlink()
    return path


def _copy_window(source: DatasetReader, window: Window, path: Path, tell: Callable[[int], None] | None = None) -> None:
    masked = MaskFlags.per_dataset in source.mask_flag_enums[0] and MaskFlags.alpha not in source.mask_flag_enums[0]
    profile = {
        "driver": "GTiff",
        "width": window.width,
        "height": window.height,
        "count": source.count,
        "dtype": source.dtypes[0],
        "crs": source.crs,
        "transform": source.window_transform(window),
        "nodata": source.nodata,
        "tiled": True,
        "compress": "deflate",
        "zlevel": 1,
        "BIGTIFF": "IF_SAFER",
    }
    with rasterio.Env(GDAL_TIFF_INTERNAL_MASK=True), rasterio.open(path, "w", **profile) as target:
        _describe(source, target)
        for start in range(0, window.height, ROWS):
            high = min(ROWS, window.height - start)
            part = Window(window.col_off, window.row_off + start, window.width, high)
            place = Window(0, start, window.width, high)
            if tell:
                tell(start)
            target.write(source.read(window=part), window=place)
            if masked:
                target.write_mask(source.dataset_mask(window=part), window=place)


def _describe(source: DatasetReader, target: rasterio.io.DatasetWriter) -> None:
    target.colorinterp = source.colorinterp
    target.descriptions, target.units = source.descriptions, source.units
    target.scales, target.offsets = source.scales, source.offsets
    if source.colorinterp[0] is ColorInterp.palette:
        target.write_colormap(1, source.colormap(1))
