"""Fails at random, or a given number of times, and then echoes."""

from __future__ import annotations

import random
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from geomill.sdk import HandlerContext, HandlerError, register_handler


class FlakyEchoParams(BaseModel):
    model_config = ConfigDict(extra="allow")

    failure_rate: Annotated[float, Field(ge=0, le=1)] = 0.2
    fail_times: Annotated[int | None, Field(ge=0, description="Number of attempts that fail before one succeeds")] = (
        None
    )


class FlakyEchoOutput(BaseModel):
    echoed_params: dict[str, Any]
    retry_count: int
    task_id: str
    handler: str


@register_handler("flaky_echo", timeout_seconds=60, params=FlakyEchoParams, output=FlakyEchoOutput)
async def flaky_echo(ctx: HandlerContext[FlakyEchoParams]) -> FlakyEchoOutput:
    """Echoes its parameters unless it fails."""
    if _fails(ctx):
        raise HandlerError(f"random failure of attempt {ctx.attempt}", code="flaky")
    return FlakyEchoOutput(
        echoed_params=ctx.params.model_dump(mode="json", exclude_unset=True),
        retry_count=ctx.retry_count,
        task_id=ctx.task_id,
        handler=ctx.handler,
    )


def _fails(ctx: HandlerContext[FlakyEchoParams]) -> bool:
    if ctx.params.fail_times is not None:
        return ctx.retry_count < ctx.params.fail_times
    return random.random() < ctx.params.failure_rate  # noqa: S311  not for security
