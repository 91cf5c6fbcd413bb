"""Ends the runs of Data Factory that an earlier export has left behind."""

from __future__ import annotations

from pydantic import BaseModel

from geomill.datafactory.client import factory_client
from geomill.datafactory.running import stop
from geomill.domain.assets.factory import FactoryPlace
from geomill.domain.engine.job import JobPurpose
from geomill.sdk import HandlerContext, HandlerError, register_handler


class StopPipelinesParams(BaseModel):
    asset_id: str
    purpose: JobPurpose
    factory: FactoryPlace
    previous_job_ids: list[str] = []


class StopPipelinesOutput(BaseModel):
    runs: int


@register_handler("blob.stop_pipelines", timeout_seconds=300, params=StopPipelinesParams, output=StopPipelinesOutput)
async def stop_pipelines(ctx: HandlerContext[StopPipelinesParams]) -> StopPipelinesOutput:
    """Cancels the runs of earlier exports of the asset. Fails with a retryable error until all of them have ended."""
    params = ctx.params
    await ctx.orders.current(params.asset_id, ctx.job_id, params.purpose)
    if not params.previous_job_ids:
        return StopPipelinesOutput(runs=0)
    async with factory_client(params.factory, ctx.storage.recipe.azure.client_id) as factory:
        runs, live = await stop(
            factory,
            params.previous_job_ids,
            thoroughly=params.purpose is JobPurpose.WITHDRAW,  # an export writes to a folder of its own
            check=ctx.raise_if_cancelled,
        )
    if live:
        raise HandlerError(f"{live} runs of Data Factory have not ended yet", code="not_yet")
    return StopPipelinesOutput(runs=runs)
