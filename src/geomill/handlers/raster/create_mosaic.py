"""Combines the tiles of a raster: a MosaicJSON as their index, and statistics over all of them."""

from __future__ import annotations

import json
import posixpath
from typing import Any

from pydantic import BaseModel

from geomill.datasets.outputs import JSON_TYPE, RASTER_CONTAINER, FileEntry
from geomill.datasets.refusals import refused
from geomill.raster.plan import TilePart, TilingPlan, summary
from geomill.raster.stac import BandSummary
from geomill.sdk import HandlerContext, ObjectName, Zone, register_handler


class TileBatchResult(BaseModel):
    """The result of a batch of tiles."""

    parts: list[TilePart]
    empty: list[str] = []
    statistics: list[dict[str, Any]] = []


class CreateMosaicParams(BaseModel):
    plan: TilingPlan
    results: list[dict[str, Any]]
    """A `TileBatchResult` of each batch, or the reference to a large output."""
    name: str
    blob_prefix: str
    output_container: str = RASTER_CONTAINER
    mosaic_path: str | None = None
    """Path of the MosaicJSON; below `blob_prefix` by default."""


class CreateMosaicOutput(BaseModel):
    parts: list[TilePart]
    files: list[FileEntry]
    blob_path: str
    output_file_hash: str
    tile_count: int
    empty_tiles: int
    quadkey_count: int
    size_bytes: int
    statistics: list[BandSummary]


@register_handler(
    "raster.create_mosaic",
    queue="container-tasks",
    timeout_seconds=1800,
    params=CreateMosaicParams,
    output=CreateMosaicOutput,
)
def create_mosaic(ctx: HandlerContext[CreateMosaicParams]) -> CreateMosaicOutput:
    """Writes the MosaicJSON of all tiles and merges their statistics."""
    from geomill.raster.mosaic import mosaic_json
    from geomill.raster.statistics import BandStatistics, merged_bands

    params = ctx.params
    results = [TileBatchResult.model_validate(ctx.read_output(batch)) for batch in params.results]
    parts = sorted((part for batch in results for part in batch.parts), key=lambda part: (part.window.y, part.window.x))
    if not parts:
        raise refused("empty", "no pixel of the raster is valid")
    path = params.mosaic_path or f"{params.blob_prefix}/mosaic.json"
    tiles = {posixpath.relpath(part.file.path, posixpath.dirname(path)): part.window for part in parts}
    document = mosaic_json(params.plan.grid, tiles, params.plan.tile_size, params.name)
    statistics = [[BandStatistics.model_validate(band) for band in batch.statistics] for batch in results]
    target = ObjectName(Zone.SILVER, params.output_container, path)
    stored = ctx.storage.sync.put_bytes(
        target, json.dumps(document, separators=(",", ":")).encode(), media_type=JSON_TYPE
    )
    return CreateMosaicOutput(
        parts=parts,
        files=[FileEntry.of(stored, JSON_TYPE, "mosaic"), *(part.file for part in parts)],
        blob_path=f"{target.container}/{target.path}",
        output_file_hash=stored.sha256,
        tile_count=len(parts),
        empty_tiles=sum(len(batch.empty) for batch in results),
        quadkey_count=len(document["tiles"]),
        size_bytes=sum(part.file.size for part in parts),
        statistics=[summary(band) for band in merged_bands([bands for bands in statistics if bands])],
    )
