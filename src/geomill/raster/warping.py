"""Pixels of the output, one window of its grid at a time, in memory.

Windows of one grid fit together because nothing depends on the window: the scale that widens a kernel is given, not
derived from the piece, and the approximation of the transformation is so fine that its error is not seen.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import rasterio
from numpy.typing import NDArray
from rasterio.crs import CRS
from rasterio.enums import Resampling
from rasterio.io import DatasetReader
from rasterio.vrt import WarpedVRT
from rasterio.warp import reproject
from rasterio.windows import Window as SourceWindow

from geomill.raster.facts import Validity
from geomill.raster.grid import Grid, Window
from geomill.raster.inspection import alpha_band, nodata_of, validity_of
from geomill.raster.planning import keeps_grid

TOLERANCE = 0.0001
"""In pixels. GDAL's 0.125 is seen where tiles meet, and with 0.01 two ways of cutting a rough picture still differ by
one in some hundredths of its pixels. This makes it a few of a hundred thousand, for a quarter more of the time to
warp; none at all would double it."""
HEEDS_TOLERANCE = tuple(map(int, rasterio.__version__.split(".")[:2])) >= (1, 5)


@dataclass(frozen=True)
class Pixels:
    """`data` has the bands first, alpha among them. `mask` is 255 where pixels count; None when `nodata` or alpha says
    it, or when all do."""

    data: NDArray[Any]
    validity: Validity
    mask: NDArray[np.uint8] | None = None
    nodata: float | None = None
    alpha: int | None = None

    @property
    def valid(self) -> NDArray[np.bool_]:
        """Where at least one band has a value."""
        if self.mask is not None:
            return self.mask > 0
        if self.alpha:
            found: NDArray[np.bool_] = self.data[self.alpha - 1] > 0
            return found
        if self.validity is not Validity.NODATA:
            return np.ones(self.data.shape[1:], bool)
        anywhere: NDArray[np.bool_] = np.any(self.valid_in(slice(None)), axis=0)
        return anywhere

    def valid_in(self, band: Any) -> NDArray[np.bool_]:
        """For one band (from 0), or for a slice of them."""
        values: NDArray[Any] = self.data[band]
        if self.validity is Validity.NODATA and self.nodata is not None:
            found: NDArray[np.bool_] = ~np.isnan(values) if math.isnan(self.nodata) else values != self.nodata
            return found
        if self.alpha or self.mask is not None:
            return np.broadcast_to(self.valid, values.shape)
        return np.ones(values.shape, bool)

    @property
    def empty(self) -> bool:
        if self.validity is Validity.NODATA:
            return not any(self.valid_in(band).any() for band in range(len(self.data)))
        return not self.valid.any()


def render(dataset: DatasetReader, grid: Grid, window: Window, resampling: str) -> Pixels:
    """The pixels of a window of the grid."""
    if keeps_grid(dataset, CRS.from_user_input(grid.crs)):
        return _copied(dataset, grid, window)
    if HEEDS_TOLERANCE:
        return _warped(dataset, grid, window, Resampling[resampling])
    return _warped_by_vrt(dataset, grid, window, Resampling[resampling])


def _copied(dataset: DatasetReader, grid: Grid, window: Window) -> Pixels:
    """The window may lie in a cut-out of the raster for which the grid was made."""
    shift = ~dataset.transform @ grid.affine
    column, row = round(shift.c) + window.column, round(shift.f) + window.row
    part = SourceWindow(column, row, window.width, window.height)
    validity = validity_of(dataset)
    mask = dataset.dataset_mask(window=part) if validity is Validity.MASK else None
    return Pixels(dataset.read(window=part), validity, mask, nodata_of(dataset), alpha_band(dataset))


def _warped(dataset: DatasetReader, grid: Grid, window: Window, resampling: Resampling) -> Pixels:
    validity, nodata, alpha = validity_of(dataset), nodata_of(dataset), alpha_band(dataset)
    masked = validity in (Validity.ALL, Validity.MASK)
    bands = [index for index in dataset.indexes if index != alpha]
    data = np.zeros((dataset.count + masked, window.height, window.width), dataset.dtypes[0])
    reproject(
        rasterio.band(dataset, bands),
        data,
        dst_transform=grid.affine_of(window),
        dst_crs=CRS.from_user_input(grid.crs),
        src_nodata=nodata,
        dst_nodata=nodata,
        src_alpha=alpha or 0,
        dst_alpha=alpha or (dataset.count + 1 if masked else 0),
        resampling=resampling,
        tolerance=TOLERANCE,
        **_scale(grid),
    )
    return _pixels(data, dataset, validity, masked=masked)


def _warped_by_vrt(dataset: DatasetReader, grid: Grid, window: Window, resampling: Resampling) -> Pixels:
    """Before 1.5, `reproject` has a tolerance of its own, and only this way heeds ours."""
    validity, nodata = validity_of(dataset), nodata_of(dataset)
    masked = validity in (Validity.ALL, Validity.MASK)
    with WarpedVRT(
        dataset,
        crs=CRS.from_user_input(grid.crs),
        transform=grid.affine_of(window),
        width=window.width,
        height=window.height,
        resampling=resampling,
        tolerance=TOLERANCE,
        src_nodata=nodata,
        nodata=nodata,
        add_alpha=masked,
        **_scale(grid),
    ) as warped:
        return _pixels(warped.read(), dataset, validity, masked=masked)


def _pixels(data: NDArray[Any], dataset: DatasetReader, validity: Validity, *, masked: bool) -> Pixels:
    mask = np.where(data[-1] > 0, np.uint8(255), np.uint8(0)) if masked else None
    if mask is not None:
        data = data[:-1]
        if mask.all():
            mask = None
    return Pixels(data, validity, mask, nodata_of(dataset), alpha_band(dataset))


def _scale(grid: Grid) -> dict[str, float]:
    """GDAL would derive it from each piece, a little differently each time."""
    return {"XSCALE": grid.scale[0], "YSCALE": grid.scale[1]}
