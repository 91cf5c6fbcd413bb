"""Removes an asset from the external catalogue before its files are deleted."""

from __future__ import annotations

from pydantic import BaseModel

from geomill.domain.engine.job import JobPurpose
from geomill.sdk import HandlerContext, register_handler


class WithdrawOutsideParams(BaseModel):
    asset_id: str


class WithdrawOutsideOutput(BaseModel):
    removed: bool


@register_handler(
    "assets.withdraw_outside", timeout_seconds=600, params=WithdrawOutsideParams, output=WithdrawOutsideOutput
)
async def withdraw_outside(ctx: HandlerContext[WithdrawOutsideParams]) -> WithdrawOutsideOutput:
    """Removes the catalogue entry and the tables from the external database, if there is one."""
    order = await ctx.orders.current(ctx.params.asset_id, ctx.job_id, JobPurpose.WITHDRAW)
    removed = ctx.external is not None and await ctx.external.withdraw(order)
    return WithdrawOutsideOutput(removed=removed)
