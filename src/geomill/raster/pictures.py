"""Renders rasters as RGB images by the rule of `rendering.py`, so that images of different rasters can be stacked."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from rasterio.enums import ColorInterp
from rasterio.io import DatasetReader
from rio_tiler.models import ImageData

from geomill.raster.facts import RasterType
from geomill.raster.rendering import Rendering, rendering

Statistics = Sequence[Mapping[str, Any]]


def rendering_of(
    dataset: DatasetReader, kind: RasterType, statistics: Statistics, chosen: Sequence[int] = ()
) -> Rendering:
    """Return the rendering of an open dataset, with its own palette as the colormap if it has one."""
    palette = dataset.colorinterp[0] is ColorInterp.palette
    house = rendering(
        kind,
        statistics,
        dtype=dataset.dtypes[0],
        colors=[color.name for color in dataset.colorinterp],
        palette=palette,
        chosen=chosen,
    )
    if palette and house.bands == (1,):
        return house.model_copy(update={"colormap": dataset.colormap(1)})
    return house


def colored(
    dataset: DatasetReader, kind: RasterType, statistics: Statistics, read: Callable[..., ImageData]
) -> ImageData:
    """Read the rendering's bands with `read` and return an 8-bit image with a mask."""
    chosen = rendering_of(dataset, kind, statistics)
    image = read(indexes=chosen.bands)
    valid = image.mask > 0
    if chosen.rescale:
        image.rescale(in_range=chosen.rescale)
    if chosen.colormap:
        image.alpha_mask = None
        image = image.apply_colormap(chosen.colormap)
        valid &= image.mask > 0
    bands = image.array.data if image.count == 3 else np.repeat(image.array.data[:1], 3, axis=0)
    return picture(bands.astype("uint8"), valid, image)


def under(top: ImageData, image: ImageData) -> ImageData:
    """Stack two images of one place. The lower one shows where the upper one has no data."""
    valid = top.mask > 0
    return picture(np.where(valid, top.array.data, image.array.data), valid | (image.mask > 0), top)


def picture(bands: np.ndarray[Any, Any], valid: np.ndarray[Any, Any], like: ImageData) -> ImageData:
    hidden = np.broadcast_to(~valid, bands.shape)
    return ImageData(np.ma.MaskedArray(bands, mask=hidden), bounds=like.bounds, crs=like.crs)
