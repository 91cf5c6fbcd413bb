"""Encodes a whole raster as one COG."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, Field

from geomill.datasets.outputs import RASTER_CONTAINER, FileEntry
from geomill.datasets.source import Source
from geomill.raster.facts import RasterFacts
from geomill.raster.plan import MosaicPart, TilingPlan, stem, summary
from geomill.raster.stac import BandSummary
from geomill.raster.tiers import Resampling, Tier, check_tier, resampling_for
from geomill.sdk import HandlerContext, ObjectName, Zone, register_handler


class CogOptions(BaseModel):
    """Options of the output file."""

    blob_prefix: str
    target_crs: str = "auto"
    output_tier: Tier = Tier.ANALYSIS
    resampling: Resampling = Resampling.AUTO
    jpeg_quality: Annotated[int, Field(ge=1, le=100)] = 85
    output_container: str = RASTER_CONTAINER


class CreateCogParams(CogOptions):
    source: Source
    facts: RasterFacts


class CreateCogOutput(BaseModel):
    plan: TilingPlan
    parts: list[MosaicPart]
    files: list[FileEntry]
    blob_path: str
    output_file_hash: str
    size_bytes: int
    statistics: list[BandSummary]
    warnings: list[str]


@register_handler(
    "raster.create_cog", queue="container-tasks", timeout_seconds=7200, params=CreateCogParams, output=CreateCogOutput
)
def create_cog(ctx: HandlerContext[CreateCogParams]) -> CreateCogOutput:
    """Writes a raster as one COG in the requested CRS and tier."""
    from geomill.datasets.freshness import check_unchanged
    from geomill.raster import cog
    from geomill.raster.opening import opened
    from geomill.raster.planning import output_grid
    from geomill.raster.statistics import histogram_ranges

    params, facts = ctx.params, ctx.params.facts
    check_tier(params.output_tier, facts.raster_type, facts.dtype)
    check_unchanged(ctx.storage, params.source)
    target = ObjectName(
        Zone.SILVER, params.output_container, f"{params.blob_prefix}/{stem(params.source.file_name)}.tif"
    )

    def advance(fraction: float, message: str) -> None:
        ctx.raise_if_cancelled()
        ctx.progress(fraction, message=message)

    with opened(ctx.storage, params.source.name) as dataset:
        grid, warnings = output_grid(dataset, params.target_crs, params.output_tier)
        plan = TilingPlan(
            grid=grid,
            raster_type=facts.raster_type,
            tier=params.output_tier,
            resampling=resampling_for(facts.raster_type, params.resampling).value,
            ranges=histogram_ranges(facts),
            quality=params.jpeg_quality,
            tile_size=max(grid.width, grid.height),
        )
        advance(0.0, f"warping to {grid.width:,} by {grid.height:,} pixels")
        with cog.whole(dataset, plan.recipe, advance) as (cog_data, statistics):
            advance(0.9, "storing")
            if isinstance(cog_data, bytes):
                stored = ctx.storage.sync.put_bytes(target, cog_data, media_type=cog.MEDIA_TYPE, cool=plan.tier.cool)
            else:
                stored = ctx.storage.sync.put_file(target, cog_data, media_type=cog.MEDIA_TYPE, cool=plan.tier.cool)
    file = FileEntry.of(stored, cog.MEDIA_TYPE, "data")
    return CreateCogOutput(
        plan=plan,
        parts=[MosaicPart(window=grid.whole, file=file)],
        files=[file],
        blob_path=f"{target.container}/{target.path}",
        output_file_hash=stored.sha256,
        size_bytes=stored.size,
        statistics=[summary(band) for band in statistics],
        warnings=warnings,
    )
