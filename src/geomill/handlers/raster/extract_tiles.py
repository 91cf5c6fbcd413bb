"""Cuts a source whose windows cannot be read directly, as the first of two passes.

It reads the source once, in order, and writes one piece for each tile, with a margin for resampling.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

from pydantic import BaseModel, Field

from geomill.datasets.intermediates import folder_of, mounted
from geomill.datasets.outputs import INTERMEDIATE_CONTAINER
from geomill.datasets.source import Source
from geomill.raster.grid import Tile
from geomill.raster.plan import TilingPlan, intermediate
from geomill.sdk import HandlerContext, register_handler

if TYPE_CHECKING:
    from rasterio.io import DatasetReader


class ExtractTilesParams(BaseModel):
    source: Source
    plan: TilingPlan
    batches: list[list[Tile]]
    overlap: Annotated[int, Field(ge=16, le=4096)] = 512
    folder: str | None = None
    """Folder of the pieces among the intermediates; the job's own by default."""


class ExtractTilesOutput(BaseModel):
    intermediates: str
    intermediate_container: str
    total_tiles: int
    extraction_time_seconds: float
    """Time of this attempt."""


@register_handler(
    "raster.extract_tiles",
    queue="container-tasks",
    timeout_seconds=14_400,
    params=ExtractTilesParams,
    output=ExtractTilesOutput,
)
def extract_tiles(ctx: HandlerContext[ExtractTilesParams]) -> ExtractTilesOutput:
    """Cuts a source into one piece for each tile."""
    from geomill.datasets.freshness import check_unchanged
    from geomill.raster.cutting import cut
    from geomill.raster.reading import source_window

    params, begun = ctx.params, time.monotonic()
    check_unchanged(ctx.storage, params.source)
    prefix = params.folder or f"{folder_of(ctx.job_id)}/tiles"
    tiles = [tile for batch in params.batches for tile in batch]
    done = int(ctx.checkpoint.data["done"]) if ctx.checkpoint else 0
    with _source(ctx) as dataset:
        for number, tile in enumerate(tiles[done:], done + 1):
            ctx.raise_if_cancelled()
            window = source_window(dataset, params.plan.grid, tile, params.overlap)
            assert window is not None, "the scheme has only tiles that overlap the source"
            ctx.storage.sync.put_bytes(intermediate(prefix, tile), cut(dataset, window))
            ctx.save_checkpoint(tile.tile_id, {"done": number})
            ctx.progress(number, len(tiles), f"{number} of {len(tiles)} tiles cut")
    return ExtractTilesOutput(
        intermediates=prefix,
        intermediate_container=INTERMEDIATE_CONTAINER,
        total_tiles=len(tiles),
        extraction_time_seconds=round(time.monotonic() - begun, 3),
    )


@contextmanager
def _source(ctx: HandlerContext[ExtractTilesParams]) -> Iterator[DatasetReader]:
    """Open the source. A remote source is copied first, and one in a single strip is rewritten with tiles."""
    import rasterio

    from geomill.raster.cutting import retile
    from geomill.raster.opening import opened, opened_copy
    from geomill.raster.reading import is_one_strip

    name, copy = ctx.params.source.name, mounted(ctx.job_id, ctx.params.source.file_name)
    remote = ctx.storage.gdal_path(name).startswith("/vsi")
    if remote:
        ctx.storage.sync.get_file(name, copy, progress=lambda done, total: _report(ctx, done, total))
    try:
        with opened_copy(ctx.storage, name, copy) if remote else opened(ctx.storage, name) as dataset:
            if is_one_strip(dataset):
                tiled = copy.with_name("tiled.tif")
                retile(dataset, tiled)
                with rasterio.open(tiled) as retiled:
                    yield retiled
            else:
                yield dataset
    finally:
        shutil.rmtree(copy.parent, ignore_errors=True)


def _report(ctx: HandlerContext[ExtractTilesParams], done: int, total: int) -> None:
    ctx.raise_if_cancelled()
    ctx.progress(0.0, message=f"{done:,} of {total:,} bytes copied")
