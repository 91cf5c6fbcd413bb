"""Sources that are not GeoTIFFs with a place: control points, RPCs, pictures with a world file, variables of NetCDF
and Zarr.

They are opened as virtual datasets, which GDAL warps while it reads. `raster.validate` writes such a source once as a
GeoTIFF, and all later steps read that.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import rasterio
from affine import Affine
from pydantic import BaseModel
from rasterio.crs import CRS
from rasterio.errors import CRSError
from rasterio.io import DatasetReader
from rasterio.vrt import WarpedVRT
from rasterio.windows import Window

from geomill.datasets.refusals import refused
from geomill.domain.crs import EXAMPLES, is_crs
from geomill.errors import NotFoundError
from geomill.raster import netcdf, zarr_source
from geomill.raster.cf import all_steps
from geomill.raster.cog import describe
from geomill.raster.inspection import alpha_band, nodata_of
from geomill.raster.opening import PICTURES, bytes_per_pixel, first_bytes, opened, opened_picture
from geomill.sdk import ObjectName, Storage

WORLD_FILES = {"PNG": ("pgw", "pngw", "wld"), "JPEG": ("jgw", "jpgw", "jpegw", "wld")}
LARGEST_WORLD_FILE = 1024
STRIP_BYTES = 64 * 1024 * 1024
_SUFFIX = re.compile(r"\.[^./]*$")


class SourceOptions(BaseModel):
    """Facts from the submitter, for a file that does not have them itself."""

    source_crs: str | None = None
    variable: str | None = None
    time: str | None = None


@dataclass
class PlacedSource:
    dataset: DatasetReader
    converted: bool = False
    """Whether the source must be written as a GeoTIFF for later steps."""
    bands: list[int] = field(default_factory=list)
    """The bands that count; all if empty."""
    acquired: str | None = None
    warnings: list[str] = field(default_factory=list)
    driver: str | None = None
    """GDAL's name of the format, where the dataset is a virtual one."""


@contextmanager
def placed_source(storage: Storage, name: ObjectName, options: SourceOptions) -> Iterator[PlacedSource]:
    start = first_bytes(storage, name)
    if netcdf.is_netcdf(start):
        with (
            netcdf.chosen(storage, name, options.variable, options.time) as (dataset, band, acquired),
            _with_crs(dataset, options, name) as placed,
        ):
            yield PlacedSource(placed, converted=True, bands=[band], acquired=acquired, driver="netCDF")
    elif zarr_source.is_zarr(name, start):
        with (
            zarr_source.opened_layer(storage, name, options.variable, options.time) as layer,
            _with_crs(layer.dataset, options, name) as placed,
        ):
            warnings = [text for text in layer.warnings if text != zarr_source.ASSUMED or not options.source_crs]
            yield PlacedSource(
                placed, converted=True, bands=[1], acquired=layer.acquired, warnings=warnings, driver="Zarr"
            )
    elif driver := next((driver for magic, driver in PICTURES.items() if start.startswith(magic)), None):
        step, crs = world_file(storage, name, driver), _crs(options, name)
        with opened_picture(storage, name) as dataset:
            size = {"width": dataset.width, "height": dataset.height}
            with WarpedVRT(dataset, src_crs=crs, src_transform=step, crs=crs, transform=step, **size) as placed:
                yield PlacedSource(placed, converted=True, driver=driver)
    else:
        with opened(storage, name) as dataset:
            yield from _placed(dataset, options, name)


def time_steps(storage: Storage, name: ObjectName, variable: str | None, most: int) -> list[str]:
    """Return the times of all steps of a NetCDF file or Zarr store."""
    start = first_bytes(storage, name)
    if netcdf.is_netcdf(start):
        return all_steps(netcdf.layer_times(storage, name, variable), name, most)
    if zarr_source.is_zarr(name, start):
        return all_steps(zarr_source.layer_times(storage, name, variable), name, most)
    raise refused("unsupported_dimensions", f"'{name}' is no NetCDF file or Zarr store: leave out times")


