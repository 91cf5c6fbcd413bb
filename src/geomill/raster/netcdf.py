"""Variables and time steps of NetCDF files.

A NetCDF-4 file is an HDF5 file, and HDF5 can take pixels from any other file on the machine. So all links and layouts
of such a file are checked before GDAL opens it. The library reads only local files, so the file is copied.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import h5py
from rasterio.io import DatasetReader

from geomill.datasets.intermediates import DRAFT_PREFIX
from geomill.datasets.refusals import refused
from geomill.raster.opening import opened_variable
from geomill.sdk import ObjectName, Storage

CLASSIC, HDF5 = b"CDF", b"\x89HDF\r\n\x1a\n"
MOST_OBJECTS = 10_000
MOST_NAMED = 20
CALENDARS = ("", "standard", "gregorian", "proleptic_gregorian")
_UNITS = re.compile(r"(second|minute|hour|day)s? since (\S+)(?:[ T](\S+))?.*", re.IGNORECASE)


def is_netcdf(start: bytes) -> bool:
    return start.startswith((CLASSIC, HDF5))


@contextmanager
def chosen(
    storage: Storage, name: ObjectName, variable: str | None, time: str | None
) -> Iterator[tuple[DatasetReader, int, str | None]]:
    """Open a variable. Yields the dataset, the band of the time step, and its time."""
    with _local(storage, name) as path:
        _check_self_contained(path, name)
        with opened_variable(storage, name, str(path)) as file:
            names = {text.rpartition(":")[2]: text for text in file.subdatasets}
        place = names.get(variable or "") if variable or len(names) > 1 else next(iter(names.values()), str(path))
        if place is None:
            raise refused(
                "choose_variable",
                f"'{name}' has the variables {_listed(names)}: name one of them in the option variable",
            )
        with opened_variable(storage, name, place) as dataset:
            band, acquired = _step(dataset, name, time)
            yield dataset, band, acquired


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
                    thing = group.get(key)
                    if isinstance(thing, h5py.Dataset) and (thing.external or thing.is_virtual):
                        raise _leads_elsewhere(name)
                    if isinstance(thing, h5py.Group):
                        groups.append(thing)
    except (OSError, RuntimeError, KeyError) as error:
        raise refused("unreadable", f"'{name}' is damaged or incomplete") from error


def _leads_elsewhere(name: ObjectName) -> Exception:
    return refused(
        "unsupported_format",
        f"'{name}' has links to other data, or very many objects: write its variables to a file of their own",
    )


def _step(dataset: DatasetReader, name: ObjectName, time: str | None) -> tuple[int, str | None]:
    times = band_times(dataset)
    if time is None and dataset.count == 1:
        return 1, times[0]
    known = [text for text in times if text]
    bands = [band for band, text in enumerate(times, 1) if time and text and text.startswith(time.rstrip("Z"))]
    if len(bands) == 1:
        return bands[0], times[bands[0] - 1]
    if not known or len(set(known)) < len(known):
        raise refused(
            "unsupported_dimensions",
            f"'{name}' has {dataset.count:,} layers that cannot be told apart by their time: "
            "write the wanted one to a file of its own, for example with ncks or gdal_translate -b",
        )
    raise refused("choose_time", f"'{name}' has the times {_listed(known)}: name one of them in the option time")


def band_times(dataset: DatasetReader) -> list[str | None]:
    """Return the time of each band, as RFC 3339, or None if the file does not state it in a usual calendar."""
    tags = dataset.tags()
    units = _UNITS.fullmatch(tags.get("time#units", "").strip())
    if units is None or tags.get("time#calendar", "").lower() not in CALENDARS:
        return [None] * dataset.count
    try:
        start = datetime.fromisoformat(f"{units[2]}T{units[3] or '00:00:00'}".removesuffix("Z"))
    except ValueError:
        return [None] * dataset.count
    start = start if start.tzinfo else start.replace(tzinfo=UTC)
    return [_moment(dataset.tags(band).get("NETCDF_DIM_time"), units[1].lower(), start) for band in dataset.indexes]


def _moment(value: str | None, unit: str, start: datetime) -> str | None:
    try:
        moment = start + timedelta(**{f"{unit}s": float(value or "nan")})
    except (ValueError, OverflowError):
        return None
    return moment.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


def _listed(names: object) -> str:
    texts = [str(name)[:60] for name in names]  # type: ignore[attr-defined]
    more = f" and {len(texts) - MOST_NAMED:,} more" if len(texts) > MOST_NAMED else ""
    return ", ".join(texts[:MOST_NAMED]) + more
