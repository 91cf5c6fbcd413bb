"""Writes the manifest of an asset's exported files to the external zone."""

from __future__ import annotations

import json

from pydantic import BaseModel

from geomill.domain.assets.inventory import files_outside
from geomill.domain.engine.job import JobPurpose
from geomill.handlers.blob.places import ARRIVING, PUBLIC, OutputFile, of_attempt
from geomill.sdk import HandlerContext, ObjectName, Zone, register_handler


class WriteManifestParams(BaseModel):
    asset_id: str


class WriteManifestOutput(BaseModel):
    path: str
    removed: int


@register_handler("blob.write_manifest", timeout_seconds=300, params=WriteManifestParams, output=WriteManifestOutput)
async def write_manifest(ctx: HandlerContext[WriteManifestParams]) -> WriteManifestOutput:
    """Writes `_manifest.json` beside the exported files once all of them exist, then removes those of older
    revisions."""
    asset_id = ctx.params.asset_id
    order = await ctx.orders.current(asset_id, ctx.job_id, JobPurpose.EXPORT)
    path = f"{order.blob_stem}/_manifest.json"
    listed = files_outside(await ctx.orders.files(order), order.blob_stem, order.revision)
    files = [OutputFile.model_validate(file).model_dump(mode="json", exclude={"zone"}) for file in listed]
    content = {"asset_id": asset_id, "revision": order.revision, "files": files}
    text = json.dumps(content, indent=2, ensure_ascii=False).encode()
    aside = ObjectName(Zone.EXTERNAL, PUBLIC, f"{ARRIVING}/{order.blob_stem}/{of_attempt(ctx.attempt_id)}")
    await ctx.storage.put_bytes(aside, text, media_type="application/json")
    async with ctx.orders.holding(asset_id, ctx.job_id, JobPurpose.EXPORT):
        await ctx.storage.move(aside, ObjectName(Zone.EXTERNAL, PUBLIC, path))
    removed = 0
    for revision in range(1, order.revision):
        removed += await ctx.storage.delete_prefix(Zone.EXTERNAL, PUBLIC, f"{order.blob_stem}/_r{revision}")
    await ctx.storage.delete_prefix(Zone.EXTERNAL, PUBLIC, f"{ARRIVING}/{order.blob_stem}")
    return WriteManifestOutput(path=path, removed=removed)
