"""Variables and time steps of Zarr stores, version 2 and 3, in a ZIP file or a folder."""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import pyproj
from pyproj.exceptions import CRSError
from rasterio.crs import CRS
from rasterio.io import DatasetReader
from rasterio.vrt import WarpedVRT

from geomill.datasets.intermediates import DRAFT_PREFIX
from geomill.datasets.refusals import refused
from geomill.domain.crs import is_crs
from geomill.raster.cf import cf_times, chosen_step, chosen_variable
from geomill.raster.opening import LONGEST_SIDE, MOST_STEPS, opened_coordinate, opened_variable
from geomill.raster.zarr_files import ZIP, folder_files, is_root, zipped_files
from geomill.raster.zarr_metadata import ZarrArray
from geomill.raster.zarr_store import ZarrStore
from geomill.sdk import ObjectName, Storage

GEOGRAPHIC = "EPSG:4326"
ASSUMED = f"the source states no coordinate system: {GEOGRAPHIC} is taken for its longitudes and latitudes"
_NORTH = re.compile(r"lat|latitude|degrees?_?n(orth)?", re.IGNORECASE)
_EAST = re.compile(r"lon|long|longitude|degrees?_?e(ast)?", re.IGNORECASE)
_KEPT = ("units", "long_name", "scale_factor", "add_offset")
"""Attributes of a variable that are passed to GDAL, if they are short texts or numbers."""


@dataclass
class ZarrLayer:
    """One time step of a variable, open."""

    dataset: DatasetReader
    acquired: str | None
    warnings: list[str] = field(default_factory=list)


def is_zarr(name: ObjectName, start: bytes) -> bool:
    return start.startswith(ZIP) or is_root(name)


@contextmanager
def opened_layer(storage: Storage, name: ObjectName, variable: str | None, time: str | None) -> Iterator[ZarrLayer]:
    """Open a time step of a variable."""
    with tempfile.TemporaryDirectory(prefix=DRAFT_PREFIX) as folder:
        target = Path(folder) / "layer"
        with _opened_store(storage, name, Path(folder)) as store:
            reading = _LayerReading.of(storage, store, variable, target)
            index, acquired = reading.step(time)
            warnings, nodata = reading.write(index)
        with opened_variable(storage, name, _gdal_name(target, "values", index), "Zarr") as dataset:
            if nodata is None:
                yield ZarrLayer(dataset, acquired, warnings)
                return
            with WarpedVRT(dataset, src_nodata=nodata, nodata=nodata, **_grid(dataset)) as masked:
                yield ZarrLayer(masked, acquired, warnings)


def layer_times(storage: Storage, name: ObjectName, variable: str | None) -> list[str | None]:
    """Return the time of each step of a variable. The list has one entry if the variable has no steps."""
    with (
        tempfile.TemporaryDirectory(prefix=DRAFT_PREFIX) as folder,
        _opened_store(storage, name, Path(folder)) as store,
    ):
        return _LayerReading.of(storage, store, variable, Path(folder) / "layer").times()


@contextmanager
def _opened_store(storage: Storage, name: ObjectName, folder: Path) -> Iterator[ZarrStore]:
    if is_root(name):
        yield ZarrStore(folder_files(storage, name), name)
        return
    source = folder / "source.zip"
    storage.sync.get_file(name, source)
    with zipped_files(source, name) as files:
        yield ZarrStore(files, name)
    source.unlink()


def _grid(dataset: DatasetReader) -> dict[str, Any]:
    """Return the options of a virtual dataset that keeps the grid."""
    step, crs = dataset.transform, dataset.crs or CRS.from_user_input(GEOGRAPHIC)
    size = {"width": dataset.width, "height": dataset.height}
    return {"src_crs": crs, "crs": crs, "src_transform": step, "transform": step, **size}


def _variables(store: ZarrStore) -> list[str]:
    """Return the arrays of two or more dimensions that are not the bounds of another."""
    bounds = {str(store.attributes(path).get("bounds")) for path in store.nodes}
    names = [
        path
        for path, node in sorted(store.nodes.items())
        if isinstance(node.get("shape"), list) and len(node["shape"]) > 1 and path.rpartition("/")[2] not in bounds
    ]
    if not names:
        raise refused("unsupported_format", f"'{store.name}' is a Zarr store without an array of two dimensions")
    return names


def _gdal_name(store: Path, array: str, index: tuple[int, ...] = ()) -> str:
    return f'ZARR:"{store}":/{array}' + "".join(f":{step}" for step in index)


