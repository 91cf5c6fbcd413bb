"""The route that looks into a file before it is submitted."""

from __future__ import annotations

from fastapi import APIRouter, Request

from geomill.api.access import ThePrincipal
from geomill.api.gateway import TheGateway
from geomill.api.problems import problem_responses
from geomill.api.routes.platform import actor, require_platform
from geomill.contract.inspection import Inspection, InspectionOrder
from geomill.platform.inspecting import inspect
from geomill.store import platforms

router = APIRouter(prefix="/api/platform", tags=["platform"], responses=problem_responses(503))


@router.post("/inspect", summary="Look into a file before submitting it", responses=problem_responses(404, 429))
async def inspect_source(
    gateway: TheGateway, principal: ThePrincipal, request: Request, order: InspectionOrder
) -> Inspection:
    """Reads the file's header and the beginning of its data, within limits of time and memory. Tells format, layers,
    columns or bands, coordinate system, encoding and extent, the workflow that would run, and all problems, each with
    the option that solves it. Nothing is stored."""
    require_platform(principal, order.platform_id)
    async with gateway.connection() as conn:
        platform = await platforms.get(conn, order.platform_id)
    return await inspect(gateway.desk, gateway.inspector, platform, order, actor(request, principal, None))
