"""Lets a pipeline of Data Factory copy a part of an export."""

from __future__ import annotations

from pydantic import BaseModel

from geomill.datafactory.client import FactoryClient, factory_client
from geomill.datafactory.run import PipelineRun, PipelineRunState
from geomill.datafactory.running import ended, run_for
from geomill.domain.assets.factory import FactoryPlace
from geomill.domain.engine.job import JobPurpose
from geomill.errors import ConflictError, DataFactoryUnavailable
from geomill.handlers.blob.pipeline import arriving, copy_of, export_id, note, target_of
from geomill.sdk import HandlerContext, HandlerError, ObjectName, Zone, register_handler
from geomill.sdk.orders import AssetOrder

LONGEST_SECONDS = 43_200


class CopyByPipelineParams(BaseModel):
    asset_id: str
    factory: FactoryPlace
    first: int
    count: int


class CopyByPipelineOutput(BaseModel):
    run_id: str
    files: int


@register_handler(
    "blob.copy_by_pipeline", timeout_seconds=LONGEST_SECONDS, params=CopyByPipelineParams, output=CopyByPipelineOutput
)
async def copy_by_pipeline(ctx: HandlerContext[CopyByPipelineParams]) -> CopyByPipelineOutput:
    """Starts a run for a slice of the inventory, or finds the one that an earlier attempt has started, and waits for
    its end. The run copies to a temporary place."""
    params = ctx.params
    order = await ctx.orders.current(params.asset_id, ctx.job_id, JobPurpose.EXPORT)
    files = await ctx.orders.files(order, params.first, params.count)
    async with factory_client(params.factory, ctx.storage.recipe.azure.client_id) as factory:
        run_id = await _started(ctx, factory, order, files)
        run = await _watched(ctx, factory, run_id)
    if run.state is PipelineRunState.SUCCEEDED:
        return CopyByPipelineOutput(run_id=run_id, files=len(files))
    reason = f": {run.message}" if run.message else ""
    if run.state is PipelineRunState.CANCELLED:
        raise HandlerError(
            f"the run {run_id} of Data Factory was cancelled{reason}", code="data_factory_cancelled", retryable=False
        )
    raise HandlerError(f"the run {run_id} of Data Factory failed{reason}", code="data_factory_failed")


async def _started(
    ctx: HandlerContext[CopyByPipelineParams], factory: FactoryClient, order: AssetOrder, files: list[dict[str, object]]
) -> str:
    part = export_id(ctx.job_id, ctx.params.first)
    copies = []
    for file in files:
        target = target_of(order, file)
        source = ObjectName(Zone.SILVER, str(file["container"]), str(file["path"]))
        copies.append(copy_of(ctx.storage, source, arriving(order, ctx.job_id, target)))

    async def first_here() -> bool:
        try:
            await ctx.storage.put_bytes(note(order, ctx.job_id, part), b"", if_absent=True)
        except ConflictError:
            return False
        return True

    run_id = await run_for(factory, part, {"files": copies}, first_here)
    ctx.save_checkpoint("started", {"run_id": run_id})
    ctx.logger.info("the run %s of Data Factory copies %d files", run_id, len(files))
    return run_id


async def _watched(ctx: HandlerContext[CopyByPipelineParams], factory: FactoryClient, run_id: str) -> PipelineRun:
    def look(run: PipelineRun) -> None:
        ctx.progress(1.0 if run.ended else 0.5, message=f"Data Factory: {run.state}")

    async def check() -> None:
        if not ctx.cancelled:
            return
        try:  # a worker that stops leaves the run alone: the next one goes on watching it
            await ctx.orders.current(ctx.params.asset_id, ctx.job_id, JobPurpose.EXPORT)
        except HandlerError:
            await _cancel(ctx, factory, run_id)
        ctx.raise_if_cancelled()

    return await ended(factory, run_id, look, check)


async def _cancel(ctx: HandlerContext[CopyByPipelineParams], factory: FactoryClient, run_id: str) -> None:
    """Cancel the run of an export that nobody wants any more. The withdrawal does the same, so a failure is only
    logged."""
    try:
        await factory.cancel(run_id)
    except (ConflictError, DataFactoryUnavailable) as error:
        ctx.logger.warning("the run %s was not cancelled: %s", run_id, error)
