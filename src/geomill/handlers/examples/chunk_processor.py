"""Counts the entries of a chunk, for use in a fan-out."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel

from geomill.sdk import HandlerContext, register_handler


class ChunkParams(BaseModel):
    chunk_id: str | int = "unknown"
    chunk_data: Any = {}


class ChunkOutput(BaseModel):
    chunk_id: str | int
    processed: bool
    item_count: int


@register_handler("chunk_processor", timeout_seconds=300, params=ChunkParams, output=ChunkOutput)
async def chunk_processor(ctx: HandlerContext[ChunkParams]) -> ChunkOutput:
    """Processes one chunk."""
    data = ctx.params.chunk_data
    count = len(data) if isinstance(data, list | dict) else 1
    return ChunkOutput(chunk_id=ctx.params.chunk_id, processed=True, item_count=count)
