"""Routes of the gateway's settings and of the operators' audit."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

from fastapi import APIRouter, Query

from geomill.api import cursors
from geomill.api.gateway import TheGateway
from geomill.api.problems import problem_responses
from geomill.contract.operations import OperatorAuditFilters, OperatorAuditPage, SettingList, SettingView
from geomill.store import operator_audit

router = APIRouter(prefix="/api/v1", tags=["operations"])


@router.get("/settings", summary="List the settings of this gateway")
async def list_settings(gateway: TheGateway) -> SettingList:
    """Lists the settings in effect. Passwords and secrets are masked, also inside of URLs. Other gateways,
    orchestrators and workers have settings of their own."""
    return SettingList(settings=[SettingView(**asdict(setting)) for setting in gateway.settings])


@router.get("/audit", summary="List changes by operators, the newest first", responses=problem_responses(503))
async def list_operator_audit(
    gateway: TheGateway, filters: Annotated[OperatorAuditFilters, Query()]
) -> OperatorAuditPage:
    """Lists who changed keys, schedules, platforms, dead letters, callbacks and circuits. Decisions about an asset are
    in the details of the asset."""
    before = cursors.decode_number(filters.cursor) if filters.cursor else None
    async with gateway.connection() as conn:
        entries = await operator_audit.page(conn, action=filters.action, limit=filters.limit + 1, before=before)
    page, more = entries[: filters.limit], len(entries) > filters.limit
    return OperatorAuditPage(
        entries=page, next_cursor=cursors.encode(page[-1].at, str(page[-1].audit_id)) if more else None
    )
