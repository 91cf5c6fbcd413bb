"""Draws preview images and outlines the valid data, both from the overviews of the COGs."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import BaseModel, Field

from geomill.datasets.outputs import RASTER_CONTAINER, FileEntry
from geomill.raster.facts import RasterType
from geomill.raster.plan import MosaicPart, TilingPlan
from geomill.sdk import HandlerContext, ObjectName, Zone, register_handler

if TYPE_CHECKING:
    from geomill.raster.preview import Canvas

log = logging.getLogger(__name__)


class CreatePreviewParams(BaseModel):
    plan: TilingPlan
    parts: list[MosaicPart]
    blob_prefix: str
    output_container: str = RASTER_CONTAINER
    preview_pixels: Annotated[int, Field(ge=64, le=4096)] = 1024
    thumbnail_pixels: Annotated[int, Field(ge=16, le=1024)] = 256


class CreatePreviewOutput(BaseModel):
    files: list[FileEntry]
    geometry: dict[str, Any]
    bbox: list[float]
    warnings: list[str] = []


@register_handler(
    "raster.create_preview",
    queue="container-tasks",
    timeout_seconds=1800,
    params=CreatePreviewParams,
    output=CreatePreviewOutput,
)
def create_preview(ctx: HandlerContext[CreatePreviewParams]) -> CreatePreviewOutput:
    """Draws a preview and a thumbnail, and outlines the valid data."""
    from rasterio.crs import CRS

    from geomill.datasets.refusals import refused
    from geomill.raster import preview
    from geomill.raster.footprint import bbox_of, footprint
    from geomill.raster.opening import environment, opened

    params, kind = ctx.params, ctx.params.plan.raster_type
    if not params.parts:
        raise refused("empty", "no pixel of the raster is valid")
    parts = [(part.window, lambda part=part: opened(ctx.storage, part.file.name)) for part in params.parts]
    canvas = preview.Canvas.of(params.plan.grid, parts, params.preview_pixels, kind)
    with environment(ctx.storage, Zone.SILVER, params.output_container):
        geometry = footprint(canvas.valid, canvas.affine, CRS.from_user_input(params.plan.grid.crs))
        pictures, warnings = _pictures(canvas, kind, params.thumbnail_pixels)
    files = []
    for file_name, data, media_type, role in pictures:
        name = ObjectName(Zone.SILVER, params.output_container, f"{params.blob_prefix}/{file_name}")
        files.append(FileEntry.of(ctx.storage.sync.put_bytes(name, data, media_type=media_type), media_type, role))
    return CreatePreviewOutput(files=files, geometry=geometry, bbox=bbox_of(geometry), warnings=warnings)


def _pictures(
    canvas: Canvas, kind: RasterType, thumbnail_pixels: int
) -> tuple[list[tuple[str, bytes, str, str]], list[str]]:
    """Return the images, and warnings. Data without a picture is still data, so an error here is only told."""
    from geomill.raster import preview

    try:
        image = preview.picture(canvas, kind)
        thumbnail = preview.encoded(preview.smaller(image, thumbnail_pixels), "PNG")
        shown = preview.encoded(image, "WEBP")
    except Exception:  # whatever it is, the data is whole
        log.exception("no preview could be drawn", extra={"action": "create_preview"})
        return [], ["no preview could be drawn; the data is complete"]
    return [
        ("preview.webp", shown, "image/webp", "overview"),
        ("thumbnail.png", thumbnail, "image/png", "thumbnail"),
    ], []
