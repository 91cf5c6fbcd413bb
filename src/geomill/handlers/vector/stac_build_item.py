"""Builds the STAC item of a layer and its collection. The job's outputs carry them to the catalogue."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, Field

from geomill.datasets.documents import ID_PATTERN, put_document
from geomill.datasets.outputs import VECTOR_CONTAINER, FileEntry
from geomill.datasets.source import Source
from geomill.datasets.stac import build_collection
from geomill.datasets.times import Times
from geomill.sdk import HandlerContext, register_handler
from geomill.vector.facts import LayerColumn, LayerFacts
from geomill.vector.stac import LayerItemParts, build_item


class StacLayerParams(BaseModel):
    stac_item_id: Annotated[str, Field(pattern=ID_PATTERN)]
    stac_collection_id: Annotated[str, Field(pattern=ID_PATTERN)]
    asset_id: str | None = None
    source: Source
    facts: LayerFacts
    times: Times
    table_name: str
    geometry_type: str
    srid: int
    row_count: int
    columns: list[LayerColumn]
    geometry: dict[str, Any]
    bbox: Annotated[list[float], Field(min_length=4, max_length=4)]
    files: list[FileEntry] = []
    blob_prefix: str
    output_container: str = VECTOR_CONTAINER
    workflow_id: str | None = None
    workflow_version: int | None = None


class StacLayerOutput(BaseModel):
    stac_item_id: str
    stac_collection_id: str
    stac_item: dict[str, Any]
    stac_collection: dict[str, Any]
    files: list[FileEntry]


@register_handler(
    "vector.stac_build_item",
    timeout_seconds=120,
    params=StacLayerParams,
    output=StacLayerOutput,
    former_names=("vector.stac_register",),
)
async def stac_build_item(ctx: HandlerContext[StacLayerParams]) -> StacLayerOutput:
    """Builds the STAC item and its collection, stores them beside the data and returns them as outputs."""
    params = ctx.params
    collection = build_collection(
        params.stac_collection_id, params.bbox, params.times, f"Features of {params.stac_collection_id}"
    )
    item = build_item(item_parts(params, ctx.job_id))
    files = [
        await put_document(ctx.storage, params.output_container, f"{params.blob_prefix}/{name}.json", document, role)
        for name, document, role in (("collection", collection, "stac_collection"), ("item", item, "stac_item"))
    ]
    return StacLayerOutput(
        stac_item_id=params.stac_item_id,
        stac_collection_id=params.stac_collection_id,
        stac_item=item,
        stac_collection=collection,
        files=files,
    )


def item_parts(params: StacLayerParams, job_id: str) -> LayerItemParts:
    facts = params.facts
    crs = "as it was" if facts.crs == f"EPSG:{params.srid}" else f"from {facts.crs[:60]}"
    return LayerItemParts(
        item_id=params.stac_item_id,
        collection_id=params.stac_collection_id,
        geometry=params.geometry,
        bbox=params.bbox,
        times=params.times,
        srid=params.srid,
        geometry_type=params.geometry_type,
        columns=params.columns,
        rows=params.row_count,
        table_name=params.table_name,
        asset_id=params.asset_id,
        files=params.files,
        folder=params.blob_prefix,
        lineage=f"{params.source.file_name} ({facts.format.value}), {crs}, into PostGIS",
        workflow_id=params.workflow_id,
        workflow_version=params.workflow_version,
        job_id=job_id,
    )
