"""Makes a columnar copy of a file that can only be read from start to end.

GDAL reads a GeoJSON once for its columns and once for its features, and must read all rows before a given one. So a job
does that once and writes a Parquet file, whose row groups its steps can read directly.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pyogrio

from geomill.datasets.refusals import refused
from geomill.vector.csv_source import csv_source
from geomill.vector.facts import Format, Reading
from geomill.vector.impossible_dates import impossible_dates
from geomill.vector.layers import binary, refuse_repeated
from geomill.vector.linked_crs import refuse_linked_crs
from geomill.vector.ogr_layer import GEOMETRY_NAME, OgrLayer, Opening, short_first_pass

ABOUT = b"geomill"
"""The metadata key of the source's declarations."""
READ_AT_ONCE = 500
"""Small enough that large features do not use too much memory."""
GROUP_ROWS = 20_000
GROUP_BYTES = 8 * 1024 * 1024
LARGEST_LONE = 15_000_000
"""The maximum size of a GeoJSON that is not a collection of features. GDAL needs about twenty times its size."""
_LONE_HEAD = 1024 * 1024
CSV_COPY = "rewritten.csv"
_KINDS: tuple[dict[str, str], ...] = ({}, {"AUTODETECT_SIZE_LIMIT": "64000000"}, {"AUTODETECT_TYPE": "NO"})
"""GDAL's options for the types of the columns of a CSV file: of its first megabyte, of 64 megabytes, text."""
_SAMPLED_BYTES = 1_000_000
"""The bytes in which GDAL looks for types by default."""
_TEXTS = (Format.CSV, Format.GEOJSON, Format.GEOJSON_LINES)
_MISFIT = "Invalid value type found"
"""GDAL's remark about a value that it drops. It reaches only the main thread."""

Tell = Callable[[int], None]
"""Called with the number of rows so far. If it raises, there is no copy."""


def copy(
    path: Path, file_format: Format, name: str, reading: Reading, target: Path, tell: Tell, most: int | None = None
) -> int:
    """Copy the layer, or about its `most` first rows. Returns the number of rows of the file; -1 if it is unknown."""
    if file_format is Format.GEOJSON:
        _refuse_large_and_lone(path, name)
    if file_format in (Format.GEOJSON, Format.GEOJSON_LINES):
        refuse_linked_crs(path, name)
    csv = None
    if file_format is Format.CSV:
        csv = csv_source(path, name, reading, target.with_name(CSV_COPY), most)
    opening = Opening.of(path, file_format, name, reading, csv)
    try:
        return _copy(opening, name, target, tell, most)
    finally:
        target.with_name(CSV_COPY).unlink(missing_ok=True)


def _copy(opening: Opening, name: str, target: Path, tell: Tell, most: int | None) -> int:
    """Copy a layer. GDAL finds the types of a CSV file in its first megabyte and drops later values that do not fit. So
    if values are missing, the file is read again with types that hold more of them."""
    if opening.format is not Format.CSV:
        return _copy_once(opening, name, target, tell, most)
    for kinds in _KINDS:
        attempt = replace(opening, about={**opening.about, **kinds})
        with warnings.catch_warnings(record=True) as remarks:
            warnings.simplefilter("always")
            rows = _copy_once(attempt, name, target, tell, most)
        dropped = any(_MISFIT in str(remark.message) for remark in remarks)
        unsure = not kinds and opening.path.stat().st_size > _SAMPLED_BYTES and _has_gaps(target)
        if not dropped and not unsure:
            break
    return rows


def _has_gaps(copied: Path) -> bool:
    """Return whether a column that is not text lacks a value somewhere."""
    with pq.ParquetFile(copied) as file:
        typed = [column.name for column in file.schema_arrow if column.type not in (pa.string(), pa.binary())]
        groups = (file.read_row_group(group, typed) for group in range(file.num_row_groups)) if typed else ()
        return any(column.null_count for group in groups for column in group.columns)


def _copy_once(opening: Opening, name: str, target: Path, tell: Tell, most: int | None) -> int:
    with (
        short_first_pass(most),
        pyogrio.open_arrow(opening.path, batch_size=READ_AT_ONCE, use_pyarrow=True, **opening.about) as (meta, reader),
    ):
        refuse_repeated(reader.schema.names, name)
        layer = opening.layer(meta, reader.schema, opening.declared_rows)
        if opening.format in _TEXTS:
            layer.remarks = [*layer.remarks, *impossible_dates(opening.path, layer.schema, beginning=most is not None)]
        geometry = meta["geometry_name"] or GEOMETRY_NAME
        batches = islice(reader, None if most is None else -(-most // READ_AT_ONCE))
        rows = _write(target, layer, geometry, _batches(batches, layer, geometry), tell)
    if most is not None and rows >= most:
        return -1 if opening.format is Format.CSV else opening.declared_rows
    if opening.declared_rows >= 0 and rows != opening.declared_rows:
        raise refused("unreadable", f"'{name}' declares {opening.declared_rows:,} features, but {rows:,} could be read")
    return rows


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
            "submit it as a collection of features, or as a GeoPackage",
        )


def _batches(reader: Iterator[pa.RecordBatch], layer: OgrLayer, geometry: str) -> Iterator[pa.RecordBatch]:
    done = 0
    for batch in reader:
        ids = np.arange(done, done + len(batch), dtype=np.int64) + 1
        done += len(batch)
        columns = [batch.column(column) for column in layer.schema.names]
        wkb = layer.straight(binary(batch.column(geometry)), ids)
        copied = pa.RecordBatch.from_arrays([*columns, wkb], schema=_schema(layer, geometry))
        size = max(len(copied) * GROUP_BYTES // max(copied.nbytes, 1), 1)
        yield from (copied.slice(start, size) for start in range(0, len(copied), size))


def _schema(layer: OgrLayer, geometry: str) -> pa.Schema:
    return pa.schema([*(column.remove_metadata() for column in layer.schema), pa.field(geometry, pa.binary())])


def _write(target: Path, layer: OgrLayer, geometry: str, batches: Iterator[pa.RecordBatch], tell: Tell) -> int:
    about: dict[str, Any] = {
        "layer": layer.name,
        "geometry_type": layer.geometry_type,
        "crs": layer.crs,
        "column": geometry,
    }
    about |= {
        "text": layer.text.model_dump(mode="json"),
        "remarks": [remark.model_dump(mode="json") for remark in layer.remarks],
    }
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
        if sum(map(len, group)) >= GROUP_ROWS or sum(member.nbytes for member in group) >= GROUP_BYTES:
            yield group
            group = []
    if group:
        yield group
