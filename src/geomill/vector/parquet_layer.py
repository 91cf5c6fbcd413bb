"""Layers in GeoParquet files, read through Arrow, because GDAL's wheel has no driver for them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from geomill.contract.inspection import KnownFrom
from geomill.datasets.refusals import refused
from geomill.vector.columnar import ABOUT
from geomill.vector.facts import Chunk, Format, LayerText, Remark
from geomill.vector.layers import FeatureBatch, binary, refuse_repeated
from geomill.vector.projecting import from_json, named

CRS84 = "OGC:CRS84"


@dataclass
class ParquetLayer:
    """A layer in a Parquet file. Its chunks are ranges of row groups."""

    path: Path
    rows: int
    geometry_type: str
    crs: str | None
    column: str
    schema: pa.Schema
    name: str | None = None
    format: Format = Format.GEOPARQUET
    text: LayerText = field(default_factory=lambda: LayerText(encoding="utf-8", known_from=KnownFrom.FORMAT))
    remarks: list[Remark] = field(default_factory=list)

    @classmethod
    def opened(cls, path: Path, name: str) -> ParquetLayer:
        with pq.ParquetFile(path) as file:
            schema, rows = file.schema_arrow, file.metadata.num_rows
        refuse_repeated(schema.names, name)
        about = _geo_metadata(schema, name)
        column = about["primary_column"]
        primary = about["columns"][column]
        kinds = primary.get("geometry_types") or []
        return cls(
            path=path,
            rows=rows,
            geometry_type=kinds[0] if len(kinds) == 1 else "Unknown",
            crs=_parquet_crs(primary),
            column=column,
            schema=pa.schema(
                [field.remove_metadata() for field in schema if field.name != column and not _is_box(field, about)]
            ),
        )

    @classmethod
    def copied(cls, path: Path, file_format: Format) -> ParquetLayer:
        """Open a copy that `columnar` made of a file of the given format."""
        with pq.ParquetFile(path) as file:
            schema, rows = file.schema_arrow, file.metadata.num_rows
        about: dict[str, Any] = json.loads(schema.metadata[ABOUT])
        return cls(
            path=path,
            rows=rows,
            geometry_type=about["geometry_type"],
            crs=about["crs"],
            column=about["column"],
            schema=pa.schema([field.remove_metadata() for field in schema if field.name != about["column"]]),
            name=about["layer"],
            format=file_format,
            text=LayerText.model_validate(about["text"]),
            remarks=[Remark.model_validate(remark) for remark in about["remarks"]],
        )

    def bounds_of_ids(self) -> tuple[int, int]:
        with pq.ParquetFile(self.path) as file:
            return 0, int(file.num_row_groups)

    def beginning(self, size: int) -> Chunk:
        with pq.ParquetFile(self.path) as file:
            ends = np.cumsum([file.metadata.row_group(group).num_rows for group in range(file.num_row_groups)])
        return Chunk(number=0, start=0, stop=min(int(np.searchsorted(ends, size)) + 1, len(ends)))

    def batches(self, chunk: Chunk, size: int, columns: Sequence[str] | None = None) -> Iterator[FeatureBatch]:
        names = self.schema.names if columns is None else list(columns)
        with pq.ParquetFile(self.path, pre_buffer=False) as file:  # otherwise all groups stay in memory
            done = sum(file.metadata.row_group(group).num_rows for group in range(chunk.start))
            groups = list(range(chunk.start, chunk.stop))
            for batch in file.iter_batches(size, row_groups=groups, columns=[*names, self.column]):
                ids = np.arange(done, done + len(batch), dtype=np.int64) + 1
                done += len(batch)
                yield FeatureBatch(ids, binary(batch.column(self.column)), batch.select(names))


def _geo_metadata(schema: pa.Schema, name: str) -> dict[str, Any]:
    text = (schema.metadata or {}).get(b"geo")
    if text is None:
        raise refused("no_geometry", f"'{name}' is Parquet, but not GeoParquet: it does not declare a geometry column")
    try:
        about: dict[str, Any] = json.loads(text)
        encoding = about["columns"][about["primary_column"]]["encoding"]
    except (ValueError, KeyError, TypeError) as error:
        raise refused("unreadable", f"the geometry metadata of '{name}' cannot be read: {error!r}") from error
    if encoding != "WKB":
        raise refused("unsupported_format", f"'{name}' has geometries encoded as '{encoding}': write them as WKB")
    return about


def _parquet_crs(primary: dict[str, Any]) -> str | None:
    """Return the CRS. By the standard, an absent CRS means degrees, and null means that it is unknown."""
    if "crs" not in primary:
        return CRS84
    if isinstance(primary["crs"], dict):
        return named(from_json(primary["crs"], "the CRS of the file"))
    return str(primary["crs"]) if primary["crs"] else None


def _is_box(column: pa.Field, about: dict[str, Any]) -> bool:
    """Return whether a column only holds the extents of the geometries."""
    covering = about["columns"][about["primary_column"]].get("covering", {}).get("bbox", {})
    return any(path[0] == column.name for path in covering.values())
