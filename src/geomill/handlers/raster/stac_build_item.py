"""Builds the STAC item of a raster. The job's outputs carry it to the catalogue."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, Field

from geomill.datasets.documents import ID_PATTERN, SOFTWARE
from geomill.datasets.outputs import RASTER_CONTAINER, FileEntry
from geomill.datasets.source import Source
from geomill.datasets.times import Times
from geomill.raster.facts import RasterFacts
from geomill.raster.plan import TilingPlan
from geomill.raster.stac import BandSummary, RasterItemParts, store_item
from geomill.sdk import HandlerContext, register_handler


class StacItemParams(BaseModel):
    stac_item_id: Annotated[str, Field(pattern=ID_PATTERN)]
    stac_collection_id: Annotated[str, Field(pattern=ID_PATTERN)]
    source: Source
    facts: RasterFacts
    times: Times
    plan: TilingPlan
    geometry: dict[str, Any]
    bbox: list[float]
    statistics: list[BandSummary]
    files: list[FileEntry]
    blob_prefix: str
    output_container: str = RASTER_CONTAINER
    workflow_id: str | None = None
    workflow_version: int | None = None


class StacItemOutput(BaseModel):
    stac_item_id: str
    stac_collection_id: str
    stac_item: dict[str, Any]
    """The item, which the catalogue takes from the outputs of an asset's job."""
    files: list[FileEntry]


@register_handler(
    "raster.stac_build_item",
    timeout_seconds=120,
    params=StacItemParams,
    output=StacItemOutput,
    former_names=("raster.stac_register_item",),
)
async def stac_build_item(ctx: HandlerContext[StacItemParams]) -> StacItemOutput:
    """Builds the STAC item, stores it beside the data and returns it as an output."""
    item, file = await store_item(ctx.storage, ctx.params.output_container, item_parts(ctx.params, ctx.job_id))
    return StacItemOutput(
        stac_item_id=ctx.params.stac_item_id,
        stac_collection_id=ctx.params.stac_collection_id,
        stac_item=item,
        files=[file],
    )


def item_parts(params: StacItemParams, job_id: str) -> RasterItemParts:
    grid, plan = params.plan.grid, params.plan
    how = "copied" if grid.crs == params.facts.crs else f"warped from {params.facts.crs[:60]} ({plan.resampling})"
    return RasterItemParts(
        item_id=params.stac_item_id,
        collection_id=params.stac_collection_id,
        geometry=params.geometry,
        bbox=params.bbox,
        times=params.times,
        facts=params.facts,
        crs=grid.crs,
        transform=grid.transform,
        shape=(grid.height, grid.width),
        statistics=params.statistics,
        files=params.files,
        folder=params.blob_prefix,
        lineage=f"{params.source.file_name}, {how}, as COG for {plan.tier.value}",
        software=SOFTWARE,
        workflow_id=params.workflow_id,
        workflow_version=params.workflow_version,
        job_id=job_id,
    )
