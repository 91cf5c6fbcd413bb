"""Writes tables as GeoParquet files beside them, for those who want the data and no server."""

from __future__ import annotations

import tempfile
from pathlib import Path

from pydantic import BaseModel

from geomill.datasets.intermediates import DRAFT_PREFIX
from geomill.datasets.outputs import VECTOR_CONTAINER, FileEntry
from geomill.handlers.vector.finish import MadeTable
from geomill.sdk import HandlerContext, ObjectName, Zone, register_handler
from geomill.vector.facts import LayerColumn
from geomill.vector.stac import PARQUET_TYPE


class WriteGeoParquetParams(BaseModel):
    tables: list[MadeTable]
    columns: list[LayerColumn]
    srid: int
    blob_prefix: str
    output_container: str = VECTOR_CONTAINER


class WriteGeoParquetOutput(BaseModel):
    files: list[FileEntry]


@register_handler(
    "vector.write_geoparquet",
    queue="container-tasks",
    timeout_seconds=7200,
    params=WriteGeoParquetParams,
    output=WriteGeoParquetOutput,
)
def write_geoparquet(ctx: HandlerContext[WriteGeoParquetParams]) -> WriteGeoParquetOutput:
    """Writes each table as a GeoParquet file."""
    from geomill.vector.database import session
    from geomill.vector.geoparquet import write

    params, files = ctx.params, []
    with session(ctx.database) as conn, tempfile.TemporaryDirectory(prefix=DRAFT_PREFIX) as folder:
        for number, table in enumerate(params.tables):
            path = Path(folder) / f"{table.table_name}.parquet"

            def tell(rows: int, table: MadeTable = table) -> None:
                ctx.raise_if_cancelled()
                ctx.progress(rows, max(table.rows, 1), f"{rows:,} rows of {table.table_name}")

            write(conn, table.table_name, params.columns, table.geometry_type, params.srid, path, tell)
            name = ObjectName(Zone.SILVER, params.output_container, f"{params.blob_prefix}/{path.name}")
            stored = ctx.storage.sync.put_file(name, path, media_type=PARQUET_TYPE)
            role = "geoparquet" if number == 0 else f"geoparquet_{number + 1}"
            files.append(FileEntry.of(stored, PARQUET_TYPE, role))
    return WriteGeoParquetOutput(files=files)
