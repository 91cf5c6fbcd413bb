"""Handlers for tests of the console. The shared platform loads them."""

from __future__ import annotations

import asyncio
from typing import Any

from pydantic import BaseModel

from geomill.sdk import HandlerContext, HandlerError, register_handler


class PlanParams(BaseModel):
    tiles: int


@register_handler("console.plan", params=PlanParams)
async def plan(ctx: HandlerContext[PlanParams]) -> dict[str, Any]:
    """Returns the numbers of the tiles."""
    return {"tiles": list(range(ctx.params.tiles))}


class TileParams(BaseModel):
    tile: int
    damaged: list[int] = []
    seconds: float = 0.0


@register_handler("console.tile", params=TileParams)
async def tile(ctx: HandlerContext[TileParams]) -> dict[str, Any]:
    """Warps a tile that exists only in words."""
    await asyncio.sleep(ctx.params.seconds)
    if ctx.params.tile in ctx.params.damaged:
        raise HandlerError(f"block {ctx.params.tile % 150} of band 2 is damaged", retryable=False, code="unreadable")
    return {"tile": ctx.params.tile}


class DivideParams(BaseModel):
    dividend: float
    divisor: float
    zero_until: int = 0


@register_handler("console.divide", params=DivideParams)
async def divide(ctx: HandlerContext[DivideParams]) -> dict[str, Any]:
    """Divides. Up to the attempt `zero_until` it divides by zero, and raises what Python raises."""
    ctx.logger.info("dividing in attempt %s", ctx.attempt)
    divisor = 0.0 if ctx.attempt <= ctx.params.zero_until else ctx.params.divisor
    return {"quotient": ctx.params.dividend / divisor}
