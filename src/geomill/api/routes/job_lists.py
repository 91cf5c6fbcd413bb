"""Routes of many jobs: the list, the counts."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query

from geomill.api.gateway import TheGateway
from geomill.api.problems import problem_responses
from geomill.api.views import job_lists as views
from geomill.contract.jobs import HistogramOptions, JobCountsView, JobFilters, JobHistogram, JobListOptions, JobPage
from geomill.store.pool import transaction_time

router = APIRouter(prefix="/api/v1/jobs", tags=["jobs"], responses=problem_responses(503))


@router.get("", summary="List jobs, the newest first")
async def list_jobs(gateway: TheGateway, options: Annotated[JobListOptions, Query()]) -> JobPage:
    """Lists jobs that wait to be claimed first, then all others, the newest first. A job that is claimed while you page
    may be on two pages. A request examines at most 10,000 jobs of each status: a page with rare matches may be short,
    and goes on with `next_cursor`."""
    async with gateway.connection() as conn:
        return await views.page(conn, gateway.job_queue, options)


@router.get("/counts", summary="Count jobs by status")
async def count_jobs(gateway: TheGateway, filters: Annotated[JobFilters, Query()]) -> JobCountsView:
    """Counts the jobs of the list with these filters, of each status at most the newest 20,000. With a filter by asset,
    submitter, correlation id or parked jobs, at most the newest 20,000 jobs of that filter are counted."""
    async with gateway.connection() as conn:
        counts, at_least = await views.counts(conn, gateway.job_queue, filters)
        return JobCountsView(counts=counts, at_least=at_least, counted_at=await transaction_time(conn))


@router.get("/histogram", summary="Count jobs over time")
async def get_histogram(gateway: TheGateway, options: Annotated[HistogramOptions, Query()]) -> JobHistogram:
    """Counts the claimed jobs of the list with these filters by the time of their creation, and by workflow."""
    async with gateway.connection() as conn:
        return await views.histogram(conn, options, await transaction_time(conn))
