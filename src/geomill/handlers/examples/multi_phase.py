"""Works in phases and resumes after the last checkpoint."""

from __future__ import annotations

import asyncio
from typing import Annotated

from pydantic import BaseModel, Field

from geomill.sdk import HandlerContext, register_handler


class MultiPhaseParams(BaseModel):
    phases: Annotated[int, Field(ge=1, le=1000)] = 3
    phase_seconds: Annotated[float, Field(ge=0, le=3600)] = 0.5


class MultiPhaseOutput(BaseModel):
    phases_completed: int
    results: list[str]


@register_handler(
    "multi_phase", queue="container-tasks", timeout_seconds=600, params=MultiPhaseParams, output=MultiPhaseOutput
)
async def multi_phase(ctx: HandlerContext[MultiPhaseParams]) -> MultiPhaseOutput:
    """Runs `phases` phases and saves a checkpoint after each."""
    results: list[str] = list(ctx.checkpoint.data["results"]) if ctx.checkpoint else []
    for phase in range(len(results) + 1, ctx.params.phases + 1):
        ctx.raise_if_cancelled()
        await asyncio.sleep(ctx.params.phase_seconds)
        results.append(f"phase_{phase}_complete")
        ctx.save_checkpoint(f"phase_{phase}", {"results": list(results)})
        ctx.progress(phase, ctx.params.phases, f"phase {phase}")
    return MultiPhaseOutput(phases_completed=ctx.params.phases, results=results)
