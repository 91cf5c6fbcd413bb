"""Deletes an asset's files from the external zone."""

from __future__ import annotations

from pydantic import BaseModel

from geomill.domain.engine.job import JobPurpose
from geomill.handlers.blob.places import ARRIVING, PUBLIC
from geomill.sdk import HandlerContext, HandlerError, ObjectName, Zone, register_handler


class WithdrawParams(BaseModel):
    asset_id: str


class WithdrawOutput(BaseModel):
    removed: int


@register_handler("blob.withdraw", timeout_seconds=3600, params=WithdrawParams, output=WithdrawOutput)
async def withdraw(ctx: HandlerContext[WithdrawParams]) -> WithdrawOutput:
    """Deletes the external files of an asset, the manifest first, and checks that nothing is left."""
    order = await ctx.orders.current(ctx.params.asset_id, ctx.job_id, JobPurpose.WITHDRAW)
    stem = order.blob_stem
    await ctx.storage.delete(ObjectName(Zone.EXTERNAL, PUBLIC, f"{stem}/_manifest.json"))
    folders = [f"{stem}/_r{revision}" for revision in range(1, order.revision + 1)]
    removed = 0
    for done, folder in enumerate([*folders, f"{ARRIVING}/{stem}"]):
        removed += await ctx.storage.delete_prefix(Zone.EXTERNAL, PUBLIC, folder)
        ctx.progress(done + 1, len(folders) + 1)
    for folder in folders:
        async for left in ctx.storage.list(Zone.EXTERNAL, PUBLIC, folder):
            raise HandlerError(f"{left.name} is still in the external zone", code="still_outside")
    return WithdrawOutput(removed=removed)
