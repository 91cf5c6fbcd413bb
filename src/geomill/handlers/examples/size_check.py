"""Chooses a route by size, for conditional nodes."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, Field

from geomill.sdk import HandlerContext, register_handler

MEGABYTE = 1024 * 1024
LIGHT_BELOW = 100 * MEGABYTE
MEDIUM_BELOW = 1024 * MEGABYTE


class SizeCheckParams(BaseModel):
    size_bytes: Annotated[int, Field(ge=0)] = 0


class SizeCheckOutput(BaseModel):
    size_bytes: int
    route: Literal["light", "medium", "heavy"]
    recommended_queue: str


@register_handler("size_check", timeout_seconds=60, params=SizeCheckParams, output=SizeCheckOutput)
async def size_check(ctx: HandlerContext[SizeCheckParams]) -> SizeCheckOutput:
    """Classifies `size_bytes` as light, medium or heavy."""
    size = ctx.params.size_bytes
    if size < LIGHT_BELOW:
        return SizeCheckOutput(size_bytes=size, route="light", recommended_queue="functionapp-tasks")
    if size < MEDIUM_BELOW:
        return SizeCheckOutput(size_bytes=size, route="medium", recommended_queue="container-tasks")
    return SizeCheckOutput(size_bytes=size, route="heavy", recommended_queue="container-tasks-heavy")
