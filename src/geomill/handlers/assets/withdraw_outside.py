"""Takes an asset out of the external catalogue, before its files go."""

from __future__ import annotations

from pydantic import BaseModel

from geomill.sdk import HandlerContext, register_handler


class WithdrawOutsideParams(BaseModel):
    asset_id: str


class WithdrawOutsideOutput(BaseModel):
    removed: bool


@register_handler(
    "assets.withdraw_outside", timeout_seconds=600, params=WithdrawOutsideParams, output=WithdrawOutsideOutput
)
async def withdraw_outside(ctx: HandlerContext[WithdrawOutsideParams]) -> WithdrawOutsideOutput:
    """Removes the catalogue entry and the table from the external database. Nothing is there without one."""
    removed = ctx.external is not None and await ctx.external.withdraw(ctx.params.asset_id)
    return WithdrawOutsideOutput(removed=removed)
