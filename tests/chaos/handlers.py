"""Handlers for the chaos run: each leaves an effect under its own key, and the tables count what really happened."""

from __future__ import annotations

import asyncio
import time
from typing import Annotated, Any

import psycopg
from pydantic import BaseModel, Field

from geomill.sdk import HandlerContext, HandlerError, register_handler

EFFECT = (
    "INSERT INTO chaos.effects (effect_key, runs) VALUES (%s, 1)"
    " ON CONFLICT (effect_key) DO UPDATE SET runs = chaos.effects.runs + 1"
)


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
    """Works in checkpointed steps, fails as often as it is told to, and leaves its effect at the end."""
    params = ctx.params
    done: list[int] = list(ctx.checkpoint.data["steps"]) if ctx.checkpoint else []
    if params.hopeless:
        raise HandlerError("hopeless", retryable=False, code="hopeless")
    if ctx.retry_count < params.fail_times:
        raise HandlerError("not yet", code="flaky")
    for step in range(len(done), params.steps):
        await asyncio.sleep(params.seconds / params.steps)
        done.append(step)
        ctx.save_checkpoint(f"step_{step}", {"steps": done})
    await _leave_effect(ctx, f"{ctx.job_id}/{params.key}")
    return EffectOutput(key=params.key, steps=done)


async def _leave_effect(ctx: HandlerContext[EffectParams], key: str) -> None:
    """A handler that uses the database must outlast its restarts: that is not the engine's to do."""
    for patience in range(100):
        try:
            async with ctx.pool.connection(timeout=5) as conn:
                await conn.execute(EFFECT, (key,))
        except psycopg.OperationalError:
            await asyncio.sleep(0.05 * min(patience, 10))
        else:
            return
    raise HandlerError("the database did not come back")


@register_handler("chaos.sync", timeout_seconds=60, params=EffectParams)
def sync(ctx: HandlerContext[EffectParams]) -> dict[str, Any]:
    """The same in a child process: without a database, so without an effect."""
    time.sleep(ctx.params.seconds)
    return {"key": ctx.params.key}