def _placed(dataset: DatasetReader, options: SourceOptions, name: ObjectName) -> Iterator[PlacedSource]:
    nodata = nodata_of(dataset)
    outside = {"nodata": nodata} if nodata is not None else {"add_alpha": not alpha_band(dataset)}
    points, system = dataset.gcps
    if dataset.transform.is_identity and points:
        crs = system or _crs(options, name)
        with WarpedVRT(dataset, src_crs=crs, crs=crs, **outside) as placed:
            warning = f"the raster was placed by its {len(points)} control points"
            yield PlacedSource(placed, converted=True, warnings=[warning], driver=dataset.driver)
    elif dataset.transform.is_identity and dataset.rpcs:
        with WarpedVRT(dataset, crs=CRS.from_epsg(4326), **outside) as placed:
            warning = "the raster was placed by its RPCs at one height: it is not corrected for terrain"
            yield PlacedSource(placed, converted=True, warnings=[warning], driver=dataset.driver)
    elif dataset.crs is None and options.source_crs:
        with _with_crs(dataset, options, name) as placed:
            yield PlacedSource(placed, converted=True, driver=dataset.driver)
    else:
        yield PlacedSource(dataset)


@contextmanager
def _with_crs(dataset: DatasetReader, options: SourceOptions, name: ObjectName) -> Iterator[DatasetReader]:
    if dataset.crs is not None and not options.source_crs:
        yield dataset
        return
    crs, step = _crs(options, name), dataset.transform
    size = {"width": dataset.width, "height": dataset.height}
    with WarpedVRT(dataset, src_crs=crs, crs=crs, src_transform=step, transform=step, **size) as placed:
        yield placed


def _crs(options: SourceOptions, name: ObjectName) -> CRS:
    if options.source_crs is None:
        message = f"'{name}' has no coordinate system: give the option source_crs, such as {EXAMPLES}"
        raise refused("no_crs", message, source_crs=None)
    try:
        if is_crs(options.source_crs):
            return CRS.from_user_input(options.source_crs)
    except CRSError:
        pass  # refused below, in the same words
    message = f"source_crs {options.source_crs[:80]!r} is not a CRS: write it as {EXAMPLES}"
    raise refused("bad_source_crs", message, source_crs=None)


def world_file(storage: Storage, name: ObjectName, driver: str) -> Affine:
    """Return the place that the world file beside a picture gives. It refers to the middle of the first pixel."""
    paths = [_SUFFIX.sub("", name.path) + f".{ending}" for ending in WORLD_FILES[driver]]
    for path in paths:
        try:
            text = storage.sync.read(ObjectName(name.zone, name.container, path), 0, LARGEST_WORLD_FILE)
        except NotFoundError:
            continue
        try:
            a, d, b, e, x, y = (float(number) for number in text.decode("ascii").split())
        except ValueError as error:
            raise refused("bad_transform", f"the world file '{path}' must have six numbers") from error
        return Affine(a, b, x, d, e, y) @ Affine.translation(-0.5, -0.5)
    raise refused(
        "unsupported_format",
        f"'{name}' is a {driver} file without a place: upload its world file as '{paths[0]}', or convert it to GeoTIFF",
    )


def write_geotiff(source: PlacedSource, target: Path) -> None:
    """Write the source as a tiled GeoTIFF, in strips, so that memory does not depend on its size."""
    dataset = source.dataset
    bands = source.bands or list(dataset.indexes)
    profile = {
        "driver": "GTiff", "width": dataset.width, "height": dataset.height, "count": len(bands),
        "dtype": dataset.dtypes[bands[0] - 1], "crs": dataset.crs, "transform": dataset.transform,
        "nodata": dataset.nodata, "tiled": True, "blockxsize": 512, "blockysize": 512, "compress": "lzw",
        "BIGTIFF": "IF_SAFER",
    }  # fmt: skip
    rows = max(512, STRIP_BYTES // max(dataset.width * bytes_per_pixel(dataset), 1) // 512 * 512)
    with rasterio.open(target, "w", **profile) as copy:
        if not source.bands:
            describe(dataset, copy, [])
        for row in range(0, dataset.height, rows):
            window = Window(0, row, dataset.width, min(rows, dataset.height - row))
            copy.write(np.asarray(dataset.read(bands, window=window)), window=window)
        for index, band in enumerate(bands if source.bands else (), 1):
            copy.set_band_description(
                index, dataset.tags(band).get("long_name") or dataset.descriptions[band - 1] or ""
            )
            copy.scales, copy.offsets = (dataset.scales[band - 1],), (dataset.offsets[band - 1],)
            copy.units = (dataset.units[band - 1] or "",)
