"""Writes tables as vector tiles in one file, for maps without a server."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, Field

from geomill.datasets.intermediates import DRAFT_PREFIX
from geomill.datasets.outputs import VECTOR_CONTAINER, FileEntry
from geomill.handlers.vector.finish import MadeTable
from geomill.sdk import HandlerContext, ObjectName, Zone, register_handler
from geomill.vector.facts import LayerColumn
from geomill.vector.stac import PMTILES_TYPE


class WritePmtilesParams(BaseModel):
    tables: Annotated[list[MadeTable], Field(min_length=1)]
    columns: list[LayerColumn]
    srid: int
    bbox: Annotated[list[float], Field(min_length=4, max_length=4)]
    max_zoom: Annotated[int | None, Field(ge=0, le=16)] = None
    """Follows from the number of features and their extent when absent."""
    blob_prefix: str
    output_container: str = VECTOR_CONTAINER


class WritePmtilesOutput(BaseModel):
    files: list[FileEntry]
    max_zoom: int
    tile_count: int


@register_handler(
    "vector.write_pmtiles",
    queue="container-tasks",
    timeout_seconds=14400,
    params=WritePmtilesParams,
    output=WritePmtilesOutput,
)
def write_pmtiles(ctx: HandlerContext[WritePmtilesParams]) -> WritePmtilesOutput:
    """Writes the tables as layers of a PMTiles file."""
    from geomill.vector.database import session
    from geomill.vector.pyramid import PyramidExtent, PyramidLayer, write

    params = ctx.params
    extent = PyramidExtent.of(params.bbox)
    rows = sum(table.rows for table in params.tables)
    deepest = extent.deepest_zoom(rows) if params.max_zoom is None else params.max_zoom
    layers = [PyramidLayer(table.table_name, params.columns, params.srid) for table in params.tables]

    def tell(zoom: int, tiles: int) -> None:
        ctx.raise_if_cancelled()
        ctx.progress(zoom, deepest + 1, f"{tiles:,} tiles, zoom {zoom} of {deepest}")

    with session(ctx.database) as conn, tempfile.TemporaryDirectory(prefix=DRAFT_PREFIX) as folder:
        path = Path(folder) / f"{params.tables[0].table_name}.pmtiles"
        count = write(conn, layers, extent, deepest, path, tell)
        name = ObjectName(Zone.SILVER, params.output_container, f"{params.blob_prefix}/{path.name}")
        stored = ctx.storage.sync.put_file(name, path, media_type=PMTILES_TYPE)
    entry = FileEntry.of(stored, PMTILES_TYPE, "pmtiles")
    return WritePmtilesOutput(files=[entry], max_zoom=deepest, tile_count=count)
