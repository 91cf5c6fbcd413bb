"""Opens a layer by the one reader for its format."""

from __future__ import annotations

from typing import Any

from geomill.datasets.source import Source
from geomill.sdk import HandlerContext
from geomill.vector import columnar
from geomill.vector.facts import Format, Reading
from geomill.vector.formats import DRIVERS
from geomill.vector.layers import Layer, read_errors_as_refusals
from geomill.vector.ogr_layer import OgrLayer
from geomill.vector.parquet_layer import ParquetLayer
from geomill.vector.swapped_layer import SwappedLayer
from geomill.vector.workspace import by_columns, local_data


def open_source(ctx: HandlerContext[Any], source: Source, reading: Reading) -> Layer:
    """Open the layer of a source. A format that can only be read in order is opened as a columnar copy, which a job
    makes once on each machine."""
    name = source.file_name
    path, file_format = local_data(ctx, source, reading.layer)

    def tell(rows: int) -> None:
        ctx.raise_if_cancelled()
        ctx.progress(0.0, message=f"{file_format.value}, {rows:,} features so far")

    with read_errors_as_refusals(name):
        layer: Layer
        if file_format is Format.GEOPARQUET:
            layer = ParquetLayer.opened(path, name)
        elif DRIVERS[file_format].random:
            layer = OgrLayer.opened(path, file_format, name, reading)
        else:
            copy = by_columns(ctx, source, lambda target: columnar.copy(path, file_format, name, reading, target, tell))
            layer = ParquetLayer.copied(copy, file_format)
        return SwappedLayer(layer) if reading.swap_xy else layer
