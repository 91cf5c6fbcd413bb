"""Variables and time steps of NetCDF files.

A NetCDF-4 file is an HDF5 file, and HDF5 can take pixels from any other file on the machine. So all links and layouts
of such a file are checked before GDAL opens it. The library reads only local files, so the file is copied.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import h5py
from rasterio.io import DatasetReader

from geomill.datasets.intermediates import DRAFT_PREFIX
from geomill.datasets.refusals import refused
from geomill.raster.cf import cf_times, chosen_step, chosen_variable
from geomill.raster.opening import opened_variable
from geomill.sdk import ObjectName, Storage

CLASSIC, HDF5 = b"CDF", b"\x89HDF\r\n\x1a\n"
MOST_OBJECTS = 10_000


def is_netcdf(start: bytes) -> bool:
    return start.startswith((CLASSIC, HDF5))


@contextmanager
def chosen(
    storage: Storage, name: ObjectName, variable: str | None, time: str | None
) -> Iterator[tuple[DatasetReader, int, str | None]]:
    """Open a variable. Yields the dataset, the band of the time step, and its time."""
    with _opened(storage, name, variable) as dataset:
        band, acquired = _step(dataset, name, time)
        yield dataset, band, acquired


def layer_times(storage: Storage, name: ObjectName, variable: str | None) -> list[str | None]:
    """Return the time of each step of a variable."""
    with _opened(storage, name, variable) as dataset:
        return band_times(dataset)


@contextmanager
def _opened(storage: Storage, name: ObjectName, variable: str | None) -> Iterator[DatasetReader]:
    with _local(storage, name) as path:
        _check_self_contained(path, name)
        with opened_variable(storage, name, str(path)) as file:
            names = {text.rpartition(":")[2]: text for text in file.subdatasets}
            if not names and file.count:  # GDAL opens the only variable of a file with the file
                names = {file.tags(1).get("NETCDF_VARNAME", ""): str(path)}
        place = names[chosen_variable(list(names), name, variable)]
        with opened_variable(storage, name, place) as dataset:
            yield dataset


@contextmanager
def _local(storage: Storage, name: ObjectName) -> Iterator[Path]:
    """Copy the file, so that the bytes that are checked are those that are read, whoever replaces the object."""
    with tempfile.TemporaryDirectory(prefix=DRAFT_PREFIX) as folder:
        local = Path(folder) / "source.nc"
        storage.sync.get_file(name, local)
        yield local


def _check_self_contained(path: Path, name: ObjectName) -> None:
    """Refuse an HDF5 file that takes data from other files."""
    with path.open("rb") as file:
        if not file.read(8).startswith(HDF5):
            return
    try:
        with h5py.File(path, "r") as file:
            groups: list[h5py.Group] = [file]
            count = 0
            while groups:
                group = groups.pop()
                for key in group:
                    count += 1
                    link = group.get(key, getlink=True)
                    if count > MOST_OBJECTS or not isinstance(link, h5py.HardLink):
                        raise _leads_elsewhere(name)
                    entry = group.get(key)
                    if isinstance(entry, h5py.Dataset) and (entry.external or entry.is_virtual):
                        raise _leads_elsewhere(name)
                    if isinstance(entry, h5py.Group):
                        groups.append(entry)
    except (OSError, RuntimeError, KeyError) as error:
        raise refused("unreadable", f"'{name}' is damaged or incomplete") from error


def _leads_elsewhere(name: ObjectName) -> Exception:
    return refused(
        "unsupported_format",
        f"'{name}' has links to other data, or very many objects: write its variables to a file of their own",
    )


def _step(dataset: DatasetReader, name: ObjectName, time: str | None) -> tuple[int, str | None]:
    times = band_times(dataset)
    index = chosen_step(times, name, time)
    return index + 1, times[index]


def band_times(dataset: DatasetReader) -> list[str | None]:
    """Return the time of each band, as RFC 3339, or None if the file does not state it in a usual calendar."""
    tags = dataset.tags()
    values = [dataset.tags(band).get("NETCDF_DIM_time") for band in dataset.indexes]
    return cf_times(tags.get("time#units", ""), tags.get("time#calendar", ""), values)
