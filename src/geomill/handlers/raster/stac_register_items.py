"""Catalogue entries of many rasters at once."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, Field

from geomill.handlers.raster.stac_register_item import RegisterItemParams, item_parts
from geomill.raster.catalogue import register_item
from geomill.raster.outputs import FileEntry
from geomill.sdk import HandlerContext, register_handler


class RegisterItemsParams(BaseModel):
    items: Annotated[list[RegisterItemParams], Field(min_length=1, max_length=1000)]


class RegisterItemsOutput(BaseModel):
    stac_item_ids: list[str]
    files: list[FileEntry]


@register_handler(
    "raster.stac_register_items", timeout_seconds=600, params=RegisterItemsParams, output=RegisterItemsOutput
)
async def stac_register_items(ctx: HandlerContext[RegisterItemsParams]) -> RegisterItemsOutput:
    """Writes several STAC items. One that was written before is written again, the same."""
    files = []
    for number, item in enumerate(ctx.params.items, 1):
        ctx.raise_if_cancelled()
        _, file = await register_item(ctx.storage, item.output_container, item_parts(item, ctx.job_id))
        files.append(file)
        ctx.progress(number, len(ctx.params.items), f"item {number} of {len(ctx.params.items)}")
    return RegisterItemsOutput(stac_item_ids=[item.stac_item_id for item in ctx.params.items], files=files)
