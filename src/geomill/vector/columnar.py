"""A copy by columns of a file that can only be read from its beginning to its end.

GDAL reads a GeoJSON once to know its columns and once more for its features, and all that comes before a row to reach
it. So a job does that once, and its steps read a Parquet file, whose row groups are reached directly.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pyogrio

from geomill.datasets.refusals import refused
from geomill.vector.facts import Format, Reading
from geomill.vector.layers import binary, refuse_repeated
from geomill.vector.linked_crs import refuse_linked_crs
from geomill.vector.ogr_layer import GEOMETRY_NAME, OgrLayer, Opening

ABOUT = b"geomill"
"""Of the file's metadata: what the source declares."""
READ_AT_ONCE = 500
"""Few enough that large features do not add up."""
GROUP_ROWS = 20_000
GROUP_BYTES = 8 * 1024 * 1024
LARGEST_LONE = 15_000_000
"""Of a GeoJSON that is no collection of features: GDAL holds all of it, in some twenty times its size."""
_LONE_HEAD = 1024 * 1024

Tell = Callable[[int], None]
"""Called with the rows so far; it may raise, and then there is no copy."""


def copy(path: Path, found: Format, name: str, reading: Reading, target: Path, tell: Tell) -> None:
    if found is Format.GEOJSON:
        _refuse_large_and_lone(path, name)
    if found in (Format.GEOJSON, Format.GEOJSON_LINES):
        refuse_linked_crs(path, name)
    opening = Opening.of(path, found, name, reading)
    with pyogrio.open_arrow(path, batch_size=READ_AT_ONCE, use_pyarrow=True, **opening.about) as (meta, reader):
        refuse_repeated(reader.schema.names, name)
        layer = opening.layer(meta, reader.schema, opening.announced)
        geometry = meta["geometry_name"] or GEOMETRY_NAME
        rows = _write(target, layer, geometry, _batches(reader, layer, geometry), tell)
    if opening.announced >= 0 and rows != opening.announced:
        raise refused("unreadable", f"'{name}' announces {opening.announced:,} features, and {rows:,} came out of it")


def _refuse_large_and_lone(path: Path, name: str) -> None:
    size = path.stat().st_size
    if size <= LARGEST_LONE:
        return
    with path.open("rb") as file:
        head = file.read(_LONE_HEAD)
    if b'"FeatureCollection"' not in head and b'"features"' not in head:
        raise refused(
            "geometry_too_large",
            f"'{name}' is a single feature or geometry of {size:,} bytes, which takes too much memory as GeoJSON: "
            "give it as a collection of features, or as a GeoPackage",
        )


def _batches(reader: Any, layer: OgrLayer, geometry: str) -> Iterator[pa.RecordBatch]:
    done = 0
    for batch in reader:
        ids = np.arange(done, done + len(batch), dtype=np.int64) + 1
        done += len(batch)
        columns = [batch.column(one) for one in layer.schema.names]
        wkb = layer.straight(binary(batch.column(geometry)), ids)
        made = pa.RecordBatch.from_arrays([*columns, wkb], schema=_schema(layer, geometry))
        size = max(len(made) * GROUP_BYTES // max(made.nbytes, 1), 1)
        yield from (made.slice(start, size) for start in range(0, len(made), size))


def _schema(layer: OgrLayer, geometry: str) -> pa.Schema:
    return pa.schema([*(one.remove_metadata() for one in layer.schema), pa.field(geometry, pa.binary())])


def _write(target: Path, layer: OgrLayer, geometry: str, batches: Iterator[pa.RecordBatch], tell: Tell) -> int:
    about = {"layer": layer.name, "geometry_type": layer.geometry_type, "crs": layer.crs, "column": geometry}
    schema = _schema(layer, geometry).with_metadata({ABOUT: json.dumps(about)})
    done = 0
    with pq.ParquetWriter(target, schema, compression="none", use_dictionary=False, write_statistics=False) as writer:
        for group in _groups(batches):
            writer.write_table(pa.Table.from_batches(group).replace_schema_metadata(schema.metadata))
            done += sum(len(batch) for batch in group)
            tell(done)
    return done


def _groups(batches: Iterator[pa.RecordBatch]) -> Iterator[list[pa.RecordBatch]]:
    group: list[pa.RecordBatch] = []
    for batch in batches:
        group.append(batch)
        if sum(map(len, group)) >= GROUP_ROWS or sum(one.nbytes for one in group) >= GROUP_BYTES:
            yield group
            group = []
    if group:
        yield group
