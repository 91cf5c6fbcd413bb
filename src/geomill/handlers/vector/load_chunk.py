"""Loads a part of a layer into the staging tables, repaired on the way."""

from __future__ import annotations

from pydantic import BaseModel

from geomill.datasets.freshness import check_unchanged
from geomill.sdk import HandlerContext, register_handler
from geomill.vector.facts import Chunk, Loaded, LoadingPlan


class LoadChunkParams(BaseModel):
    plan: LoadingPlan
    chunk: Chunk


@register_handler(
    "vector.load_chunk", queue="container-tasks", timeout_seconds=3600, params=LoadChunkParams, output=Loaded
)
def load_chunk(ctx: HandlerContext[LoadChunkParams]) -> Loaded:
    """Reads, repairs and copies the features of a chunk, in one transaction."""
    from geomill.vector.database import session
    from geomill.vector.loading import ChunkLoad, configure
    from geomill.vector.opening import open_source

    plan, chunk = ctx.params.plan, ctx.params.chunk
    configure()
    check_unchanged(ctx.storage, plan.source)
    layer = open_source(ctx, plan.source, plan.reading)

    def tell(rows: int) -> None:
        ctx.raise_if_cancelled()
        ctx.progress(min(rows / max(chunk.stop - chunk.start, 1), 0.99), message=f"{rows:,} rows")

    with session(ctx.database) as conn:
        return ChunkLoad(conn, layer, plan, tell).run(chunk)
