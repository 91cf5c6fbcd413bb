"""Tells what is outside of an asset, in the external zone itself."""

from __future__ import annotations

import json

from pydantic import BaseModel

from geomill.handlers.blob.places import PUBLIC, OutputFile
from geomill.sdk import HandlerContext, ObjectName, Zone, register_handler


class WriteManifestParams(BaseModel):
    asset_id: str
    revision: int
    blob_stem: str
    files: list[OutputFile]


class WriteManifestOutput(BaseModel):
    path: str
    removed: int


@register_handler("blob.write_manifest", timeout_seconds=300, params=WriteManifestParams, output=WriteManifestOutput)
async def write_manifest(ctx: HandlerContext[WriteManifestParams]) -> WriteManifestOutput:
    """Writes `_manifest.json` beside the files once all of them are there, then removes those of older revisions."""
    given = ctx.params
    path = f"{given.blob_stem}/_manifest.json"
    files = [file.model_dump(mode="json", exclude={"zone"}) for file in given.files]
    content = {"asset_id": given.asset_id, "revision": given.revision, "files": files}
    text = json.dumps(content, indent=2, ensure_ascii=False).encode()
    await ctx.storage.put_bytes(ObjectName(Zone.EXTERNAL, PUBLIC, path), text)
    removed = 0
    for revision in range(1, given.revision):
        removed += await ctx.storage.delete_prefix(Zone.EXTERNAL, PUBLIC, f"{given.blob_stem}/_r{revision}")
    return WriteManifestOutput(path=path, removed=removed)
