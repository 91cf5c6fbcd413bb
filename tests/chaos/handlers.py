"""Handlers for the chaos run. Each writes into the ledger what it did."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from typing import Annotated, Any

from pydantic import BaseModel, Field

from geomill.sdk import HandlerContext, HandlerError, register_handler
from tests.chaos import ledger


class EffectParams(BaseModel):
    key: str
    seconds: Annotated[float, Field(ge=0)] = 0.0
    steps: Annotated[int, Field(ge=1)] = 1
    fail_times: Annotated[int, Field(ge=0)] = 0
    hopeless: bool = False


class EffectOutput(BaseModel):
    key: str
    steps: list[int]


@register_handler("chaos.effect", timeout_seconds=60, params=EffectParams, output=EffectOutput)
async def effect(ctx: HandlerContext[EffectParams]) -> EffectOutput:
    """Works in checkpointed steps, and fails as often as it is told to."""
    params = ctx.params
    done: list[int] = list(ctx.checkpoint.data["steps"]) if ctx.checkpoint else []
    with ledger.written(ctx):
        if params.hopeless:
            raise HandlerError("hopeless", retryable=False, code="hopeless")
        if ctx.retry_count < params.fail_times:
            raise HandlerError("not yet", code="flaky")
        for step in range(len(done), params.steps):
            await asyncio.sleep(params.seconds / params.steps)
            done.append(step)
            ctx.save_checkpoint(f"step_{step}", {"steps": done})
    return EffectOutput(key=params.key, steps=done)


@register_handler("chaos.sync", timeout_seconds=60, params=EffectParams)
def sync(ctx: HandlerContext[EffectParams]) -> dict[str, Any]:
    """The same in a child process."""
    with ledger.written(ctx):
        time.sleep(ctx.params.seconds)
    return {"key": ctx.params.key}


@register_handler("chaos.hold", timeout_seconds=600, params=EffectParams)
async def hold(ctx: HandlerContext[EffectParams]) -> dict[str, Any]:
    """A task that takes its time, so that something can happen to its worker meanwhile."""
    with ledger.written(ctx):
        await asyncio.sleep(ctx.params.seconds)
    return {"key": ctx.params.key}


@register_handler("chaos.deadly", timeout_seconds=60, params=EffectParams)
async def deadly(ctx: HandlerContext[EffectParams]) -> dict[str, Any]:
    """Takes its whole worker with it, each time."""
    with ledger.written(ctx):
        os.kill(os.getpid(), signal.SIGKILL)
    return {}
