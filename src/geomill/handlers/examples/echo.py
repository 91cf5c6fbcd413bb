"""Returns its parameters. With `steps` > 1 it works in steps and resumes after the last checkpoint."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from geomill.sdk import HandlerContext, register_handler


class EchoParams(BaseModel):
    """Accepts any parameters. These two control the steps."""

    model_config = ConfigDict(extra="allow")

    steps: Annotated[int | None, Field(ge=1, le=10_000)] = None
    step_delay: Annotated[float | None, Field(ge=0, le=3600, description="Seconds per step")] = None


class EchoOutput(BaseModel):
    echoed_params: dict[str, Any]
    handler: str
    task_id: str
    steps_completed: int = 1
    completed_steps: list[str] = []


@register_handler("echo", timeout_seconds=60, params=EchoParams, output=EchoOutput)
async def echo(ctx: HandlerContext[EchoParams]) -> EchoOutput:
    """Echoes its parameters, in one or several checkpointed steps."""
    steps = ctx.params.steps or 1
    completed: list[str] = list(ctx.checkpoint.data["completed_steps"]) if ctx.checkpoint else []
    for step in range(len(completed) + 1, steps + 1):
        ctx.raise_if_cancelled()
        if steps > 1:
            await asyncio.sleep(0.1 if ctx.params.step_delay is None else ctx.params.step_delay)
        completed.append(f"step_{step}")
        if step < steps:
            ctx.save_checkpoint(f"step_{step}", {"completed_steps": list(completed)})
        ctx.progress(step, steps, f"step {step} of {steps}")
    return EchoOutput(
        echoed_params=ctx.params.model_dump(mode="json", exclude_unset=True),
        handler=ctx.handler,
        task_id=ctx.task_id,
        steps_completed=steps,
        completed_steps=completed,
    )
