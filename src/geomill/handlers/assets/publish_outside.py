"""Makes an exported asset visible in the external zone: its catalogue entry and, for a vector, its table."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel

from geomill.domain.assets.inventory import files_outside
from geomill.domain.engine.job import JobPurpose
from geomill.sdk import HandlerContext, register_handler

NO_DATABASE = (
    "no external database is configured (GEOMILL_EXTERNAL_DATABASE_URL): only files were exported, without catalogue"
)


class PublishOutsideParams(BaseModel):
    asset_id: str


class PublishOutsideOutput(BaseModel):
    stac_item: bool = False
    table_name: str | None = None
    rows: int | None = None
    files: list[dict[str, Any]] = []
    warnings: list[str] = []


@register_handler(
    "assets.publish_outside", timeout_seconds=3600, params=PublishOutsideParams, output=PublishOutsideOutput
)
async def publish_outside(ctx: HandlerContext[PublishOutsideParams]) -> PublishOutsideOutput:
    """Writes an exported asset to the external database while the asset is locked as public."""
    asset_id = ctx.params.asset_id
    order = await ctx.orders.current(asset_id, ctx.job_id, JobPurpose.EXPORT)
    files = files_outside(await ctx.orders.files(order), order.blob_stem, order.revision)
    if ctx.external is None:
        ctx.logger.warning(NO_DATABASE)
        return PublishOutsideOutput(files=files, warnings=[NO_DATABASE])
    entry = await ctx.external.prepare(order)
    async with ctx.orders.holding(asset_id, ctx.job_id, JobPurpose.EXPORT) as current_order:
        await ctx.external.publish(current_order, entry, files)
    return PublishOutsideOutput(
        files=files, stac_item=entry["item"] is not None, table_name=entry["table_name"], rows=entry["rows"]
    )
