"""Routes of log lines, and of streams of lists, assets and instances."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Annotated

from fastapi import APIRouter, Depends, Header, Query
from fastapi.sse import EventSourceResponse, ServerSentEvent

from geomill.api import lookup
from geomill.api.gateway import TheGateway
from geomill.api.problems import problem_responses
from geomill.api.routes.jobs import JobId, admitted, existing_job
from geomill.api.views.job_lists import job_filter
from geomill.api.views.logs import log_filter, log_line, narrowed
from geomill.contract.jobs import QUEUED, JobFilters
from geomill.contract.logs import LineId, LogFilters, LogOptions, LogPage
from geomill.errors import InputError, Problem
from geomill.store import logs
from geomill.store.job_lists import JobFilter
from geomill.store.logs import LogFilter

router = APIRouter(responses=problem_responses(503))

Version = Annotated[str, Header(alias="Last-Event-ID", max_length=64)]


@router.get(
    "/api/v1/jobs/{job_id}/logs",
    tags=["jobs"],
    summary="List the log lines of a job",
    responses=problem_responses(404),
)
async def get_logs(gateway: TheGateway, job_id: JobId, options: Annotated[LogOptions, Query()]) -> LogPage:
    """Lists the lines that handlers logged, the oldest first. An attempt keeps at most 200 lines."""
    chosen = log_filter(options)
    async with gateway.connection() as conn:
        chosen = await narrowed(conn, gateway.graphs, job_id, chosen)
        page = await logs.page(conn, job_id, chosen, after=options.after, limit=options.limit)
        if not page.lines:
            await lookup.get(conn, gateway.job_queue, job_id)
    return LogPage(lines=[log_line(line) for line in page.lines], next_after=page.end, more=page.more)


async def _log_filter(gateway: TheGateway, job_id: JobId, filters: Annotated[LogFilters, Query()]) -> LogFilter:
    """Check the filters before the stream begins, while a 422 can still be sent."""
    chosen = log_filter(filters)
    async with gateway.connection() as conn:
        return await narrowed(conn, gateway.graphs, job_id, chosen)


@router.get(
    "/api/v1/jobs/{job_id}/logs/stream",
    tags=["jobs"],
    summary="Follow the log lines of a job live",
    response_class=EventSourceResponse,
    responses=problem_responses(404, 429),
    dependencies=[Depends(admitted)],
)
async def stream_logs(
    gateway: TheGateway,
    job_id: Annotated[str, Depends(existing_job)],
    chosen: Annotated[LogFilter, Depends(_log_filter)],
    last_event_id: Annotated[LineId, Header()] = 0,
) -> AsyncIterator[ServerSentEvent]:
    """Server-sent events: `line` for each log line, `end` with the outcome of the job. A client that reconnects with
    `Last-Event-ID` continues after its last line."""
    async for event in gateway.streams.follow_logs(job_id, chosen, last_event_id):
        yield event


def _list_filter(filters: Annotated[JobFilters, Query()]) -> JobFilter:
    """Check the filters before the stream begins, while a 422 can still be sent."""
    if QUEUED in filters.status:
        problem = Problem(
            "status", "a queued job has no history to follow", "leave it out: a job appears when it is claimed"
        )
        raise InputError(f"the filters are wrong: {problem}", problems=[problem])
    return job_filter(filters)


@router.get(
    "/api/v1/jobs/stream",
    tags=["jobs"],
    summary="Follow all jobs of a filter live",
    response_class=EventSourceResponse,
    responses=problem_responses(429),
    dependencies=[Depends(admitted)],
)
async def stream_jobs(
    gateway: TheGateway,
    chosen: Annotated[JobFilter, Depends(_list_filter)],
    last_event_id: Annotated[LineId | None, Header()] = None,
) -> AsyncIterator[ServerSentEvent]:
    """Server-sent events, at most twice a second: `ready` at first, `job` for each job that has changed and passes the
    filters, `left` for one that was sent and passes them no longer, `reset` if there were too many changes to send:
    read the list again. Open the stream before you read the list. A client that reconnects with `Last-Event-ID` gets
    the jobs that have changed since; some may come twice."""
    async for event in gateway.streams.follow_jobs(chosen, last_event_id):
        yield event


@router.get(
    "/api/assets/review/stream",
    tags=["assets"],
    summary="Follow the assets that wait for review",
    response_class=EventSourceResponse,
    responses=problem_responses(429),
    dependencies=[Depends(admitted)],
)
async def stream_reviews(gateway: TheGateway, last_event_id: Version = "") -> AsyncIterator[ServerSentEvent]:
    """Server-sent events: `snapshot` with the 200 that wait longest at first, then `changed` and `left` for each asset that comes,
    changes or goes, at most once a second. A client that reconnects with `Last-Event-ID` gets a snapshot only if
    something has changed."""
    async for event in gateway.streams.follow_reviews(last_event_id):
        yield event


@router.get(
    "/api/v1/instances/stream",
    tags=["health"],
    summary="Follow the processes of geomill",
    response_class=EventSourceResponse,
    responses=problem_responses(429),
    dependencies=[Depends(admitted)],
)
async def stream_instances(gateway: TheGateway, last_event_id: Version = "") -> AsyncIterator[ServerSentEvent]:
    """Server-sent events: `snapshot` with all processes at first, then `changed` and `left`, at most once a second."""
    async for event in gateway.streams.follow_instances(last_event_id):
        yield event
