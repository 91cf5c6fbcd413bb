"""Copies files of a public asset to the external zone."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel

from geomill.domain.assets.inventory import outside
from geomill.domain.engine.job import JobPurpose
from geomill.handlers.blob.places import ARRIVING, PUBLIC, OutputFile, of_attempt, sha256_of
from geomill.sdk import HandlerContext, HandlerError, ObjectName, Zone, register_handler
from geomill.sdk.orders import AssetOrder


class ExportFileParams(BaseModel):
    asset_id: str
    first: int
    count: int


class ExportFileOutput(BaseModel):
    files: int
    size: int


@register_handler("blob.export_file", timeout_seconds=3600, params=ExportFileParams, output=ExportFileOutput)
async def export_file(ctx: HandlerContext[ExportFileParams]) -> ExportFileOutput:
    """Copies a slice of the inventory to the external zone.

    Each file is copied to a temporary place, its hash is compared with the inventory, and then it is moved into place
    while the asset is locked as public. A failure leaves the target unchanged.
    """
    params = ctx.params
    order = await ctx.orders.current(params.asset_id, ctx.job_id, JobPurpose.EXPORT)
    size = 0
    files = await ctx.orders.files(order, params.first, params.count)
    for number, file in enumerate(files, 1):
        size += await _export(ctx, order, file)
        ctx.progress(number, len(files), message="copied")
        ctx.raise_if_cancelled()
    return ExportFileOutput(files=len(files), size=size)


async def _export(ctx: HandlerContext[ExportFileParams], order: AssetOrder, file: dict[str, Any]) -> int:
    source = OutputFile.model_validate(file)
    target = OutputFile.model_validate(outside(file, order.blob_stem, order.revision)).name
    folder = f"{ARRIVING}/{order.blob_stem}/{of_attempt(ctx.attempt_id)}"
    aside = ObjectName(Zone.EXTERNAL, PUBLIC, f"{folder}/{target.name}")
    try:
        await ctx.storage.copy(source.name, aside)
        digest = await sha256_of(ctx.storage, aside)
        if digest != source.sha256:
            raise HandlerError(
                f"{source.name} differs from the published file: its SHA-256 is {digest}, not {source.sha256}",
                code="hash_mismatch",
            )
        async with ctx.orders.holding(order.asset_id, ctx.job_id, JobPurpose.EXPORT):
            await ctx.storage.move(aside, target)
    finally:
        await ctx.storage.delete_prefix(Zone.EXTERNAL, PUBLIC, folder)
    return source.size
