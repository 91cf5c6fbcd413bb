"""A table as a GeoParquet file, row by row group."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pyproj
from psycopg.sql import SQL, Composable, Identifier

from geomill.sql import queries
from geomill.vector.columns import GEOMETRY, ID
from geomill.vector.database import Connection
from geomill.vector.facts import LayerColumn
from geomill.vector.tables import SCHEMA

ROWS = 20_000
_TYPES = {
    "boolean": pa.bool_(),
    "smallint": pa.int16(),
    "integer": pa.int32(),
    "bigint": pa.int64(),
    "real": pa.float32(),
    "double precision": pa.float64(),
    "date": pa.date32(),
    "time without time zone": pa.time64("us"),
    "timestamp without time zone": pa.timestamp("us"),
    "timestamp with time zone": pa.timestamp("us", tz="UTC"),
    "bytea": pa.binary(),
}


def write(
    conn: Connection,
    table: str,
    columns: Sequence[LayerColumn],
    geometry_type: str,
    srid: int,
    path: Path,
    tell: Callable[[int], None],
) -> None:
    schema = _schema(columns, geometry_type, srid)
    done = 0
    with pq.ParquetWriter(path, schema, compression="zstd") as writer:
        for rows in _rows(conn, table, columns):
            data = {field.name: pa.array([row[field.name] for row in rows], field.type) for field in schema}
            writer.write_table(pa.table(data, schema=schema))
            done += len(rows)
            tell(done)


def _schema(columns: Sequence[LayerColumn], geometry_type: str, srid: int) -> pa.Schema:
    fields = [pa.field(ID, pa.int64()), *(pa.field(one.name, _TYPES.get(one.type, pa.string())) for one in columns)]
    about = {"encoding": "WKB", "geometry_types": [geometry_type], "crs": pyproj.CRS.from_epsg(srid).to_json_dict()}
    geo = {"version": "1.1.0", "primary_column": GEOMETRY, "columns": {GEOMETRY: about}}
    return pa.schema([*fields, pa.field(GEOMETRY, pa.binary())], metadata={b"geo": json.dumps(geo).encode()})


def _rows(conn: Connection, table: str, columns: Sequence[LayerColumn]) -> Iterator[list[dict[str, Any]]]:
    """In the order of the key, some at a time."""
    chosen: list[Composable] = [Identifier(ID), *map(_selected, columns)]
    statement = SQL(queries("vectors").all_rows).format(
        columns=SQL(", ").join(chosen),
        table=Identifier(SCHEMA, table),
        id=Identifier(ID),
        geometry=Identifier(GEOMETRY),
    )
    with conn.transaction(), conn.cursor(name="rows") as cursor:
        cursor.execute(statement)
        while rows := cursor.fetchmany(ROWS):
            yield rows


def _selected(column: LayerColumn) -> Composable:
    """JSON comes as text."""
    name = Identifier(column.name)
    return SQL("{0}::text AS {0}").format(name) if column.type == "jsonb" else name
