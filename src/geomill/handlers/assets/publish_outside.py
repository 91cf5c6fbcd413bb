"""What is outside of an asset beside its files: entry and table."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel

from geomill.sdk import HandlerContext, register_handler

NO_DATABASE = "there is no external database (GEOMILL_EXTERNAL_DATABASE_URL): only files are outside, and no catalogue"


class PublishOutsideParams(BaseModel):
    asset_id: str
    revision: int
    files: list[dict[str, Any]]


class PublishOutsideOutput(BaseModel):
    stac_item: bool = False
    table_name: str | None = None
    rows: int | None = None
    warnings: list[str] = []


@register_handler(
    "assets.publish_outside", timeout_seconds=3600, params=PublishOutsideParams, output=PublishOutsideOutput
)
async def publish_outside(ctx: HandlerContext[PublishOutsideParams]) -> PublishOutsideOutput:
    """Puts an exported asset into the external database: its catalogue entry, and of a vector its table."""
    if ctx.external is None:
        ctx.logger.warning(NO_DATABASE)
        return PublishOutsideOutput(warnings=[NO_DATABASE])
    given = ctx.params
    return PublishOutsideOutput(**await ctx.external.publish(given.asset_id, given.revision, given.files))
