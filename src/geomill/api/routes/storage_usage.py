"""Routes of the use of storage."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query

from geomill.api import cursors
from geomill.api.gateway import TheGateway
from geomill.api.problems import problem_responses
from geomill.api.views.storage import cleanup_view
from geomill.contract.operations import (
    AssetUsageFilters,
    AssetUsagePage,
    AssetUsageView,
    CleanupOptions,
    CleanupView,
    StorageView,
)
from geomill.engine.maintenance.leftovers import LeftoverOptions
from geomill.engine.maintenance.retention import RetentionOptions
from geomill.engine.maintenance.uploads import upload_ages
from geomill.store import leftovers, retention, storage_usage, uploads

router = APIRouter(prefix="/api/v1/storage", tags=["storage"], responses=problem_responses(503))


@router.get("", summary="Get the use of storage by zone")
async def get_storage(gateway: TheGateway) -> StorageView:
    """Counts the files that assets list in their inventories, and the tables of features. Objects that no asset lists
    are not counted. The figures are at most a minute old."""
    return await gateway.storage_figures.look()


@router.get("/cleanup", summary="List the old data that is deleted next")
async def list_cleanup(gateway: TheGateway, options: Annotated[CleanupOptions, Query()]) -> CleanupView:
    """A dry run of what orchestrators do with old data, by the settings of this gateway. Nothing is deleted."""
    ages_of_revisions = LeftoverOptions.of(gateway.retention).retention
    ages = upload_ages(gateway.uploads, gateway.retention)
    details = RetentionOptions.of(gateway.retention).details
    async with gateway.connection() as conn, conn.transaction():
        await storage_usage.limit_time(conn)
        revisions = await leftovers.due(conn, ages_of_revisions, options.limit + 1)
        old_uploads = await uploads.due(conn, ages, options.limit + 1)
        jobs = await retention.due(conn, details) if details is not None else 0
    return cleanup_view(revisions, old_uploads, jobs, options.limit, gateway.uploads.upload_expire_hours)


@router.get("/assets", summary="List the use of storage by asset, the newest first")
async def list_asset_usage(gateway: TheGateway, filters: Annotated[AssetUsageFilters, Query()]) -> AssetUsagePage:
    before = cursors.decode(filters.cursor) if filters.cursor else None
    async with gateway.connection() as conn:
        usages = await storage_usage.assets(
            conn, platform_id=filters.platform_id, limit=filters.limit + 1, before=before
        )
    page, more = usages[: filters.limit], len(usages) > filters.limit
    return AssetUsagePage(
        assets=[AssetUsageView.model_validate(usage) for usage in page],
        next_cursor=cursors.encode(page[-1].created_at, page[-1].asset_id) if more else None,
    )
