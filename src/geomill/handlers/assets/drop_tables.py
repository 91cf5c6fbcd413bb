"""Drops the tables of an asset's revisions."""

from __future__ import annotations

from pydantic import BaseModel

from geomill.sdk import HandlerContext, register_handler


class DropTablesParams(BaseModel):
    asset_id: str


class DropTablesOutput(BaseModel):
    dropped: list[str]


@register_handler("assets.drop_tables", timeout_seconds=600, params=DropTablesParams, output=DropTablesOutput)
async def drop_tables(ctx: HandlerContext[DropTablesParams]) -> DropTablesOutput:
    """Drops the tables of every revision whose data the order deletes. Rasters have none."""
    return DropTablesOutput(dropped=await ctx.orders.drop_tables(ctx.params.asset_id, ctx.job_id))
