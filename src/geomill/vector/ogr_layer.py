"""Layers that GDAL reads."""

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

from geomill.contract.inspection import KnownFrom
from geomill.datasets.refusals import refused
from geomill.vector.attributes import FALLBACK_ENCODING
from geomill.vector.csv_profile import checked_encoding
from geomill.vector.csv_source import CsvSource, encoding_detected
from geomill.vector.facts import Chunk, Format, LayerText, Reading, Remark
from geomill.vector.formats import DRIVERS
from geomill.vector.geopackage import check_layer, feature_layers, quoted, reading, refuse_programs
from geomill.vector.layers import FeatureBatch, binary, read_errors_as_refusals, refuse_repeated
from geomill.vector.soundness import types

_FIRST_CURVE = 8
"""The WKB number of the first type that may have arcs."""
GEOMETRY_NAME = "wkb_geometry"
"""The name of the geometry column in Arrow if the file has none."""
_IMMUTABLE = {"IMMUTABLE": "YES"}
"""Prevents files beside the source, such as SQLite's journals."""
_OPENING_FEATURES = "OGR_GEOJSON_MAX_FEATURES_FIRST_PASS"
"""GDAL's option for the number of features that it reads to open a GeoJSON. Default: all."""


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
    text: LayerText
    options: dict[str, str] = field(default_factory=dict)
    remarks: list[Remark] = field(default_factory=list)

    @classmethod
    def opened(cls, path: Path, file_format: Format, name: str, reading: Reading) -> OgrLayer:
        """Open a layer. The column names of a Shapefile may have another encoding than it declares, if it declares
        one."""
        if reading.encoding:
            reading = reading.model_copy(update={"encoding": checked_encoding(reading.encoding)})
        try:
            return cls._opened(path, file_format, name, reading)
        except UnicodeDecodeError:
            if file_format is not Format.SHAPEFILE or reading.encoding:
                raise
        layer = cls._opened(path, file_format, name, reading.model_copy(update={"encoding": FALLBACK_ENCODING}))
        layer.text = LayerText(encoding=FALLBACK_ENCODING, known_from=KnownFrom.DETECTED)
        layer.remarks.append(encoding_detected(FALLBACK_ENCODING))
        return layer

    @classmethod
    def _opened(cls, path: Path, file_format: Format, name: str, reading: Reading) -> OgrLayer:
        opening = Opening.of(path, file_format, name, reading)
        rows = opening.declared_rows
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
        query = f"SELECT min(id), max(id) FROM (SELECT {{id}} AS id FROM {{table}} ORDER BY 1 LIMIT {size})"  # noqa: S608
        low, high = self._ids(query)
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
        """Replace arcs by lines. GDAL converts them only if it is not asked for Arrow."""
        curved = np.flatnonzero(types(wkb) % 1000 >= _FIRST_CURVE)
        if not len(curved):
            return wkb
        if self._numbered:
            window: dict[str, Any] = {"fids": ids[curved]}
        else:
            window = {"skip_features": int(ids[0]) - 1, "max_features": len(ids)}
        about = {"layer": self.name, "encoding": self.encoding, "columns": [], **window, **self.options}
        read = pyogrio.raw.read(self.path, **about)[2]
        geometries = wkb.to_numpy(zero_copy_only=False)
        geometries[curved] = read if self._numbered else read[curved]
        return pa.array(geometries, pa.binary())

    @property
    def _numbered(self) -> bool:
        """Whether rows are selected by feature id: those of a GeoPackage that is not a view."""
        return self.format is Format.GEOPACKAGE and bool(self.fid_column)

    def _attributes(self, columns: Sequence[str] | None) -> list[str]:
        return self.schema.names if columns is None else list(columns)


@dataclass(frozen=True)
class Opening:
    """The parameters for opening a layer with GDAL, after a check of the driver that GDAL would use."""

    path: Path
    format: Format
    about: dict[str, Any]
    options: dict[str, str]
    crs: str | None
    """The CRS to use if the file declares none."""
    declared_rows: int
    """The declared number of features, or -1 if it is known only after reading them."""
    text: LayerText
    remarks: list[Remark]

    @classmethod
    def of(
        cls, path: Path, file_format: Format, name: str, instructions: Reading, csv: CsvSource | None = None
    ) -> Opening:
        options: dict[str, str] = dict(_IMMUTABLE) if file_format is Format.GEOPACKAGE else {}
        crs = None
        if file_format is Format.GEOPACKAGE:
            with read_errors_as_refusals(name):
                refuse_programs(path, name)
        if csv is not None:
            path, options, crs = csv.path, csv.options, csv.crs
        layer = _choose(path, file_format, name, instructions.layer)
        if file_format is Format.GEOPACKAGE and layer is not None:
            with read_errors_as_refusals(name):
                check_layer(path, name, layer)
        about = {"layer": layer, "encoding": None if csv else instructions.encoding, **options}
        with short_first_pass(1):
            info = _read_info(path, name, about, count=False)
        if info["driver"] not in DRIVERS[file_format].names:
            raise refused(
                "unsupported_format", f"'{name}' looks like {file_format.value}, but GDAL does not read it as such"
            )
        text = csv.text if csv else _text(file_format, instructions.encoding, info["encoding"])
        remarks = list(csv.remarks) if csv else []
        return cls(path, file_format, about, options, crs, info["features"], text, remarks)

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
            text=self.text,
            remarks=self.remarks,
        )


def _text(file_format: Format, encoding: str | None, declared: str) -> LayerText:
    if file_format is not Format.SHAPEFILE:
        return LayerText(encoding="utf-8", known_from=KnownFrom.FORMAT)
    known_from = KnownFrom.OPTION if encoding else KnownFrom.FILE
    return LayerText(encoding=(encoding or declared).lower(), known_from=known_from)


@contextmanager
def short_first_pass(features: int | None) -> Iterator[None]:
    """Let GDAL read only so many features of a GeoJSON to find its columns; None means all."""
    pyogrio.set_gdal_config_options({_OPENING_FEATURES: str(features) if features else None})
    try:
        yield
    finally:
        pyogrio.set_gdal_config_options({_OPENING_FEATURES: None})


def _read_info(path: Path, name: str, about: dict[str, Any], *, count: bool = True) -> dict[str, Any]:
    try:
        info: dict[str, Any] = pyogrio.read_info(path, force_feature_count=count, **about)
    except IndexError as error:  # pyogrio's error for a file without layers
        raise refused("unreadable", f"'{name}' is damaged or incomplete: it has no layer") from error
    return info


def _choose(path: Path, file_format: Format, name: str, requested: str | None) -> str | None:
    """Return the requested layer, or the only one. Returns None for formats without layers."""
    if file_format is Format.GEOPACKAGE:
        layers = feature_layers(path)
    elif file_format is Format.KML:
        layers = [str(layer) for layer, kind in pyogrio.list_layers(path) if kind is not None]
    else:
        return None
    names = ", ".join(layers)[:300]
    if not layers:
        raise refused(
            "no_geometry",
            f"'{name}' has no layer of features: if it holds a raster, convert it with gdal_translate -of GTiff",
        )
    if requested is None and len(layers) > 1:
        raise refused(
            "choose_layer", f"'{name}' has {len(layers)} layers: give 'layer' as one of {names}", layer=layers
        )
    if requested is not None and requested not in layers:
        raise refused("choose_layer", f"'{name}' has no layer '{requested}'; it has {names}", layer=layers)
    return requested or layers[0]
