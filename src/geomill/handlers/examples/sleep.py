"""Waits, to try out delays, timeouts and cancellation."""

from __future__ import annotations

import asyncio
import time
from typing import Annotated

from pydantic import BaseModel, Field

from geomill.sdk import HandlerContext, register_handler

TICK_SECONDS = 0.2


class SleepParams(BaseModel):
    duration_seconds: Annotated[float, Field(ge=0, le=86_400)] = 1.0


class SleepOutput(BaseModel):
    slept_for: float


@register_handler("sleep", timeout_seconds=300, params=SleepParams, output=SleepOutput)
async def sleep(ctx: HandlerContext[SleepParams]) -> SleepOutput:
    """Sleeps for `duration_seconds`, reporting progress."""
    duration, begun = ctx.params.duration_seconds, time.monotonic()
    while (left := begun + duration - time.monotonic()) > 0:
        ctx.raise_if_cancelled()
        await asyncio.sleep(min(TICK_SECONDS, left))
        slept = time.monotonic() - begun
        ctx.progress(slept, duration, f"{slept:.1f} of {duration:g} s")
    return SleepOutput(slept_for=duration)
