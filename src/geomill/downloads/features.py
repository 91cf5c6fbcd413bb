"""Writes features to a file, some thousands of rows at a time. Runs in a child process."""

from __future__ import annotations

import json
import zipfile
from base64 import b64encode
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pyarrow as pa
import pyarrow.parquet as pq
import pyproj
import shapely

from geomill.downloads.csv_rows import csv_rows
from geomill.downloads.formats import KINDS, DownloadFormat
from geomill.downloads.order import FeaturesOrder

ROWS = 5_000
SESSION = "-c default_transaction_read_only=on -c jit=off -c client_connection_check_interval=1s"
"""Settings of the session. The server ends a query whose child was killed."""
SECONDS = 300
"""The longest time of a query in an answer."""
GEOMETRY = "geom"
_TYPES = {
    "boolean": pa.bool_(),
    "smallint": pa.int16(),
    "integer": pa.int32(),
    "bigint": pa.int64(),
    "real": pa.float32(),
    "float8": pa.float64(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us"),
    "timestamptz": pa.timestamp("us", tz="UTC"),
    "bytea": pa.binary(),
}
_AS_TEXT = ("timestamp", "timestamptz", "bytea")
"""Types that a shapefile does not have."""


class TooManyRows(Exception):  # noqa: N818  it becomes an outcome
    pass


def write_features(
    order: FeaturesOrder, folder: Path, tell: Callable[[int], None] | None = None, seconds: int = SECONDS
) -> tuple[Path, int]:
    """Write the file. Returns its path and the number of rows. `tell` is called with the rows so far, and may raise."""
    batches = _Batches(order, tell, seconds)
    try:
        return _write(order, batches, folder), batches.rows
    except Exception as error:
        if batches.rows > order.most_rows:  # GDAL and Arrow wrap what a batch raises
            raise TooManyRows from error
        raise


def _write(order: FeaturesOrder, batches: _Batches, folder: Path) -> Path:
    kind = KINDS[order.format]
    path = folder / f"{order.name}.{kind.suffix}"
    if order.format is DownloadFormat.GEOPARQUET:
        _parquet(order, batches, path)
    elif order.format is DownloadFormat.CSV:
        _csv(order, batches, path)
    elif order.format is DownloadFormat.GEOJSON:
        _geojson(order, batches, path)
    elif order.format is DownloadFormat.FLATGEOBUF:
        path = _flatgeobuf(order, batches, path)
    elif order.format is DownloadFormat.GEOPACKAGE:
        path = _by_gdal(order, batches, path, kind.driver, FID=_feature_id(order))
    else:
        path = _by_gdal(order, batches, path, kind.driver)
    return path


def _flatgeobuf(order: FeaturesOrder, batches: _Batches, path: Path) -> Path:
    """Write the file without a spatial index if geometries are missing, which an index cannot have."""
    driver = KINDS[order.format].driver
    try:
        return _by_gdal(order, batches, path, driver)
    except Exception:
        if not batches.lack_geometries or batches.rows > order.most_rows:
            raise
    path.unlink(missing_ok=True)
    batches.rows = 0
    return _by_gdal(order, batches, path, driver, SPATIAL_INDEX="NO")


def _feature_id(order: FeaturesOrder) -> str:
    """Return a name for the ids that GDAL gives to features, which no column has."""
    names = {column.name.lower() for column in order.columns}
    return next(name for name in ("fid", *(f"fid_{number}" for number in range(len(names) + 1))) if name not in names)


class _Batches:
    """Rows of the database as Arrow batches."""

    def __init__(self, order: FeaturesOrder, tell: Callable[[int], None] | None, seconds: int) -> None:
        self._order, self._tell, self._seconds, self.rows = order, tell, seconds, 0
        self.lack_geometries = False
        """Whether a geometry was missing in the rows so far."""
        texts = _AS_TEXT if order.format is DownloadFormat.SHAPEFILE else ()
        self._types = [
            pa.string() if column.type in texts else _TYPES.get(column.type, pa.string()) for column in order.columns
        ]
        names = [column.name for column in order.columns]
        fields = [pa.field(name, kind) for name, kind in zip(names, self._types, strict=True)]
        self.schema = pa.schema([*fields, pa.field(GEOMETRY, pa.binary())])

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        for rows in self.plain():
            columns = list(zip(*rows, strict=True))
            self.lack_geometries = self.lack_geometries or None in columns[-1]
            arrays = [
                pa.array(_texts(values) if pa.types.is_string(kind) else values, kind)
                for values, kind in zip(columns, [*self._types, pa.binary()], strict=True)
            ]
            yield pa.record_batch(arrays, schema=self.schema)

    def plain(self) -> Iterator[list[tuple[Any, ...]]]:
        """Yield rows in groups. Raises `TooManyRows`."""
        order = self._order
        with (
            psycopg.connect(
                order.url,
                password=order.password,
                connect_timeout=10,
                application_name="geomill download",
                options=f"{SESSION} -c statement_timeout={self._seconds}s",
            ) as conn,
            conn.cursor(name="download") as cursor,
        ):
            cursor.execute(order.statement.encode())
            while rows := cursor.fetchmany(ROWS):
                self.rows += len(rows)
                if self.rows > order.most_rows:
                    raise TooManyRows
                if self._tell:
                    self._tell(self.rows)
                yield rows


def _texts(values: Any) -> list[str | None]:
    return [value if value is None or isinstance(value, str) else _text(value) for value in values]


def _text(value: Any) -> str:
    if isinstance(value, dict | list):
        return json.dumps(value, ensure_ascii=False)
    return b64encode(value).decode() if isinstance(value, bytes) else str(value)


def _parquet(order: FeaturesOrder, batches: _Batches, path: Path) -> None:
    shape = [order.geometry_type.title()] if order.geometry_type else []
    crs = pyproj.CRS.from_epsg(order.srid).to_json_dict()
    about = {"encoding": "WKB", "geometry_types": _known(shape), "crs": crs}
    geo = {"version": "1.1.0", "primary_column": GEOMETRY, "columns": {GEOMETRY: about}}
    schema = batches.schema.with_metadata({b"geo": json.dumps(geo).encode()})
    with pq.ParquetWriter(path, schema, compression="zstd") as writer:
        for batch in batches:
            writer.write_batch(batch.replace_schema_metadata(schema.metadata))


_SHAPES = ("Point", "LineString", "Polygon", "MultiPoint", "MultiLineString", "MultiPolygon", "GeometryCollection")


def _known(shapes: list[str]) -> list[str]:
    """Return types as GeoParquet writes them; none if the type is not known, which GeoParquet allows."""
    by_letters = {name.lower(): name for name in _SHAPES}
    return [by_letters[shape.lower()] for shape in shapes if shape.lower() in by_letters]


def _csv(order: FeaturesOrder, batches: _Batches, path: Path) -> None:
    names = [column.name for column in order.columns]
    with path.open("w", encoding="utf-8", newline="") as file:
        first = True
        for rows in batches.plain():
            shapes = shapely.to_wkt(shapely.from_wkb([row[-1] for row in rows]), rounding_precision=-1)
            features = (
                {**dict(zip(names, map(_cell, row), strict=False)), "geometry": shape}
                for row, shape in zip(rows, shapes, strict=True)
            )
            lines = list(csv_rows(features))
            file.writelines(lines if first else lines[1:])
            first = False
        if first:
            file.writelines(list(csv_rows([dict.fromkeys([*names, "geometry"], "")]))[:1])


def _cell(value: Any) -> Any:
    return _text(value) if isinstance(value, dict | list | bytes) else value


def _geojson(order: FeaturesOrder, batches: _Batches, path: Path) -> None:
    names = [column.name for column in order.columns]
    with path.open("w", encoding="utf-8") as file:
        file.write('{"type":"FeatureCollection","features":[')
        separator = "\n"
        for rows in batches.plain():
            shapes = shapely.to_geojson(shapely.from_wkb([row[-1] for row in rows]))
            for row, shape in zip(rows, shapes, strict=True):
                properties = json.dumps(dict(zip(names, row, strict=False)), ensure_ascii=False, default=_plain)
                file.write(f'{separator}{{"type":"Feature","geometry":{shape or "null"},"properties":{properties}}}')
                separator = ",\n"
        file.write("\n]}\n")


def _plain(value: Any) -> Any:
    if isinstance(value, bytes):
        return b64encode(value).decode()
    return value.isoformat() if hasattr(value, "isoformat") else str(value)


def _by_gdal(order: FeaturesOrder, batches: _Batches, path: Path, driver: str, **options: str) -> Path:
    from pyogrio.raw import write_arrow

    shapefile = order.format is DownloadFormat.SHAPEFILE
    target = path.with_suffix(".shp") if shapefile else path
    reader = pa.RecordBatchReader.from_batches(batches.schema, batches)
    write_arrow(
        reader,
        str(target),
        driver=driver,
        layer=order.name,
        geometry_name=GEOMETRY,
        geometry_type=_gdal_type(order.geometry_type),
        crs=f"EPSG:{order.srid}",
        encoding="UTF-8" if shapefile else None,
        **options,
    )
    if not shapefile:
        return target
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for part in sorted(path.parent.glob(f"{path.stem}.*")):
            if part != path:
                archive.write(part, part.name)
                part.unlink()
    return path


def _gdal_type(name: str | None) -> str:
    types = _known([name.upper().removesuffix("ZM").removesuffix("Z").removesuffix("M")]) if name else []
    height = " Z" if name and name.upper().rstrip("M").endswith("Z") else ""
    return types[0] + height if types else "Unknown"
