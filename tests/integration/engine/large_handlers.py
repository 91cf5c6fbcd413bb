"""Handlers whose outputs are large, or that read such outputs."""

from __future__ import annotations

from typing import Any

from geomill.sdk import HandlerContext, register_handler


@register_handler("numbers")
async def numbers(ctx: HandlerContext[Any]) -> dict[str, Any]:
    """A list of as many numbers, and their count."""
    return {"elements": list(range(ctx.params["count"])), "number": ctx.params["count"]}


@register_handler("measure_async")
async def measure_async(ctx: HandlerContext[Any]) -> dict[str, Any]:
    return {"counts": [len((await ctx.read_output_async(result))["elements"]) for result in ctx.params["results"]]}


@register_handler("measure", isolated=True)
def measure(ctx: HandlerContext[Any]) -> dict[str, Any]:
    outcomes = ctx.item_outcomes("each")
    return {"counts": [len(ctx.read_output(outcome.output)["elements"]) for outcome in outcomes]}
