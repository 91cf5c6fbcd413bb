"""Waits until earlier jobs have ended, so that one job at a time changes the external copy of an asset."""

from __future__ import annotations

from pydantic import BaseModel

from geomill.sdk import HandlerContext, HandlerError, register_handler


class SettleParams(BaseModel):
    previous_job_ids: list[str] = []


@register_handler("blob.settle", timeout_seconds=30, params=SettleParams)
async def settle(ctx: HandlerContext[SettleParams]) -> None:
    """Fails with a retryable error while one of the previous jobs is under way."""
    for previous in ctx.params.previous_job_ids:
        if not await ctx.job_ended(previous):
            raise HandlerError(f"the job {previous} has not ended yet", code="not_yet")
