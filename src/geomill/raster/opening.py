"""Opens untrusted rasters.

GDAL recognises a file by its content, not by its name, and some formats can make it read other files. So only drivers
of plain formats may open it, and no file beside it is read. The header is checked before memory is allocated for it.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import rasterio
from rasterio._err import CPLE_BaseError
from rasterio.errors import NotGeoreferencedWarning, RasterioError
from rasterio.io import DatasetReader
from rasterio.session import Session

from geomill.datasets.refusals import refused
from geomill.domain.access.confidential import without_places
from geomill.sdk import HandlerError, ObjectName, Storage, Zone
from geomill.storage.gdal import OFFLINE

FORMATS = {
    b"II*\x00": "GTiff",
    b"MM\x00*": "GTiff",
    b"II+\x00": "GTiff",
    b"MM\x00+": "GTiff",
    b"\x00\x00\x00\x0cjP": "JP2OpenJPEG",
    b"\xff\x4f\xff\x51": "JP2OpenJPEG",
}
"""The one driver that may open a file, by the file's first bytes."""
PICTURES = {b"\x89PNG\r\n\x1a\n": "PNG", b"\xff\xd8\xff": "JPEG"}
"""Formats that have no place of their own."""
CONVERT = "convert it with gdal_translate -of GTiff"
REFUSED = {
    b"EHFA_HEADER_TAG": ("an ERDAS IMAGINE file, which may lead to other files", CONVERT),
    b"SQLite format 3\0": ("a GeoPackage or another SQLite file", f"if it holds a raster, {CONVERT}"),
    b"<": ("an XML file", "upload the raster that it describes, or convert it to GeoTIFF with gdal_translate"),
    b"{": ("a JSON file", "name a Zarr store by its zarr.json or .zgroup; references to other files are not followed"),
    b"GRIB": ("a GRIB file", CONVERT),
}
"""Formats that are not read, and the remedy."""
CACHE_BYTES = 128 * 1024 * 1024
"""In bytes. GDAL takes small numbers for megabytes, rasterio does not."""
MEGABYTE, GIGABYTE = 1024**2, 1024**3
LONGEST_SIDE = 2_000_000
MOST_BANDS = 500
MOST_STEPS = 100_000
"""Time steps of a variable, of which one is read."""
LARGEST_BLOCK = 512 * MEGABYTE
LARGEST = 1024 * GIGABYTE
LARGEST_BOMB = 50 * GIGABYTE
BOMB_RATIO = 1_000
TYPES = ("uint8", "int8", "uint16", "int16", "uint32", "int32", "float32", "float64")


class StoreSession(Session):  # type: ignore[misc]  # rasterio has no types
    """Credentials for one task, which ignore those in the environment."""

    def __init__(self, options: Mapping[str, str]) -> None:
        self._options = dict(options)

    @property
    def credentials(self) -> dict[str, str]:
        return self._options

    @classmethod
    def hascreds(cls, config: Mapping[str, str]) -> bool:  # noqa: ARG003  rasterio's signature
        return False

    def get_credential_options(self) -> dict[str, str]:
        return self._options


@contextmanager
def environment(storage: Storage, zone: Zone, container: str) -> Iterator[None]:
    """Configure GDAL for one task: a bounded cache, no threads of its own, no files beside the named one."""
    options = storage.gdal_options(zone, container)
    session = StoreSession(options)
    settings: dict[str, Any] = {
        **({} if options else OFFLINE),
        "GDAL_CACHEMAX": CACHE_BYTES,
        "GDAL_NUM_THREADS": "1",
        "GDAL_DISABLE_READDIR_ON_OPEN": "EMPTY_DIR",
        "GDAL_PAM_ENABLED": "NO",
        "VSI_CACHE": "TRUE",
        "GDAL_INGESTED_BYTES_AT_OPEN": "65536",
        # Otherwise GDAL remembers parts of remote files by name for as long as the process lives, and a file that was
        # replaced would be read half from memory.
        "CPL_VSIL_CURL_NON_CACHED": "/vsiaz/:/vsis3/",
    }
    with rasterio.Env(session=session, **settings):
        yield


@contextmanager
def opened(storage: Storage, name: ObjectName) -> Iterator[DatasetReader]:
    """Open a dataset and check its header. GDAL errors inside the block become errors with a remedy."""
    with _opened(storage, name, storage.gdal_path(name)) as dataset:
        yield dataset


@contextmanager
def opened_copy(storage: Storage, name: ObjectName, copy: Path) -> Iterator[DatasetReader]:
    """Like `opened`, for a local copy of the object."""
    with _opened(storage, name, str(copy)) as dataset:
        yield dataset


@contextmanager
def opened_picture(storage: Storage, name: ObjectName) -> Iterator[DatasetReader]:
    """Like `opened`, for a PNG or JPEG file."""
    with _opened(storage, name, storage.gdal_path(name), PICTURES) as dataset:
        yield dataset


