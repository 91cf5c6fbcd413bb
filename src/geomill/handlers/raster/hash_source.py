"""The hash of a source that is too large to wait for it: beside the work on its pixels."""

from __future__ import annotations

from pydantic import BaseModel

from geomill.raster.hashing import sha256_of
from geomill.raster.plan import Source
from geomill.sdk import HandlerContext, register_handler


class HashSourceParams(BaseModel):
    source: Source


class HashSourceOutput(BaseModel):
    source_file_hash: str


@register_handler(
    "raster.hash_source",
    queue="container-tasks",
    timeout_seconds=7200,
    params=HashSourceParams,
    output=HashSourceOutput,
)
def hash_source(ctx: HandlerContext[HashSourceParams]) -> HashSourceOutput:
    """The SHA-256 of a source."""
    return HashSourceOutput(source_file_hash=sha256_of(ctx.storage, ctx.params.source.name, ctx))
