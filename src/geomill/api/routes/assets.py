"""Routes of assets: lists, details, links and reports."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Annotated

from fastapi import APIRouter, Path, Query, Request
from pydantic import Field

from geomill.api import cursors
from geomill.api.access import ThePrincipal
from geomill.api.gateway import TheGateway
from geomill.api.problems import problem_responses
from geomill.contract.assets import (
    AssetDetails,
    AssetPage,
    AssetView,
    JobView,
    LinksView,
    ReportPage,
    RequestView,
    ReviewDecisionOptions,
    ReviewDecisionPage,
    ReviewDecisionView,
)
from geomill.contract.inputs import ApiInput, Text
from geomill.domain.access.signed_link import LONGEST_SECONDS
from geomill.domain.access.visibility import Sight, sight_of
from geomill.domain.assets.asset import DataType
from geomill.domain.assets.audit import AuditEntry
from geomill.domain.assets.platform import Refs
from geomill.domain.jsonvalue import NotJson, to_json
from geomill.domain.states import ApprovalState, ClearanceState, ProcessingStatus
from geomill.errors import InputError, Problem
from geomill.store import assets, reports
from geomill.store.assets import AssetFilter
from geomill.store.pool import transaction_time
from geomill.store.reports import ReportName

router = APIRouter(prefix="/api/assets", tags=["assets"], responses=problem_responses(503))

AssetId = Annotated[str, Path(max_length=64, pattern=r"^[^\x00]+$")]


class AssetFilters(ApiInput):
    """Filters of the list of assets."""

    platform_id: Text | None = None
    refs: Annotated[str, Field(max_length=2000)] | None = Field(
        default=None, description='Identifiers of the asset, as JSON: {"dataset_id": "IDN_lulc"}'
    )
    text: Text | None = Field(
        default=None, description="A part of an identifier or of the title, in upper or lower case"
    )
    data_type: DataType | None = None
    processing_status: ProcessingStatus | None = None
    approval_state: ApprovalState | None = None
    clearance_state: ClearanceState | None = None
    workflow_id: Text | None = None
    deleted: bool = Field(default=False, description="Whether to include unpublished assets")
    limit: Annotated[int, Field(ge=1, le=1000)] = 50
    cursor: Annotated[str, Field(max_length=300)] | None = Field(
        default=None, description="`next_cursor` of the previous page"
    )


class ReportOptions(ApiInput):
    seconds: Annotated[float, Field(gt=0, le=10 * 366 * 86_400)] | None = Field(
        default=None, description="Report `stuck`: minimum age (3600 by default). Report `sla`: how far back (a week)"
    )
    limit: Annotated[int, Field(ge=1, le=1000)] = 100


class LinkOptions(ApiInput):
    seconds: Annotated[int, Field(ge=1, le=LONGEST_SECONDS)] | None = Field(
        default=None, description="How long signed links are valid; the gateway's setting by default"
    )


@router.get("", summary="List assets, the newest first")
async def list_assets(
    gateway: TheGateway, principal: ThePrincipal, filters: Annotated[AssetFilters, Query()]
) -> AssetPage:
    sight = sight_of(principal)
    platform_id = filters.platform_id or (None if sight.everything else sight.platform_id)
    if not sight.covers(platform_id):
        return AssetPage(assets=[])
    chosen = AssetFilter(
        platform_id=platform_id,
        refs=_refs(filters.refs),
        text=filters.text,
        data_type=filters.data_type,
        processing_status=filters.processing_status,
        approval_state=filters.approval_state,
        clearance_state=filters.clearance_state,
        workflow_id=filters.workflow_id,
        deleted=filters.deleted,
    )
    before = cursors.decode(filters.cursor) if filters.cursor else None
    async with gateway.connection() as conn:
        listed = await assets.page(conn, chosen, limit=filters.limit + 1, before=before)
    page = listed[: filters.limit]
    more = len(listed) > filters.limit
    return AssetPage(
        assets=[AssetView.of(asset) for asset in page],
        next_cursor=cursors.encode(page[-1].created_at, page[-1].asset_id) if more else None,
    )


@router.get("/reports/{report}", summary="Operators' reports: stuck, failed, sla, retried, load")
async def get_report(gateway: TheGateway, report: ReportName, options: Annotated[ReportOptions, Query()]) -> ReportPage:
    seconds = options.seconds or reports.DEFAULT_SECONDS.get(report)
    async with gateway.connection() as conn:
        rows = await reports.read(conn, report, seconds=seconds, limit=options.limit)
        now = await transaction_time(conn)
    window = timedelta(seconds=seconds) if seconds else None
    return ReportPage(report=report.value, rows=rows, generated_at=now, window=window)


@router.get("/decisions", summary="List decisions of reviewers, the newest first")
async def list_decisions(gateway: TheGateway, options: Annotated[ReviewDecisionOptions, Query()]) -> ReviewDecisionPage:
    """Who approved, rejected, revoked, unpublished or rolled back what, over all assets."""
    cursor = options.cursor
    before = (cursors.decode(cursor)[0], cursors.decode_number(cursor)) if cursor else None
    async with gateway.connection() as conn:
        rows = await assets.review_decisions(conn, since=options.since, limit=options.limit + 1, before=before)
    page = [ReviewDecisionView(**row) for row in rows[: options.limit]]
    more = len(rows) > options.limit
    return ReviewDecisionPage(
        decisions=page, next_cursor=cursors.encode(page[-1].at, str(page[-1].audit_id)) if more else None
    )


@router.get("/{asset_id}", summary="Get an asset with its history", responses=problem_responses(404))
async def get_asset(gateway: TheGateway, principal: ThePrincipal, asset_id: AssetId) -> AssetDetails:
    """Includes the latest hundred revisions, requests, jobs and decisions, the newest first."""
    async with gateway.connection() as conn:
        asset = await assets.get(conn, asset_id)
        sight = sight_of(principal)
        if not sight.covers(asset.platform_id):
            raise assets.unknown(asset_id)
        return AssetDetails.of(
            asset,
            outputs=asset.outputs,
            revisions=await assets.revisions(conn, asset_id),
            requests=[RequestView.of(request) for request in await assets.requests(conn, asset_id)],
            jobs=[JobView.of(job) for job in await assets.jobs(conn, asset_id)],
            audit=[_as_seen_by(sight, entry) for entry in await assets.audit(conn, asset_id)],
        )


@router.get("/{asset_id}/links", summary="Get the links to an asset", responses=problem_responses(404))
async def get_links(
    gateway: TheGateway,
    principal: ThePrincipal,
    request: Request,
    asset_id: AssetId,
    options: Annotated[LinkOptions, Query()],
) -> LinksView:
    """Ready-to-use links to tiles, features, downloads, the STAC item and the viewer. If the asset is not public, the
    links are signed: they work for everyone who has them until they expire or the asset is unpublished."""
    async with gateway.connection() as conn:
        asset = await assets.get(conn, asset_id)
        now = await transaction_time(conn)
    if not sight_of(principal).covers(asset.platform_id):
        raise assets.unknown(asset_id)
    asset_links = gateway.links.of(asset, now, str(request.base_url), options.seconds)
    revision = asset.served_revision if asset_links.links else None
    return LinksView(
        asset_id=asset_id,
        revision=revision,
        links=asset_links.links,
        public_links=asset_links.public,
        expires_at=asset_links.expires_at,
    )


def _as_seen_by(sight: Sight, entry: AuditEntry) -> AuditEntry:
    """Hide the address of the person who decided from partners."""
    return entry if sight.everything else entry.evolve(client_address=None)


def _refs(text: str | None) -> Refs | None:
    if text is None:
        return None
    try:
        refs = json.loads(text)
        to_json(refs)
    except (ValueError, RecursionError, NotJson):
        refs = None
    if not isinstance(refs, dict) or not all(isinstance(value, str | int) for value in refs.values()):
        problem = Problem(
            "refs", f"must be a JSON object of identifiers, not {text[:80]!r}", 'write {"dataset_id": "x"}'
        )
        raise InputError(f"the request is wrong: {problem}", problems=[problem])
    return refs
