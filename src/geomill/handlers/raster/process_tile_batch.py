"""Writes a batch of tiles of a large raster. Each tile is warped and encoded in memory, in one pass.

A tile appears in the store whole and under its final name, and its bytes depend only on the source and the plan. So
writing one twice is harmless, and the checkpoint only saves time.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel

from geomill.datasets.outputs import RASTER_CONTAINER, FileEntry
from geomill.datasets.source import Source
from geomill.raster.grid import Tile
from geomill.raster.plan import TilePart, TilingPlan, intermediate
from geomill.sdk import HandlerContext, ObjectName, Zone, register_handler

if TYPE_CHECKING:
    from geomill.raster.cog import CogRecipe

MEGABYTE = 1024 * 1024


class TileBatchParams(BaseModel):
    source: Source
    plan: TilingPlan
    tiles: list[Tile]
    blob_prefix: str
    intermediates: str | None = None
    """Folder of the source's pieces, if it was cut."""
    output_container: str = RASTER_CONTAINER
    tile_path: str | None = None
    """Path of each tile, with {x} and {y} in it; below `blob_prefix` by default."""

    def path_of(self, tile: Tile) -> str:
        if self.tile_path is None:
            return f"{self.blob_prefix}/tiles/{tile.tile_id}.tif"
        return self.tile_path.replace("{x}", str(tile.x)).replace("{y}", str(tile.y))


class MadeTile(BaseModel):
    """A finished tile. `part` is None if no pixel of the tile is valid."""

    tile_id: str
    part: TilePart | None = None
    pixel_bytes: int = 0
    statistics: list[dict[str, Any]] = []


class TileBatchOutput(BaseModel):
    parts: list[TilePart]
    empty: list[str]
    statistics: list[dict[str, Any]]
    """Statistics of the batch by band; empty if no tile has valid pixels."""
    resumed: int
    """Number of tiles that an earlier attempt had finished."""


@register_handler(
    "raster.process_tile_batch",
    queue="container-tasks",
    timeout_seconds=3600,
    params=TileBatchParams,
    output=TileBatchOutput,
)
def process_tile_batch(ctx: HandlerContext[TileBatchParams]) -> TileBatchOutput:
    """Writes a batch of tiles as COGs."""
    from geomill.datasets.freshness import check_unchanged
    from geomill.raster.statistics import BandStatistics, merged_bands

    params = ctx.params
    check_unchanged(ctx.storage, params.source)
    finished = [MadeTile.model_validate(result) for result in ctx.checkpoint.data["made"]] if ctx.checkpoint else []
    resumed, finished_ids = len(finished), {result.tile_id for result in finished}
    recipe, begun = params.plan.recipe, time.monotonic()
    for tile in params.tiles:
        if tile.tile_id in finished_ids:
            continue
        ctx.raise_if_cancelled()
        finished.append(_make(ctx, recipe, tile))
        ctx.save_checkpoint(tile.tile_id, {"made": [result.model_dump(mode="json") for result in finished]})
        rate = sum(result.pixel_bytes for result in finished[resumed:]) / MEGABYTE / (time.monotonic() - begun)
        ctx.progress(len(finished), len(params.tiles), f"{len(finished)} of {len(params.tiles)} tiles, {rate:.1f} MB/s")
    statistics = [
        [BandStatistics.model_validate(band) for band in result.statistics] for result in finished if result.part
    ]
    return TileBatchOutput(
        parts=[result.part for result in finished if result.part],
        empty=[result.tile_id for result in finished if not result.part],
        statistics=[band.model_dump(mode="json") for band in merged_bands(statistics)] if statistics else [],
        resumed=resumed,
    )


def _make(ctx: HandlerContext[TileBatchParams], recipe: CogRecipe, tile: Tile) -> MadeTile:
    from geomill.raster import cog
    from geomill.raster.opening import bytes_per_pixel, opened

    params = ctx.params
    name = intermediate(params.intermediates, tile) if params.intermediates else params.source.name
    with opened(ctx.storage, name) as dataset:
        cog_tile, size = cog.tile(dataset, recipe, tile), tile.width * tile.height * bytes_per_pixel(dataset)
    if cog_tile is None:
        return MadeTile(tile_id=tile.tile_id, pixel_bytes=size)
    target = ObjectName(Zone.SILVER, params.output_container, params.path_of(tile))
    stored = ctx.storage.sync.put_bytes(target, cog_tile.data, media_type=cog.MEDIA_TYPE, cool=params.plan.tier.cool)
    part = TilePart(window=tile, file=FileEntry.of(stored, cog.MEDIA_TYPE, "tile"))
    statistics = [band.model_dump(mode="json") for band in cog_tile.statistics]
    return MadeTile(tile_id=tile.tile_id, part=part, pixel_bytes=size, statistics=statistics)
