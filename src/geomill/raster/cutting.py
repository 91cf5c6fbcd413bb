"""Cuts a source into pieces without changing its pixels."""

from __future__ import annotations

from pathlib import Path

import rasterio
from rasterio.io import DatasetReader, MemoryFile
from rasterio.shutil import copy
from rasterio.windows import Window

from geomill.raster.cog import describe
from geomill.raster.facts import Validity
from geomill.raster.inspection import bits_of, validity_of


def retile(dataset: DatasetReader, target: Path) -> None:
    """Copy a source, in one pass from top to bottom, to a file from which windows can be read."""
    target.parent.mkdir(parents=True, exist_ok=True)
    copy(dataset, target, driver="GTiff", tiled=True, blockxsize=512, blockysize=512, BIGTIFF="IF_SAFER")


def cut(dataset: DatasetReader, window: tuple[int, int, int, int]) -> bytes:
    """Return a window of the source as a tiled, lightly compressed GeoTIFF."""
    part = Window(*window)
    bits = bits_of(dataset)
    profile = {
        "driver": "GTiff",
        "width": window[2],
        "height": window[3],
        "count": dataset.count,
        "dtype": dataset.dtypes[0],
        "crs": dataset.crs,
        "transform": dataset.window_transform(part),
        "nodata": dataset.nodata,
        "tiled": True,
        "blockxsize": 512,
        "blockysize": 512,
        "compress": "lzw",
        "BIGTIFF": "IF_SAFER",
        **({"NBITS": bits} if bits else {}),
    }
    with rasterio.Env(GDAL_TIFF_INTERNAL_MASK=True), MemoryFile() as memory:
        with memory.open(**profile) as target:
            describe(dataset, target, [])
            target.write(dataset.read(window=part))
            if validity_of(dataset) is Validity.MASK:
                target.write_mask(dataset.dataset_mask(window=part))
        return bytes(memory.read())
