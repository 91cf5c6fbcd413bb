"""Always fails."""

from __future__ import annotations

from pydantic import BaseModel

from geomill.sdk import HandlerContext, HandlerError, register_handler


class FailParams(BaseModel):
    error_message: str = "Intentional failure for testing"
    retryable: bool = True


@register_handler("fail", timeout_seconds=30, params=FailParams)
async def fail(ctx: HandlerContext[FailParams]) -> None:
    """Fails with `error_message`."""
    raise HandlerError(ctx.params.error_message, retryable=ctx.params.retryable, code="intentional")
