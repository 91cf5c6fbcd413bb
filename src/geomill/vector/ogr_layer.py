"""Layers that are read through GDAL."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyogrio
from numpy.typing import NDArray

from geomill.datasets.refusals import refused
from geomill.vector.csv_places import places
from geomill.vector.facts import Chunk, Format, Reading
from geomill.vector.formats import DRIVERS
from geomill.vector.geopackage import check_layer, feature_layers, quoted, reading, refuse_programs
from geomill.vector.layers import FeatureBatch, binary, refuse_repeated, told
from geomill.vector.soundness import types

_FIRST_CURVE = 8
"""WKB's number of the first type that may have arcs."""
GEOMETRY_NAME = "wkb_geometry"
"""In Arrow, where the file has no name for it."""
_IMMUTABLE = {"IMMUTABLE": "YES"}
"""Nothing is written beside it, such as the journals of SQLite."""
_LOOKED_AT = "OGR_GEOJSON_MAX_FEATURES_FIRST_PASS"
"""GDAL's option: so many features are read before a GeoJSON is open, all when it is absent."""


@dataclass
class OgrLayer:
    path: Path
    format: Format
    name: str | None
    rows: int
    geometry_type: str
    crs: str | None
    schema: pa.Schema
    fid_column: str
    encoding: str | None
    options: dict[str, str] = field(default_factory=dict)

    @classmethod
    def opened(cls, path: Path, found: Format, name: str, reading: Reading) -> OgrLayer:
        opening = Opening.of(path, found, name, reading)
        rows = opening.announced
        if rows < 0:
            rows = _read_info(path, name, opening.about)["features"]
        with pyogrio.open_arrow(path, batch_size=1, use_pyarrow=True, **opening.about) as (meta, reader):
            refuse_repeated(reader.schema.names, name)
            return opening.layer(meta, reader.schema, rows)

    def bounds_of_ids(self) -> tuple[int, int]:
        if not self._numbered:
            return 0, self.rows
        low, high = self._ids("SELECT (SELECT min({id}) FROM {table}), (SELECT max({id}) FROM {table})")  # by the index
        return (low, high + 1) if low is not None and high is not None else (0, 0)

    def beginning(self, size: int) -> Chunk:
        if not self._numbered:
            return Chunk(number=0, start=0, stop=size)
        found = f"SELECT min(id), max(id) FROM (SELECT {{id}} AS id FROM {{table}} ORDER BY 1 LIMIT {size})"  # noqa: S608
        low, high = self._ids(found)
        return Chunk(number=0, start=low or 0, stop=(high or 0) + 1)

    def _ids(self, query: str) -> tuple[int | None, int | None]:
        with reading(self.path) as database:
            low, high = database.execute(
                query.format(id=quoted(self.fid_column), table=quoted(self.name or ""))
            ).fetchone()
        return low, high

    def batches(self, chunk: Chunk, size: int, columns: Sequence[str] | None = None) -> Iterator[FeatureBatch]:
        if self._numbered:
            fid = quoted(self.fid_column)
            window: dict[str, Any] = {
                "where": f"{fid} >= {chunk.start} AND {fid} < {chunk.stop}",
                "return_fids": True,
            }
        else:
            window = {"skip_features": chunk.start}
        about = {"layer": self.name, "encoding": self.encoding, "columns": columns, **window, **self.options}
        done = chunk.start
        with pyogrio.open_arrow(self.path, batch_size=size, use_pyarrow=True, **about) as (meta, reader):
            geometry = meta["geometry_name"] or GEOMETRY_NAME
            for batch in reader:
                if self._numbered:
                    ids = batch.column(self.fid_column).to_numpy(zero_copy_only=False).astype(np.int64)
                else:
                    batch = batch.slice(0, chunk.stop - done)
                    ids = np.arange(done, done + len(batch), dtype=np.int64) + 1
                    done += len(batch)
                wkb = self.straight(binary(batch.column(geometry)), ids)
                yield FeatureBatch(ids, wkb, batch.select(self._attributes(columns)))
                if done >= chunk.stop:
                    break

    def straight(self, wkb: pa.Array, ids: NDArray[np.int64]) -> pa.Array:
        """With lines in place of arcs, which GDAL makes when it is not asked for Arrow."""
        curved = np.flatnonzero(types(wkb) % 1000 >= _FIRST_CURVE)
        if not len(curved):
            return wkb
        if self._numbered:
            window: dict[str, Any] = {"fids": ids[curved]}
        else:
            window = {"skip_features": int(ids[0]) - 1, "max_features": len(ids)}
        about = {"layer": self.name, "encoding": self.encoding, "columns": [], **window, **self.options}
        read = pyogrio.raw.read(self.path, **about)[2]
        made = wkb.to_numpy(zero_copy_only=False)
        made[curved] = read if self._numbered else read[curved]
        return pa.array(made, pa.binary())

    @property
    def _numbered(self) -> bool:
        """Whether rows are reached by their feature ids: those of a GeoPackage, unless it is a view."""
        return self.format is Format.GEOPACKAGE and bool(self.fid_column)

    def _attributes(self, columns: Sequence[str] | None) -> list[str]:
        return self.schema.names if columns is None else list(columns)


