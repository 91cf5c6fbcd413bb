"""Deletes the files of an asset's revisions."""

from __future__ import annotations

from pydantic import BaseModel

from geomill.domain.engine.job import JobPurpose
from geomill.sdk import HandlerContext, Zone, register_handler


class DeleteDataParams(BaseModel):
    asset_id: str


class DeleteDataOutput(BaseModel):
    removed: int


@register_handler("blob.delete_data", timeout_seconds=3600, params=DeleteDataParams, output=DeleteDataOutput)
async def delete_data(ctx: HandlerContext[DeleteDataParams]) -> DeleteDataOutput:
    """Deletes the folders in silver of every revision up to the last one of the order.

    The source in bronze stays, because it belongs to the partner.
    """
    order = await ctx.orders.current(ctx.params.asset_id, ctx.job_id, JobPurpose.DELETE)
    removed = 0
    for container in await ctx.orders.containers(order):
        for revision in range(1, order.revision + 1):
            removed += await ctx.storage.delete_prefix(Zone.SILVER, container, f"{order.blob_stem}/_r{revision}")
            ctx.raise_if_cancelled()
    return DeleteDataOutput(removed=removed)
