"""Builds the STAC items of several rasters."""

from __future__ import annotations

from typing import Annotated, Any, Self

from pydantic import BaseModel, Field, model_validator

from geomill.datasets.outputs import FileEntry
from geomill.handlers.raster.stac_build_item import StacItemParams, item_parts
from geomill.raster.stac import build_item, store_item
from geomill.sdk import HandlerContext, register_handler


class StacItemsParams(BaseModel):
    items: Annotated[list[StacItemParams], Field(min_length=1, max_length=1000)]
    blob_prefix: str | None = None
    """Folder of the asset's revision, which contains the folders of the items."""

    @model_validator(mode="after")
    def _belong_together(self) -> Self:
        ids = [item.stac_item_id for item in self.items]
        if twice := {item_id for item_id in ids if ids.count(item_id) > 1}:
            raise ValueError(f"several items have the stac_item_id {min(twice)!r}; give each its own")
        for item in self.items:
            if self.blob_prefix is not None and not f"{item.blob_prefix}/".startswith(f"{self.blob_prefix}/"):
                raise ValueError(
                    f"the blob_prefix {item.blob_prefix!r} of {item.stac_item_id!r} is not inside {self.blob_prefix!r}"
                )
        return self


class StacItemsOutput(BaseModel):
    stac_item_ids: list[str]
    stac_items: list[dict[str, Any]]
    """The items, which the catalogue takes from the outputs of an asset's job."""
    files: list[FileEntry]


@register_handler(
    "raster.stac_build_items",
    timeout_seconds=600,
    params=StacItemsParams,
    output=StacItemsOutput,
    former_names=("raster.stac_register_items",),
)
async def stac_build_items(ctx: HandlerContext[StacItemsParams]) -> StacItemsOutput:
    """Builds several STAC items, stores them beside their data and returns them as outputs.

    Running it again writes the same documents.
    """
    items, files = [], []
    for number, item in enumerate(ctx.params.items, 1):
        ctx.raise_if_cancelled()
        parts = item_parts(item, ctx.job_id)
        _, file = await store_item(ctx.storage, item.output_container, parts)
        files.append(file)
        items.append(build_item(parts.model_copy(update={"folder": ctx.params.blob_prefix or parts.folder})))
        ctx.progress(number, len(ctx.params.items), f"item {number} of {len(ctx.params.items)}")
    return StacItemsOutput(stac_item_ids=[item["id"] for item in items], stac_items=items, files=files)
