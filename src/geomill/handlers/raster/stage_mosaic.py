"""The last stage of a large raster: builds mosaic, preview and STAC item of its tiles in one task."""

from __future__ import annotations

import json
import posixpath
from typing import Any

from pydantic import BaseModel

from geomill.datasets.outputs import GEOJSON_TYPE, RASTER_CONTAINER, FileEntry
from geomill.datasets.source import Source
from geomill.datasets.times import Times
from geomill.handlers.raster.create_mosaic import CreateMosaicOutput, CreateMosaicParams, create_mosaic
from geomill.handlers.raster.create_preview import CreatePreviewOutput, CreatePreviewParams, create_preview
from geomill.handlers.raster.stac_build_item import StacItemParams, item_parts
from geomill.raster.facts import RasterFacts, RasterType
from geomill.raster.plan import TilingPlan
from geomill.raster.stac import build_item
from geomill.sdk import HandlerContext, ObjectName, Zone, register_handler


class StageMosaicParams(BaseModel):
    plan: TilingPlan
    results: list[dict[str, Any]]
    source: Source
    facts: RasterFacts
    times: Times
    name: str
    stac_collection_id: str
    mosaic_path: str
    preview_folder: str
    item_path: str
    files: list[FileEntry] = []
    """Files of earlier stages."""
    output_container: str = RASTER_CONTAINER
    tile_server_url: str | None = None
    """Address of the served tiles, with {z}, {x} and {y} in it."""


class StageMosaicOutput(BaseModel):
    mosaic: CreateMosaicOutput
    preview: CreatePreviewOutput
    item: FileEntry
    raster_type: RasterType
    tiling_scheme: str | None
    """Container and path."""
    tile_server_url: str | None


@register_handler(
    "raster.stage_mosaic",
    queue="container-tasks",
    timeout_seconds=7200,
    params=StageMosaicParams,
    output=StageMosaicOutput,
)
def stage_mosaic(ctx: HandlerContext[StageMosaicParams]) -> StageMosaicOutput:
    """Writes the MosaicJSON, the preview images and the STAC item of a large raster."""
    params = ctx.params
    mosaic = create_mosaic(ctx.with_params(_mosaic(params)))
    pictures = CreatePreviewParams.model_validate(
        {
            "plan": params.plan,
            "parts": [part.model_dump() for part in mosaic.parts],
            "blob_prefix": params.preview_folder,
            "output_container": params.output_container,
        }
    )
    preview = create_preview(ctx.with_params(pictures))
    schemes = [f"{file.container}/{file.path}" for file in params.files if file.role == "tiling_scheme"]
    return StageMosaicOutput(
        mosaic=mosaic,
        preview=preview,
        item=_item(ctx, mosaic, preview),
        raster_type=params.plan.raster_type,
        tiling_scheme=schemes[0] if schemes else None,
        tile_server_url=params.tile_server_url,
    )


def _mosaic(params: StageMosaicParams) -> CreateMosaicParams:
    return CreateMosaicParams(
        plan=params.plan,
        results=params.results,
        name=params.name,
        blob_prefix=posixpath.dirname(params.mosaic_path),
        output_container=params.output_container,
        mosaic_path=params.mosaic_path,
    )


def _item(
    ctx: HandlerContext[StageMosaicParams], mosaic: CreateMosaicOutput, preview: CreatePreviewOutput
) -> FileEntry:
    params = ctx.params
    item_params = StacItemParams(
        stac_item_id=params.name,
        stac_collection_id=params.stac_collection_id,
        source=params.source,
        facts=params.facts,
        times=params.times,
        plan=params.plan,
        geometry=preview.geometry,
        bbox=preview.bbox,
        statistics=mosaic.statistics,
        files=[*mosaic.files, *params.files, *preview.files],
        blob_prefix=posixpath.dirname(params.item_path),
        output_container=params.output_container,
    )
    data = json.dumps(build_item(item_parts(item_params, ctx.job_id)), separators=(",", ":"), allow_nan=False).encode()
    name = ObjectName(Zone.SILVER, params.output_container, params.item_path)
    return FileEntry.of(ctx.storage.sync.put_bytes(name, data, media_type=GEOJSON_TYPE), GEOJSON_TYPE, "stac_item")
