"""The first handler of the tutorial."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict

from geomill.sdk import HandlerContext, register_handler


class HelloParams(BaseModel):
    model_config = ConfigDict(extra="allow")

    name: str = "World"


class HelloOutput(BaseModel):
    message: str


@register_handler("hello_world", timeout_seconds=30, params=HelloParams, output=HelloOutput)
async def hello_world(ctx: HandlerContext[HelloParams]) -> HelloOutput:
    """Greets `name`."""
    return HelloOutput(message=f"Hello, {ctx.params.name}!")