@contextmanager
def opened_variable(storage: Storage, name: ObjectName, path: str, driver: str = "netCDF") -> Iterator[DatasetReader]:
    """Like `opened`, for a NetCDF file or a variable of it or of a Zarr store, by GDAL's name of it."""
    with _checked(storage, name, path, driver, MOST_STEPS) as dataset:
        yield dataset


@contextmanager
def opened_coordinate(storage: Storage, name: ObjectName, path: str, driver: str) -> Iterator[DatasetReader]:
    """Open an array of coordinates, whose length the caller has checked. It may have types that rasters may not."""
    with _errors(storage, name, path), rasterio.open(path, driver=driver) as dataset:
        yield dataset


@contextmanager
def _opened(
    storage: Storage, name: ObjectName, path: str, formats: Mapping[bytes, str] = FORMATS
) -> Iterator[DatasetReader]:
    with _checked(storage, name, path, _driver(storage, name, formats)) as dataset:
        yield dataset


@contextmanager
def _checked(
    storage: Storage, name: ObjectName, path: str, driver: str, most_bands: int = MOST_BANDS
) -> Iterator[DatasetReader]:
    size = storage.sync.stat(name).size
    with _errors(storage, name, path), rasterio.open(path, driver=driver) as dataset:
        if dataset.count:  # a file of several variables has no bands of its own
            check_header(dataset, size, name, most_bands)
        yield dataset


@contextmanager
def _errors(storage: Storage, name: ObjectName, path: str) -> Iterator[None]:
    """Configure GDAL, and turn its errors into errors with a remedy."""
    with environment(storage, name.zone, name.container), warnings.catch_warnings():
        warnings.simplefilter("ignore", NotGeoreferencedWarning)  # reported as a refusal instead
        try:
            yield
        except (RasterioError, CPLE_BaseError) as error:
            raise _failure(error, name, remote=path.startswith("/vsi")) from error


def first_bytes(storage: Storage, name: ObjectName) -> bytes:
    return storage.sync.read(name, 0, 16)


def _driver(storage: Storage, name: ObjectName, formats: Mapping[bytes, str]) -> str:
    start = first_bytes(storage, name)
    for magic, driver in formats.items():
        if start.startswith(magic):
            return driver
    for magic, (kind, remedy) in REFUSED.items():
        if start.startswith(magic):
            raise refused("unsupported_format", f"'{name}' is {kind}: {remedy}")
    raise refused(
        "unsupported_format",
        f"'{name}' is none of GeoTIFF, JPEG 2000, NetCDF, a Zarr store, or PNG and JPEG with a world file: {CONVERT}",
    )


def check_header(dataset: DatasetReader, file_bytes: int, name: ObjectName, most_bands: int = MOST_BANDS) -> None:
    """Check the header by arithmetic, without reading pixels."""
    if max(dataset.width, dataset.height) > LONGEST_SIDE or dataset.count > most_bands:
        raise refused(
            "too_large",
            f"'{name}' claims {dataset.width:,} by {dataset.height:,} pixels in {dataset.count:,} bands; "
            f"at most {LONGEST_SIDE:,} by {LONGEST_SIDE:,} in {most_bands:,} are allowed",
        )
    if dataset.dtypes[0] not in TYPES or len(set(dataset.dtypes)) > 1:
        raise refused(
            "unsupported_type",
            f"'{name}' has values of the type {', '.join(sorted(set(dataset.dtypes)))}; "
            f"convert it to one of {', '.join(TYPES)}",
        )
    claimed = uncompressed_bytes(dataset)
    if claimed > LARGEST or (claimed > LARGEST_BOMB and claimed > BOMB_RATIO * file_bytes):
        raise refused(
            "too_large",
            f"'{name}' has {file_bytes:,} bytes and claims {claimed:,} bytes uncompressed, which is too large to open. "
            "If the file is valid, split it",
        )
    if (largest := block_bytes(dataset)) > LARGEST_BLOCK:
        raise refused(
            "block_too_large",
            f"one block of '{name}' has {largest:,} bytes uncompressed, more than {LARGEST_BLOCK:,}: "
            "rewrite it with tiles, for example with gdal_translate -co TILED=YES",
        )


def uncompressed_bytes(dataset: DatasetReader) -> int:
    return int(dataset.width * dataset.height * bytes_per_pixel(dataset))


def bytes_per_pixel(dataset: DatasetReader) -> int:
    return sum(np.dtype(dtype).itemsize for dtype in dataset.dtypes)


def block_bytes(dataset: DatasetReader) -> int:
    height, width = dataset.block_shapes[0]
    pixel = bytes_per_pixel(dataset)
    return int(height * width * (pixel if dataset.profile.get("interleave") == "pixel" else pixel // dataset.count))


def _failure(error: Exception, name: ObjectName, *, remote: bool) -> HandlerError:
    text = without_places(str(error.__cause__ or error))
    if remote:  # an interrupted download looks like a damaged file, so retry
        return HandlerError(f"'{name}' could not be read: {text}", code="unreadable")
    return refused("unreadable", f"'{name}' is damaged or incomplete: {text}")
