"""Reports assets that have been processing for too long."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, Field

from geomill.sdk import HandlerContext, register_handler


class ReportStuckParams(BaseModel):
    seconds: Annotated[float, Field(gt=0)] = 3600.0


class StuckAsset(BaseModel):
    asset_id: str
    workflow_id: str | None
    job_id: str | None
    seconds: float
    current_node: str | None


class ReportStuckOutput(BaseModel):
    count: int
    assets: list[StuckAsset]


@register_handler("assets.report_stuck", timeout_seconds=60, params=ReportStuckParams, output=ReportStuckOutput)
async def report_stuck(ctx: HandlerContext[ReportStuckParams]) -> ReportStuckOutput:
    """Returns assets that have been processing for longer than `seconds`, and logs a warning for each."""
    rows = await ctx.asset_report("stuck", ctx.params.seconds)
    stuck = [StuckAsset.model_validate(row) for row in rows]
    ctx.logger.info("%d assets are stuck", len(stuck))
    for asset in stuck:
        ctx.logger.warning("asset %s has been at %s for %.0f s", asset.asset_id, asset.current_node, asset.seconds)
    return ReportStuckOutput(count=len(stuck), assets=stuck)
