"""Routes of schedules."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Query, Response

from geomill.api import cursors
from geomill.api.access import ThePrincipal
from geomill.api.gateway import TheGateway
from geomill.api.problems import problem_responses
from geomill.contract import schedules as contract
from geomill.contract.jobs import QUEUED, JobAccepted, JobSummary
from geomill.contract.paging import PageOptions
from geomill.contract.schedules import ScheduleDetails, ScheduleView
from geomill.domain.access.operator_audit import OperatorAction
from geomill.domain.engine.message import JobQueueMessage
from geomill.domain.engine.schedule import Schedule
from geomill.engine.maintenance import schedules as engine
from geomill.engine.submit import check_plain
from geomill.errors import GeomillError
from geomill.store import operator_audit
from geomill.store import schedules as store
from geomill.store.pool import Connection, transaction_time

router = APIRouter(prefix="/api/v1/schedules", tags=["schedules"], responses=problem_responses(503))

ScheduleInPath = Annotated[str, Path(max_length=64, pattern=r"^[^\x00]+$")]


@router.get("", summary="List schedules, ordered by id")
async def list_schedules(
    gateway: TheGateway, filters: Annotated[contract.ScheduleFilters, Query()]
) -> contract.SchedulePage:
    after = cursors.decode(filters.cursor)[1] if filters.cursor else None
    async with gateway.connection() as conn:
        schedules = await store.page(conn, workflow_id=filters.workflow_id, limit=filters.limit + 1, after=after)
    page, more = schedules[: filters.limit], len(schedules) > filters.limit
    return contract.SchedulePage(
        schedules=[ScheduleView.of(schedule) for schedule in page],
        next_cursor=cursors.encode(page[-1].created_at, page[-1].schedule_id) if more else None,
    )


@router.post("", status_code=201, summary="Create a schedule", responses=problem_responses(404, 409))
async def create_schedule(
    gateway: TheGateway, principal: ThePrincipal, order: contract.NewSchedule, response: Response
) -> ScheduleDetails:
    """The inputs, the timing and the right to start the workflow are checked now."""
    message = JobQueueMessage(workflow_id=order.workflow_id, input_params=order.input_params)
    check_plain(gateway.workflow_registry, message)
    async with gateway.connection() as conn, conn.transaction():
        schedule = await engine.create(conn, **dict(order))
        await _record(conn, OperatorAction.SCHEDULE_CREATED, schedule, principal.subject)
        details = await _details(conn, schedule)
    response.headers["Location"] = f"/api/v1/schedules/{schedule.schedule_id}"
    return details


@router.get("/{schedule_id}", summary="Get a schedule with its due times", responses=problem_responses(404))
async def get_schedule(gateway: TheGateway, schedule_id: ScheduleInPath) -> ScheduleDetails:
    async with gateway.connection() as conn:
        return await _details(conn, await store.get(conn, schedule_id))


@router.patch("/{schedule_id}", summary="Change, pause or resume a schedule", responses=problem_responses(404))
async def change_schedule(
    gateway: TheGateway, principal: ThePrincipal, schedule_id: ScheduleInPath, changes: contract.ScheduleChanges
) -> ScheduleDetails:
    """Changes only the fields that are named. Everything is checked as at the creation. A new timing counts from now;
    jobs under way go on."""
    async with gateway.connection() as conn, conn.transaction():
        schedule = await engine.change(conn, gateway.workflow_registry, schedule_id, changes.named())
        await _record(
            conn, OperatorAction.SCHEDULE_CHANGED, schedule, principal.subject, named=sorted(changes.model_fields_set)
        )
        return await _details(conn, schedule)


@router.delete("/{schedule_id}", summary="Delete a schedule", responses=problem_responses(404))
async def delete_schedule(
    gateway: TheGateway, principal: ThePrincipal, schedule_id: ScheduleInPath
) -> contract.ScheduleDeleted:
    """Its jobs stay."""
    async with gateway.connection() as conn, conn.transaction():
        schedule = await store.lock(conn, schedule_id)
        await store.delete(conn, schedule_id)
        await _record(conn, OperatorAction.SCHEDULE_DELETED, schedule, principal.subject)
    return contract.ScheduleDeleted(schedule_id=schedule_id)


@router.post(
    "/{schedule_id}/run",
    status_code=202,
    summary="Start a job of a schedule now",
    responses=problem_responses(404, 409),
)
async def run_schedule(
    gateway: TheGateway, principal: ThePrincipal, schedule_id: ScheduleInPath, response: Response
) -> JobAccepted:
    """Its due times do not change. Refused while as many of its jobs run as `max_concurrent` allows."""
    scheduler = engine.Scheduler(gateway.workflow_registry, gateway.job_queue)
    async with gateway.connection() as conn, conn.transaction():
        message = await scheduler.fire(conn, schedule_id)
        await operator_audit.add(
            conn, OperatorAction.SCHEDULE_RUN, schedule_id, principal.subject, job_id=message.job_id
        )
    response.headers["Location"] = f"/api/v1/jobs/{message.job_id}"
    return JobAccepted.of(message, QUEUED)


@router.get("/{schedule_id}/jobs", summary="List the jobs of a schedule", responses=problem_responses(404))
async def list_schedule_jobs(
    gateway: TheGateway, schedule_id: ScheduleInPath, options: Annotated[PageOptions, Query()]
) -> contract.ScheduleJobPage:
    """Lists the jobs that it has started and an orchestrator has claimed, the newest first."""
    before = cursors.decode(options.cursor) if options.cursor else None
    async with gateway.connection() as conn:
        await store.get(conn, schedule_id)
        jobs = await store.jobs(conn, schedule_id, limit=options.limit + 1, before=before)
    page, more = jobs[: options.limit], len(jobs) > options.limit
    return contract.ScheduleJobPage(
        jobs=[JobSummary.of(job) for job in page],
        next_cursor=cursors.encode(page[-1].created_at, page[-1].job_id) if more else None,
    )


async def _details(conn: Connection, schedule: Schedule) -> ScheduleDetails:
    now = await transaction_time(conn)
    try:
        due_times = [] if schedule.paused else schedule.timing.following(now, contract.SHOWN_DUE_TIMES)
    except GeomillError:  # a time zone that this machine no longer knows
        due_times = []
    return ScheduleDetails.of(schedule, due_times=due_times)


async def _record(
    conn: Connection, action: OperatorAction, schedule: Schedule, actor: str, named: list[str] | None = None
) -> None:
    """Write a change to the audit, with the schedule as it is now. Its inputs are left out: they may be long."""
    settings = schedule.model_dump(
        mode="json",
        include={"workflow_id", "cron", "interval_seconds", "timezone", "catch_up", "max_concurrent", "paused"},
    )
    details = settings if named is None else {**settings, "named": named}
    await operator_audit.add(conn, action, schedule.schedule_id, actor, **details)
