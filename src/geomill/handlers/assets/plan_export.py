"""Divides the files of a public asset among the tasks of its export."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, Field

from geomill.domain.assets.inventory import slices
from geomill.domain.engine.job import JobPurpose
from geomill.sdk import HandlerContext, register_handler


class PlanExportParams(BaseModel):
    asset_id: str
    files_per_slice: Annotated[int, Field(ge=1)] | None = None
    """Default: so many that there are a thousand slices at most."""


class Slice(BaseModel):
    """A part of the inventory, from its file number `first`."""

    first: int
    count: int


class PlanExportOutput(BaseModel):
    revision: int
    count: int
    slices: list[Slice]


@register_handler("assets.plan_export", timeout_seconds=120, params=PlanExportParams, output=PlanExportOutput)
async def plan_export(ctx: HandlerContext[PlanExportParams]) -> PlanExportOutput:
    """Counts the files of the public revision and cuts the inventory into slices."""
    order = await ctx.orders.current(ctx.params.asset_id, ctx.job_id, JobPurpose.EXPORT)
    count = await ctx.orders.count_files(order)
    parts = slices(count, size=ctx.params.files_per_slice)
    return PlanExportOutput(revision=order.revision, count=count, slices=[Slice(**part) for part in parts])
