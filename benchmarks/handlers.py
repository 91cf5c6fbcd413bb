"""Handlers that do nothing, so that what is measured is the engine."""

from __future__ import annotations

import asyncio
import time
from typing import Any

from geomill.sdk import HandlerContext, register_handler


@register_handler("bench.noop")
async def noop(ctx: HandlerContext[Any]) -> dict[str, Any]:
    return {}


@register_handler("bench.stamp")
async def stamp(ctx: HandlerContext[Any]) -> dict[str, Any]:
    """Return the time at which the task began."""
    return {"began": time.time()}


@register_handler("bench.work", timeout_seconds=3600)
async def work(ctx: HandlerContext[Any]) -> dict[str, Any]:
    """Wait without using the processor."""
    ends_at = time.monotonic() + ctx.params["seconds"]
    while (left := ends_at - time.monotonic()) > 0:
        ctx.raise_if_cancelled()
        await asyncio.sleep(min(left, 1))
    return {}


@register_handler("bench.hold", timeout_seconds=120)
async def hold(ctx: HandlerContext[Any]) -> dict[str, Any]:
    """The first delivery stays until its worker dies; the next one ends at once."""
    if ctx.checkpoint is None:
        ctx.save_checkpoint("held", {})
        await asyncio.sleep(60)
    return {"began": time.time()}
