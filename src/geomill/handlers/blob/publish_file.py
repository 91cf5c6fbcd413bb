"""Publishes a file unchanged, for data that needs no processing."""

from __future__ import annotations

import mimetypes

from pydantic import BaseModel

from geomill.handlers.blob.places import PUBLISHED, OutputFile, sha256_of
from geomill.sdk import HandlerContext, HandlerError, ObjectName, Zone, register_handler


class PublishFileParams(BaseModel):
    container_name: str
    file_name: str
    blob_prefix: str


class PublishFileOutput(BaseModel):
    blob_path: str
    source_file_hash: str
    output_file_hash: str
    files: list[OutputFile]


@register_handler("blob.publish_file", timeout_seconds=3600, params=PublishFileParams, output=PublishFileOutput)
async def publish_file(ctx: HandlerContext[PublishFileParams]) -> PublishFileOutput:
    """Copies a file from bronze to silver, to the folder of its revision, and compares the hashes of both."""
    params = ctx.params
    source = ObjectName(Zone.BRONZE, params.container_name, params.file_name)
    path = f"{params.blob_prefix}/{params.file_name.rsplit('/', 1)[-1]}"
    target = ObjectName(Zone.SILVER, PUBLISHED, path)
    before = await sha256_of(ctx.storage, source)
    ctx.progress(0.4, message="hashed the source")
    ctx.raise_if_cancelled()
    stored = await ctx.storage.copy(source, target)
    ctx.progress(0.7, message="copied")
    after = await sha256_of(ctx.storage, target)
    if after != before:
        await ctx.storage.delete(target)
        raise HandlerError(f"{source} changed while it was copied", code="source_changed")
    media_type = mimetypes.guess_type(path)[0] or "application/octet-stream"
    file = OutputFile(
        zone=Zone.SILVER, container=PUBLISHED, path=path, sha256=after, size=stored.size, media_type=media_type
    )
    return PublishFileOutput(
        blob_path=f"{PUBLISHED}/{path}", source_file_hash=before, output_file_hash=after, files=[file]
    )