@dataclass
class _LayerReading:
    storage: Storage
    store: ZarrStore
    path: str
    array: ZarrArray
    target: Path

    @classmethod
    def of(cls, storage: Storage, store: ZarrStore, variable: str | None, target: Path) -> Self:
        """Begin to read the variable that the option names, or the only one."""
        path = chosen_variable(_variables(store), store.name, variable)
        return cls(storage, store, path, store.array(path), target)

    def __post_init__(self) -> None:
        names = self.array.attributes.get("_ARRAY_DIMENSIONS")
        if not isinstance(names, list) or len(names) != len(self.array.shape) or not all(names):
            raise self._unsupported("dimensions without names: write it with xarray, or convert it to NetCDF")
        self.dimensions = [str(name) for name in names]
        if self._is(_EAST, self.dimensions[-2]) or self._is(_NORTH, self.dimensions[-1]):
            raise self._unsupported("columns before rows: transpose it to (time, y, x)")
        self.target.mkdir()
        (self.target / ".zgroup").write_text(json.dumps({"zarr_format": 2}))

    def times(self) -> list[str | None]:
        """Return the time of each step along the only dimension that has several."""
        for number, (dimension, length) in enumerate(zip(self.dimensions[:-2], self.array.shape[:-2], strict=True)):
            if length > 1 and (times := self._times(dimension, length, f"t{number}")):
                return times
        return [None]

    def step(self, time: str | None) -> tuple[tuple[int, ...], str | None]:
        """Return the index along all dimensions but the last two, and the time there."""
        index, acquired = [], None
        for number, (dimension, length) in enumerate(zip(self.dimensions[:-2], self.array.shape[:-2], strict=True)):
            times = self._times(dimension, length, f"t{number}")
            if times is None and length > 1:
                raise self._unsupported(
                    f"{length:,} layers along '{dimension[:60]}', which is not a time: write one of them as a variable"
                )
            step = chosen_step(times, self.store.name, time) if times else 0
            acquired = times[step] if times else acquired
            index.append(step)
        return tuple(index), acquired

    def write(self, index: tuple[int, ...]) -> tuple[list[str], float | None]:
        """Write the layer and its coordinates for GDAL. Returns warnings, and the nodata value if GDAL does not know
        it."""
        for target, dimension, length in zip("yx", self.dimensions[-2:], self.array.shape[-2:], strict=True):
            self._copy_coordinate(dimension, length, target)
        wkt, assumed = self._crs()
        attributes: dict[str, Any] = {key: self.array.attributes.get(key) for key in _KEPT}
        kept = {key: value for key, value in attributes.items() if _is_plain(value)}
        names = [f"t{number}" for number in range(len(index))] + ["y", "x"]
        crs = {"_CRS": {"wkt": wkt}} if wkt else {}
        copy = self.store.copy_layer(
            self.path, self.array, index, self.target / "values", _ARRAY_DIMENSIONS=names, **kept, **crs
        )
        warnings = [ASSUMED] if assumed else []
        if copy.missing:
            warnings.append(
                f"{copy.missing:,} of {copy.chunks:,} chunks are not stored: their pixels have the fill value "
                f"{self.array.fill or 0}"
            )
        return warnings, None if copy.has_nodata else self.array.nodata

    def _unsupported(self, feature: str) -> Exception:
        return refused(
            "unsupported_dimensions", f"the variable '{self.path[:60]}' of '{self.store.name}' has {feature}"
        )

    def _beside(self, name: str) -> str | None:
        """Return the path of an array in the group of the variable, or in the root."""
        group = self.path.rpartition("/")[0]
        return next((path for path in (f"{group}/{name}".lstrip("/"), name) if path in self.store.nodes), None)

    def _is(self, pattern: re.Pattern[str], dimension: str) -> bool:
        path = self._beside(dimension)
        attributes = self.store.attributes(path) if path else {}
        texts = (dimension, attributes.get("units"), attributes.get("standard_name"))
        return any(pattern.fullmatch(text) for text in texts if isinstance(text, str))

    def _copy_coordinate(self, dimension: str, length: int, target: str) -> bool:
        """Copy the coordinates of a dimension. Returns whether it has some."""
        path = self._beside(dimension)
        array = self.store.array(path) if path else None
        if path is None or array is None or array.shape != (length,) or length > max(LONGEST_SIDE, MOST_STEPS):
            return False
        self.store.copy_layer(path, array, (), self.target / target, _ARRAY_DIMENSIONS=[target])
        return True

    def _times(self, dimension: str, length: int, target: str) -> list[str | None] | None:
        """Return the time of each step, or None if the dimension is not a time."""
        path = self._beside(dimension)
        attributes = self.store.attributes(path) if path else {}
        units = str(attributes.get("units", ""))
        if " since " not in units or length > MOST_STEPS or not self._copy_coordinate(dimension, length, target):
            return None
        with opened_coordinate(self.storage, self.store.name, _gdal_name(self.target, target), "Zarr") as dataset:
            values = dataset.read(1).ravel().tolist()
        return cf_times(units, str(attributes.get("calendar", "")), values)

    def _crs(self) -> tuple[str | None, bool]:
        """Return the coordinate system as WKT, and whether it was assumed."""
        mapping = str(self.array.attributes.get("grid_mapping", "")).partition(":")[0].strip()
        for name in (mapping, "spatial_ref", "crs"):
            if name and (path := self._beside(name)) and (wkt := _cf_crs(self.store.attributes(path))):
                return wkt, False
        own = self.array.attributes.get("_CRS")
        if isinstance(own, dict) and (wkt := _cf_crs({"crs_wkt": own.get("wkt")})):
            return wkt, False
        if self._is(_NORTH, self.dimensions[-2]) and self._is(_EAST, self.dimensions[-1]):
            return pyproj.CRS.from_user_input(GEOGRAPHIC).to_wkt(), True
        return None, False


def _is_plain(value: object) -> bool:
    return isinstance(value, (int, float)) or (isinstance(value, str) and len(value) < 200)


def _cf_crs(attributes: dict[str, Any]) -> str | None:
    """Return the system that a grid mapping describes, as WKT. Texts in it are names, never paths or addresses."""
    texts = (attributes.get("crs_wkt"), attributes.get("spatial_ref"))
    numbers = {key: value for key, value in attributes.items() if isinstance(value, (int, float, list))}
    try:
        for text in texts:
            if isinstance(text, str) and is_crs(text):
                return pyproj.CRS.from_user_input(text).to_wkt()
        if isinstance(attributes.get("grid_mapping_name"), str):
            return pyproj.CRS.from_cf({**numbers, "grid_mapping_name": attributes["grid_mapping_name"]}).to_wkt()
    except (CRSError, KeyError, TypeError, ValueError):
        return None  # then the submitter must give source_crs
    return None
