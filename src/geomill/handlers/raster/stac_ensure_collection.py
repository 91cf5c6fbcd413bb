"""Builds the STAC collection of an item and stores it beside the data."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, Field

from geomill.datasets.documents import ID_PATTERN, put_document
from geomill.datasets.outputs import RASTER_CONTAINER, FileEntry
from geomill.datasets.stac import build_collection
from geomill.datasets.times import Times
from geomill.sdk import HandlerContext, register_handler


class EnsureCollectionParams(BaseModel):
    stac_collection_id: Annotated[str, Field(pattern=ID_PATTERN)]
    bbox: Annotated[list[float], Field(min_length=4, max_length=4)]
    times: Times
    blob_prefix: str
    output_container: str = RASTER_CONTAINER
    description: str | None = None


class EnsureCollectionOutput(BaseModel):
    stac_collection_id: str
    stac_collection: dict[str, Any]
    """The collection, which the catalogue adds if it does not have it yet."""
    files: list[FileEntry]


@register_handler(
    "raster.stac_ensure_collection", timeout_seconds=120, params=EnsureCollectionParams, output=EnsureCollectionOutput
)
async def stac_ensure_collection(ctx: HandlerContext[EnsureCollectionParams]) -> EnsureCollectionOutput:
    """Builds the STAC collection and stores it as a document."""
    params = ctx.params
    description = params.description or f"Rasters of {params.stac_collection_id}"
    document = build_collection(params.stac_collection_id, params.bbox, params.times, description)
    path = f"{params.blob_prefix}/collection.json"
    file = await put_document(ctx.storage, params.output_container, path, document, "stac_collection")
    return EnsureCollectionOutput(stac_collection_id=params.stac_collection_id, stac_collection=document, files=[file])
