"""Routes of jobs: lists, details, events, streams and commands."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from typing import Annotated, Any

from fastapi import APIRouter, Body, Depends, Header, Path, Query
from fastapi.sse import EventSourceResponse, ServerSentEvent
from pydantic import Field

from geomill.api import lookup
from geomill.api.access import ThePrincipal
from geomill.api.gateway import TheGateway
from geomill.api.problems import problem_responses
from geomill.api.views.differences import job_difference
from geomill.api.views.jobs import job_details
from geomill.contract import jobs as contract
from geomill.contract.differences import JobDifference
from geomill.contract.inputs import ApiInput
from geomill.contract.jobs import JobDetails
from geomill.domain.engine.message import JobQueueMessage
from geomill.engine import control
from geomill.errors import ConflictError
from geomill.store import attendance, instances, node_views, stage_jobs
from geomill.store import events as event_store
from geomill.store.pool import Connection, transaction_time
from geomill.store.progress import JobProgress

router = APIRouter(prefix="/api/v1/jobs", responses=problem_responses(503))

LARGEST_ID = 2**63 - 1
STAGE_JOB = re.compile(r"[0-9a-f]{64}")
IdInPath = Annotated[str, Path(alias="job_id", max_length=64, pattern=r"^[^\x00]+$")]
EventId = Annotated[int, Field(ge=0, le=LARGEST_ID)]


async def _job_id(gateway: TheGateway, identifier: IdInPath) -> str:
    """Return the job id. The id of a stage job stands for its latest attempt."""
    if not STAGE_JOB.fullmatch(identifier):
        return identifier
    async with gateway.connection() as conn:
        return await stage_jobs.latest_run(conn, identifier) or identifier


JobId = Annotated[str, Depends(_job_id)]


class EventFilters(ApiInput):
    after: EventId = Field(default=0, description="Only events with a greater id")
    limit: Annotated[int, Field(ge=1, le=1000)] = 200


class DetailOptions(ApiInput):
    outputs: bool = Field(default=True, description="Whether to include the outputs of nodes")


@router.get("/{job_id}", tags=["jobs"], summary="Get a job with its nodes", responses=problem_responses(404))
async def get_job(gateway: TheGateway, job_id: JobId, options: Annotated[DetailOptions, Query()]) -> JobDetails:
    """Returns status, progress, nodes and, at the end, the result."""
    async with gateway.connection() as conn:
        standing = await lookup.get(conn, gateway.job_queue, job_id)
        if isinstance(standing, JobQueueMessage):
            return JobDetails.queued(standing, await attendance.why_queued(conn, gateway.job_queue, job_id))
        job = standing.job
        graph = await gateway.graphs.get(conn, job.definition_hash) if job.definition_hash else None
        heartbeat = await instances.heartbeat(conn, job.owner_id) if job.owner_id else None
        versions = await node_views.code_versions(conn, job_id)
        now = await transaction_time(conn)
        return job_details(standing, now, graph, heartbeat, versions, outputs=options.outputs)


@router.get(
    "/{job_id}/difference",
    tags=["jobs"],
    summary="Compare a job with another one",
    responses=problem_responses(404, 409),
)
async def compare_jobs(
    gateway: TheGateway, job_id: JobId, other: Annotated[str, Query(alias="with", max_length=64, pattern=r"^[^\x00]+$")]
) -> JobDifference:
    """Returns the inputs, states, errors and outputs that differ. Long values are cut, and lists are bounded."""
    async with gateway.connection() as conn:
        standings = [await _claimed(gateway, conn, identity) for identity in (job_id, other)]
    return job_difference(*standings)


async def _claimed(gateway: TheGateway, conn: Connection, job_id: str) -> JobProgress:
    standing = await lookup.get(conn, gateway.job_queue, job_id)
    if isinstance(standing, JobQueueMessage):
        raise ConflictError(f"no orchestrator has claimed the job {job_id} yet", remedy="try again in a moment")
    return standing


@router.get("/{job_id}/events", tags=["jobs"], summary="List the events of a job", responses=problem_responses(404))
async def get_events(
    gateway: TheGateway, job_id: JobId, filters: Annotated[EventFilters, Query()]
) -> contract.EventPage:
    async with gateway.connection() as conn:
        events = await event_store.of_job(conn, job_id, after=filters.after, limit=filters.limit)
        standing = None if events else await lookup.get(conn, gateway.job_queue, job_id)
    return contract.EventPage(
        events=events,
        next_after=events[-1].event_id if events else filters.after,
        details_deleted_at=standing.job.details_deleted_at if isinstance(standing, JobProgress) else None,
    )


async def existing_job(gateway: TheGateway, job_id: JobId) -> str:
    """Check that the job exists before the stream begins, while a 404 can still be sent."""
    async with gateway.connection() as conn:
        await lookup.get(conn, gateway.job_queue, job_id)
    return job_id


async def admitted(gateway: TheGateway, principal: ThePrincipal) -> AsyncIterator[None]:
    """Count the stream for its caller until it ends. Runs before the stream begins, while a 429 can still be sent."""
    with gateway.streams.admitted(principal.subject):
        yield


@router.get(
    "/{job_id}/stream",
    tags=["jobs"],
    summary="Follow a job live",
    response_class=EventSourceResponse,
    responses=problem_responses(404, 429),
    dependencies=[Depends(admitted)],
)
async def stream_job(
    gateway: TheGateway,
    job_id: Annotated[str, Depends(existing_job)],
    last_event_id: Annotated[EventId, Header()] = 0,
) -> AsyncIterator[ServerSentEvent]:
    """Server-sent events: `event` for each event of the job, `progress` at most twice a second, `end` with the outcome.
    A client that reconnects with `Last-Event-ID` misses nothing."""
    async for event in gateway.streams.follow(job_id, last_event_id):
        yield event


def _accepted(job_id: str, action: str, status: str) -> contract.ActionAccepted:
    return contract.ActionAccepted(job_id=job_id, action=action, status=status, status_url=f"/api/v1/jobs/{job_id}")


_CONTROL: dict[str, Any] = {"status_code": 202, "tags": ["control"], "responses": problem_responses(404, 409)}


@router.post("/{job_id}/cancel", summary="Cancel a job", **_CONTROL)
async def cancel_job(
    gateway: TheGateway, job_id: JobId, cancellation: Annotated[contract.Cancellation | None, Body()] = None
) -> contract.ActionAccepted:
    """Cancels a waiting, running or paused job. Running tasks are told to stop."""
    reason = (cancellation or contract.Cancellation()).reason
    async with gateway.connection() as conn:
        await control.cancel(conn, gateway.job_queue, job_id, reason)
        return await _after(conn, gateway, job_id, "cancel")


@router.post("/{job_id}/pause", summary="Pause a job", **_CONTROL)
async def pause_job(gateway: TheGateway, job_id: JobId) -> contract.ActionAccepted:
    """Running tasks continue; no new ones begin."""
    async with gateway.connection() as conn:
        await lookup.require_claimed(conn, gateway.job_queue, job_id)
        await control.pause(conn, job_id)
        return await _after(conn, gateway, job_id, "pause")


@router.post("/{job_id}/resume", summary="Resume a paused job", **_CONTROL)
async def resume_job(gateway: TheGateway, job_id: JobId) -> contract.ActionAccepted:
    async with gateway.connection() as conn:
        await lookup.require_claimed(conn, gateway.job_queue, job_id)
        await control.resume(conn, job_id)
        return await _after(conn, gateway, job_id, "resume")


@router.post("/{job_id}/retry", summary="Retry a failed or cancelled job", **_CONTROL)
async def retry_job(
    gateway: TheGateway,
    job_id: JobId,
    principal: ThePrincipal,
    options: Annotated[contract.RetryOptions | None, Body()] = None,
) -> contract.ActionAccepted:
    """Runs the nodes and items again that did not complete. Completed ones keep their outputs. With `from_node`, that
    node and all nodes after it run again, too. With `input_params`, a new job repeats the old one with these inputs
    changed: the answer names the new job."""
    options = options or contract.RetryOptions()
    async with gateway.connection() as conn:
        await lookup.require_claimed(conn, gateway.job_queue, job_id)
        if options.input_params is None:
            job = await control.retry(conn, job_id, options.from_node)
            return _accepted(job_id, "retry", job.status.value)
        message = await control.repeat(
            conn, gateway.workflow_registry, gateway.job_queue, job_id, options.input_params, principal.subject
        )
    accepted = _accepted(message.job_id, "retry", contract.QUEUED)
    return accepted.model_copy(update={"retry_of": job_id})


@router.post("/{job_id}/release", summary="Release a parked job", **_CONTROL)
async def release_job(gateway: TheGateway, job_id: JobId, principal: ThePrincipal) -> contract.ActionAccepted:
    """Continues a job that was parked because the database refused a write. If the database refuses again, the job is
    parked again."""
    async with gateway.connection() as conn:
        await lookup.require_claimed(conn, gateway.job_queue, job_id)
        await control.release(conn, job_id, principal.subject)
        return await _after(conn, gateway, job_id, "release")


async def _after(conn: Connection, gateway: TheGateway, job_id: str, action: str) -> contract.ActionAccepted:
    standing = await lookup.get(conn, gateway.job_queue, job_id)
    status = contract.QUEUED if isinstance(standing, JobQueueMessage) else standing.job.status.value
    return _accepted(job_id, action, status)
