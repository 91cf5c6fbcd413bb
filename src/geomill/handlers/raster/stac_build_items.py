"""Catalogue entries of many rasters at once."""

from __future__ import annotations

from typing import Annotated, Any, Self

from pydantic import BaseModel, Field, model_validator

from geomill.datasets.outputs import FileEntry
from geomill.handlers.raster.stac_register_item import RegisterItemParams, item_parts
from geomill.raster.stac import build_item, register_item
from geomill.sdk import HandlerContext, register_handler


class RegisterItemsParams(BaseModel):
    items: Annotated[list[RegisterItemParams], Field(min_length=1, max_length=1000)]
    blob_prefix: str | None = None
    """Of the revision of the asset that they belong to, in which their own folders lie."""

    @model_validator(mode="after")
    def _belong_together(self) -> Self:
        ids = [item.stac_item_id for item in self.items]
        if twice := {one for one in ids if ids.count(one) > 1}:
            raise ValueError(f"several items have the stac_item_id {min(twice)!r}; give each its own")
        for item in self.items:
            if self.blob_prefix is not None and not f"{item.blob_prefix}/".startswith(f"{self.blob_prefix}/"):
                raise ValueError(
                    f"the blob_prefix {item.blob_prefix!r} of {item.stac_item_id!r} is not inside {self.blob_prefix!r}"
                )
        return self


class RegisterItemsOutput(BaseModel):
    stac_item_ids: list[str]
    stac_items: list[dict[str, Any]]
    """For the catalogue, which takes them from the outputs of an asset's job."""
    files: list[FileEntry]


@register_handler(
    "raster.stac_register_items", timeout_seconds=600, params=RegisterItemsParams, output=RegisterItemsOutput
)
async def stac_register_items(ctx: HandlerContext[RegisterItemsParams]) -> RegisterItemsOutput:
    """Makes several STAC items, as documents beside their data, and for the catalogue. One that was written before is
    written again, the same."""
    items, files = [], []
    for number, item in enumerate(ctx.params.items, 1):
        ctx.raise_if_cancelled()
        parts = item_parts(item, ctx.job_id)
        _, file = await register_item(ctx.storage, item.output_container, parts)
        files.append(file)
        items.append(build_item(parts.model_copy(update={"folder": ctx.params.blob_prefix or parts.folder})))
        ctx.progress(number, len(ctx.params.items), f"item {number} of {len(ctx.params.items)}")
    return RegisterItemsOutput(stac_item_ids=[one["id"] for one in items], stac_items=items, files=files)
