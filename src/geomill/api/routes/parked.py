"""The route of parked jobs. It is tried before `/api/v1/jobs/{job_id}`, which would take `parked` for an id."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query

from geomill.api import cursors
from geomill.api.gateway import TheGateway
from geomill.api.problems import problem_responses
from geomill.contract.operations import ParkedJobPage, ParkedJobView
from geomill.contract.paging import PageOptions
from geomill.store import parked

router = APIRouter(prefix="/api/v1/jobs", tags=["jobs"], responses=problem_responses(503))


@router.get("/parked", summary="List parked jobs, the longest parked first")
async def list_parked_jobs(gateway: TheGateway, options: Annotated[PageOptions, Query()]) -> ParkedJobPage:
    """Nobody works on a parked job until an operator releases it."""
    after = cursors.decode(options.cursor) if options.cursor else None
    async with gateway.connection() as conn:
        rows = await parked.page(conn, limit=options.limit + 1, after=after)
    page, more = rows[: options.limit], len(rows) > options.limit
    return ParkedJobPage(
        jobs=[ParkedJobView.model_validate(row) for row in page],
        next_cursor=cursors.encode(page[-1].parked_at, page[-1].job_id) if more else None,
    )
