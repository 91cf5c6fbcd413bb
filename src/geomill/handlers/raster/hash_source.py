"""Hashes a large source in parallel with other work."""

from __future__ import annotations

from pydantic import BaseModel

from geomill.datasets.freshness import check_unchanged
from geomill.datasets.hashing import sha256_of
from geomill.datasets.source import Source
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
    """Returns the SHA-256 of a source."""
    source = ctx.params.source
    digest = sha256_of(ctx.storage, source.name, ctx)
    check_unchanged(ctx.storage, source)  # the hash must be that of the processed version
    return HashSourceOutput(source_file_hash=digest)