@dataclass(frozen=True)
class Opening:
    """How GDAL is asked for a layer, after a look by which driver it would read it."""

    path: Path
    format: Format
    about: dict[str, Any]
    options: dict[str, str]
    crs: str | None
    """Where the file has none of its own."""
    announced: int
    """Features, -1 if that is only known by reading them."""

    @classmethod
    def of(cls, path: Path, found: Format, name: str, wanted: Reading) -> Opening:
        options: dict[str, str] = dict(_IMMUTABLE) if found is Format.GEOPACKAGE else {}
        crs = None
        if found is Format.GEOPACKAGE:
            with told(name):
                refuse_programs(path, name)
        if found is Format.CSV:
            where = places(path, name, wanted)
            options, crs = where.options, where.crs
        layer = _choose(path, found, name, wanted.layer)
        if found is Format.GEOPACKAGE and layer is not None:
            with told(name):
                check_layer(path, name, layer)
        about = {"layer": layer, "encoding": wanted.encoding, **options}
        with _hasty():
            info = _read_info(path, name, about, count=False)
        if info["driver"] not in DRIVERS[found].names:
            raise refused("unsupported_format", f"'{name}' is no {found.value}, whatever it looks like")
        return cls(path, found, about, options, crs, info["features"])

    def layer(self, meta: dict[str, Any], schema: pa.Schema, rows: int) -> OgrLayer:
        geometry = meta["geometry_name"] or GEOMETRY_NAME
        return OgrLayer(
            path=self.path,
            format=self.format,
            name=self.about["layer"],
            rows=rows,
            geometry_type=str(meta["geometry_type"]),
            crs=meta["crs"] or self.crs,
            schema=pa.schema([column for column in schema if column.name != geometry]),
            fid_column=meta["fid_column"],
            encoding=self.about["encoding"],
            options=self.options,
        )


@contextmanager
def _hasty() -> Iterator[None]:
    pyogrio.set_gdal_config_options({_LOOKED_AT: "1"})
    try:
        yield
    finally:
        pyogrio.set_gdal_config_options({_LOOKED_AT: None})


def _read_info(path: Path, name: str, about: dict[str, Any], *, count: bool = True) -> dict[str, Any]:
    try:
        info: dict[str, Any] = pyogrio.read_info(path, force_feature_count=count, **about)
    except IndexError as error:  # pyogrio's way to say that there is no layer
        raise refused("unreadable", f"'{name}' is damaged or incomplete: there is no layer in it") from error
    return info


def _choose(path: Path, found: Format, name: str, wanted: str | None) -> str | None:
    """The layer that is meant. One alone need not be named."""
    if found is Format.GEOPACKAGE:
        layers = feature_layers(path)
    elif found is Format.KML:
        layers = [str(layer) for layer, kind in pyogrio.list_layers(path) if kind is not None]
    else:
        return None
    known = ", ".join(layers)[:300]
    if not layers:
        raise refused("no_geometry", f"'{name}' has no layer of features")
    if wanted is None and len(layers) > 1:
        raise refused("choose_layer", f"'{name}' has {len(layers)} layers: give 'layer' as one of {known}")
    if wanted is not None and wanted not in layers:
        raise refused("choose_layer", f"'{name}' has no layer '{wanted}'; it has {known}")
    return wanted or layers[0]
