"""Deletes the files that the revisions of an asset have made."""

from __future__ import annotations

from pydantic import BaseModel

from geomill.sdk import HandlerContext, Zone, register_handler


class DeleteDataParams(BaseModel):
    blob_stem: str
    revision: int
    containers: list[str]


class DeleteDataOutput(BaseModel):
    removed: int


@register_handler("blob.delete_data", timeout_seconds=3600, params=DeleteDataParams, output=DeleteDataOutput)
async def delete_data(ctx: HandlerContext[DeleteDataParams]) -> DeleteDataOutput:
    """Deletes every revision's folder in silver, up to the given one. The source in bronze is the partner's."""
    given = ctx.params
    removed = 0
    for container in given.containers:
        for revision in range(1, given.revision + 1):
            removed += await ctx.storage.delete_prefix(Zone.SILVER, container, f"{given.blob_stem}/_r{revision}")
            ctx.raise_if_cancelled()
    return DeleteDataOutput(removed=removed)
