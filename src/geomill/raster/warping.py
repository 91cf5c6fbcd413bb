"""Warps a source to the output grid, one window at a time, in memory.

Windows of one grid fit together because no pixel depends on the window. GDAL approximates the transformation along each
line of the piece that it warps, so pieces are fixed cells of the grid, and a window is assembled from them. The scale
that widens a kernel is given, not derived from the piece.
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
from geomill.raster.grid import CELL, Grid, Window
from geomill.raster.inspection import alpha_band, nodata_of, validity_of
from geomill.raster.planning import keeps_grid

TOLERANCE = 0.001
"""In pixels. An error of this size changes an interpolated value by at most a quarter of a count. Warping takes a tenth
longer than with GDAL's 0.125; a tolerance of zero would triple the time."""
HEEDS_TOLERANCE = tuple(map(int, rasterio.__version__.split(".")[:2])) >= (1, 5)


@dataclass(frozen=True)
class Pixels:
    """Pixels of a window. `data` has the bands first, including alpha. `mask` is 255 for valid pixels, or None if
    `nodata` or alpha mark them or if all are valid."""

    data: NDArray[Any]
    validity: Validity
    mask: NDArray[np.uint8] | None = None
    nodata: float | None = None
    alpha: int | None = None

    @property
    def valid(self) -> NDArray[np.bool_]:
        """Return where at least one band has a value."""
        if self.mask is not None:
            return self.mask > 0
        if self.alpha:
            opaque: NDArray[np.bool_] = self.data[self.alpha - 1] > 0
            return opaque
        if self.validity is not Validity.NODATA:
            return np.ones(self.data.shape[1:], bool)
        anywhere: NDArray[np.bool_] = np.any(self.valid_in(slice(None)), axis=0)
        return anywhere

    def valid_in(self, band: Any) -> NDArray[np.bool_]:
        """Return where a band, counted from 0, or a slice of bands has values."""
        values: NDArray[Any] = self.data[band]
        if self.validity is Validity.NODATA and self.nodata is not None:
            valid: NDArray[np.bool_] = ~np.isnan(values) if math.isnan(self.nodata) else values != self.nodata
            return valid
        if self.alpha or self.mask is not None:
            return np.broadcast_to(self.valid, values.shape)
        return np.ones(values.shape, bool)

    @property
    def empty(self) -> bool:
        if self.validity is Validity.NODATA:
            return not any(self.valid_in(band).any() for band in range(len(self.data)))
        return not self.valid.any()


def render(dataset: DatasetReader, grid: Grid, window: Window, resampling: str) -> Pixels:
    """Return the pixels of a window of the grid."""
    if keeps_grid(dataset, CRS.from_user_input(grid.crs)):
        return _copied(dataset, grid, window)
    validity = validity_of(dataset)
    masked = validity in (Validity.ALL, Validity.MASK)
    warp = _warped if HEEDS_TOLERANCE or _reaches_beyond(dataset) else _warped_by_vrt
    data = np.empty((dataset.count + masked, window.height, window.width), dataset.dtypes[0])
    for cell in grid.cells(window, CELL):
        part = warp(dataset, grid, cell, Resampling[resampling], masked=masked)
        top, left = max(cell.row, window.row), max(cell.column, window.column)
        below, right = min(cell.end_row, window.end_row), min(cell.end_column, window.end_column)
        data[:, top - window.row : below - window.row, left - window.column : right - window.column] = part[
            :, top - cell.row : below - cell.row, left - cell.column : right - cell.column
        ]
    return _pixels(data, dataset, validity, masked=masked)


def _reaches_beyond(dataset: DatasetReader) -> bool:
    """Whether longitudes go beyond 180°. A warped virtual dataset does not turn them, unlike `reproject`."""
    left, _, right, _ = dataset.bounds
    return bool(dataset.crs.is_geographic and (min(left, right) < -180 or max(left, right) > 180))


def _copied(dataset: DatasetReader, grid: Grid, window: Window) -> Pixels:
    """Copy pixels without warping. The dataset may be a piece of the raster for which the grid was made. A source that
    is stored from south to north is turned over."""
    column, row = map(round, ~dataset.transform @ (grid.affine @ (window.column, window.row)))
    south_up = dataset.transform.e > 0
    part = SourceWindow(column, row - window.height if south_up else row, window.width, window.height)
    validity = validity_of(dataset)
    data = dataset.read(window=part)
    mask = dataset.dataset_mask(window=part) if validity is Validity.MASK else None
    if south_up:
        data, mask = data[:, ::-1], mask if mask is None else mask[::-1]
    return Pixels(data, validity, mask, nodata_of(dataset), alpha_band(dataset))


def _warped(dataset: DatasetReader, grid: Grid, cell: Window, resampling: Resampling, *, masked: bool) -> NDArray[Any]:
    """Return the bands of a cell. If `masked`, a last band marks valid pixels."""
    nodata, alpha = nodata_of(dataset), alpha_band(dataset)
    data = np.zeros((dataset.count + masked, cell.height, cell.width), dataset.dtypes[0])
    reproject(
        rasterio.band(dataset, [index for index in dataset.indexes if index != alpha]),
        data,
        dst_transform=grid.affine_of(cell),
        dst_crs=CRS.from_user_input(grid.crs),
        src_nodata=nodata,
        dst_nodata=nodata,
        src_alpha=alpha or 0,
        dst_alpha=alpha or (dataset.count + 1 if masked else 0),
        resampling=resampling,
        tolerance=_tolerance(resampling),
        **_scale(grid),
    )
    return data


def _warped_by_vrt(
    dataset: DatasetReader, grid: Grid, cell: Window, resampling: Resampling, *, masked: bool
) -> NDArray[Any]:
    """Warp with rasterio before 1.5, whose `reproject` ignores the given tolerance."""
    nodata = nodata_of(dataset)
    with WarpedVRT(
        dataset,
        crs=CRS.from_user_input(grid.crs),
        transform=grid.affine_of(cell),
        width=cell.width,
        height=cell.height,
        resampling=resampling,
        tolerance=_tolerance(resampling) or 1e-9,  # 0 means the default here
        src_nodata=nodata,
        nodata=nodata,
        add_alpha=masked,
        **_scale(grid),
    ) as warped:
        data: NDArray[Any] = warped.read()
        return data


def _tolerance(resampling: Resampling) -> float:
    """Return the tolerance. It is zero for nearest, where the slightest error can select another pixel."""
    return 0.0 if resampling is Resampling.nearest else TOLERANCE


def _pixels(data: NDArray[Any], dataset: DatasetReader, validity: Validity, *, masked: bool) -> Pixels:
    mask = np.where(data[-1] > 0, np.uint8(255), np.uint8(0)) if masked else None
    if mask is not None:
        data = data[:-1]
        if mask.all():
            mask = None
    return Pixels(data, validity, mask, nodata_of(dataset), alpha_band(dataset))


def _scale(grid: Grid) -> dict[str, float]:
    """Return the scale, which GDAL would otherwise derive from each piece with small differences."""
    return {"XSCALE": grid.scale[0], "YSCALE": grid.scale[1]}
