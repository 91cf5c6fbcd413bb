"""Opens a layer by the one reader for its format."""

from __future__ import annotations

from typing import Any

from geomill.datasets.source import Source
from geomill.sdk import HandlerContext
from geomill.vector import columnar
from geomill.vector.facts import Format, Reading
from geomill.vector.formats import DRIVERS
from geomill.vector.layers import Layer, told
from geomill.vector.ogr_layer import OgrLayer
from geomill.vector.parquet_layer import ParquetLayer
from geomill.vector.workspace import by_columns, local_data


def open_source(ctx: HandlerContext[Any], source: Source, reading: Reading) -> Layer:
    """What is only read in order, in a copy by columns, which a job makes once on each machine."""
    name = source.file_name
    path, found = local_data(ctx, source, reading.layer)

    def tell(rows: int) -> None:
        ctx.raise_if_cancelled()
        ctx.progress(0.0, message=f"{found.value}, {rows:,} features so far")

    with told(name):
        if found is Format.GEOPARQUET:
            return ParquetLayer.opened(path, name)
        if DRIVERS[found].random:
            return OgrLayer.opened(path, found, name, reading)
        made = by_columns(ctx, source, lambda target: columnar.copy(path, found, name, reading, target, tell))
        return ParquetLayer.copied(made, found)
