"""Starts the jobs of schedules, once for each due time, with any number of orchestrators.

One transaction locks a due schedule, submits its jobs and sets its next due time. A second orchestrator finds the row
locked or the time changed. One that dies in between has done nothing. The job's id follows from schedule and due time,
so even a due time that was set back by hand starts no second job.

A firing is missed if there is no room for it (`max_concurrent`) or this orchestrator does not know the workflow. With
the catch-up policy `skip` it is dropped. Otherwise it stays due, waits for a moment so that it does not block others,
and may be made by another orchestrator.

Weakness: a schedule that had to wait fires late by up to `HOLD_SECONDS`.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from pydantic import ValidationError

from geomill.domain.engine.message import JobQueueMessage
from geomill.domain.engine.schedule import CatchUp, Schedule, check_timing, firing_id, firings
from geomill.domain.ids import new_id
from geomill.domain.jsonvalue import to_json
from geomill.engine.submit import check_plain
from geomill.errors import ConflictError, GeomillError, InputError
from geomill.queues import postgres as queue
from geomill.queues.postgres import Outgoing
from geomill.store import schedules
from geomill.store.pool import Connection, transaction_time
from geomill.store.schedules import ScheduleWrite
from geomill.store.signals import notify, queue_channel
from geomill.workflows.registry import WorkflowRegistry

log = logging.getLogger(__name__)

TIMING = {"cron", "interval_seconds", "timezone"}
"""The fields that decide when a schedule is due."""
BUSY_SECONDS = 2.0
HOLD_SECONDS = 30.0


@dataclass
class Fired:
    """The effects of a look."""

    jobs: list[str] = field(default_factory=list)
    blocked: list[str] = field(default_factory=list)
    refused: dict[str, str] = field(default_factory=dict)
    """Schedule → reason."""


@dataclass(frozen=True)
class Scheduler:
    workflow_registry: WorkflowRegistry
    job_queue: str
    batch: int = 50
    catch_up_limit: int = 10
    """The maximum number of jobs of one schedule in one look. The rest starts with the next."""

    async def run_once(self, conn: Connection) -> Fired:
        fired = Fired()
        messages: list[JobQueueMessage] = []
        async with conn.transaction():
            due = await schedules.due(conn, self.batch)
            if not due:
                return fired
            now = await transaction_time(conn)
            open_jobs = [job_id for schedule in due for job_id in schedule.open_jobs]
            alive = await schedules.still_open(conn, self.job_queue, open_jobs)
            writes = [self._look(schedule, now, alive, messages, fired) for schedule in due]
            await queue.send(conn, [outgoing(self.job_queue, message) for message in messages])
            await schedules.advance(conn, writes)
        fired.jobs = [message.job_id for message in messages]
        if messages:
            await notify(conn, [queue_channel(self.job_queue)])
        return fired

    def _look(
        self, schedule: Schedule, now: datetime, alive: set[str], messages: list[JobQueueMessage], fired: Fired
    ) -> ScheduleWrite:
        still = [job_id for job_id in schedule.open_jobs if job_id in alive]
        try:
            check_plain(self.workflow_registry, message_of(schedule, new_id()))
            firing = firings(schedule, now, schedule.max_concurrent - len(still), self.catch_up_limit)
        except GeomillError as error:
            log.warning("the schedule %s cannot fire: %s", schedule.schedule_id, error)
            return self._refused(schedule, now, still, str(error), fired)
        except Exception as error:  # a bug that affects one schedule must not stop the others
            log.exception("the schedule %s cannot be evaluated", schedule.schedule_id)
            return self._refused(schedule, now, still, f"internal error: {type(error).__name__}: {error}", fired)
        new = [message_of(schedule, firing_id(schedule.schedule_id, due)) for due in firing.due]
        messages += new
        if firing.blocked:
            fired.blocked.append(schedule.schedule_id)
        return ScheduleWrite(
            schedule.schedule_id,
            firing.next_due_at,
            fired_at=now if new else None,
            hold_seconds=BUSY_SECONDS if firing.blocked else None,
            open_jobs=[*still, *(message.job_id for message in new)],
        )

    def _refused(self, schedule: Schedule, now: datetime, still: list[str], error: str, fired: Fired) -> ScheduleWrite:
        fired.refused[schedule.schedule_id] = error
        next_due_at = schedule.next_due_at
        if schedule.catch_up is CatchUp.SKIP:
            next_due_at = _next_or_none(schedule, now)
        return ScheduleWrite(schedule.schedule_id, next_due_at, error=error, hold_seconds=HOLD_SECONDS, open_jobs=still)

    async def fire(self, conn: Connection, schedule_id: str) -> JobQueueMessage:
        """Start a job now, besides the due times. Raises `ConflictError` if too many are under way."""
        async with conn.transaction():
            schedule = await schedules.lock(conn, schedule_id)
            check_plain(self.workflow_registry, message_of(schedule, new_id()))
            alive = await schedules.still_open(conn, self.job_queue, schedule.open_jobs)
            if len(alive) >= schedule.max_concurrent:
                raise ConflictError(
                    f"{len(alive)} of at most {schedule.max_concurrent} jobs of '{schedule_id}' are under way",
                    remedy="wait until they have ended, or cancel one",
                )
            message = message_of(schedule, new_id())
            await queue.send(conn, [outgoing(self.job_queue, message)])
            still = [job_id for job_id in schedule.open_jobs if job_id in alive]
            now = await transaction_time(conn)
            open_jobs = [*still, message.job_id]
            await schedules.advance(conn, [ScheduleWrite(schedule_id, schedule.next_due_at, now, open_jobs=open_jobs)])
        await notify(conn, [queue_channel(self.job_queue)])
        return message


def message_of(schedule: Schedule, job_id: str) -> JobQueueMessage:
    """Return the submission of one firing. Its correlation id is the schedule's id, by which `geomill jobs` finds
    it."""
    return JobQueueMessage(
        job_id=job_id,
        workflow_id=schedule.workflow_id,
        input_params=schedule.input_params,
        correlation_id=schedule.schedule_id,
        submitted_by="schedule",
        idempotency_key=f"schedule:{job_id}",
    )


def outgoing(job_queue: str, message: JobQueueMessage) -> Outgoing:
    body = to_json(message.model_dump(mode="json"))
    return Outgoing(job_queue, message.job_id, body, message.priority, tenant=message.tenant)


def _next_or_none(schedule: Schedule, now: datetime) -> datetime | None:
    """Return the next due time. None if the timing itself is invalid; the schedule then waits for an operator."""
    try:
        return schedule.timing.after(now)
    except GeomillError:
        return None


async def set_paused(conn: Connection, schedule_id: str, *, paused: bool) -> Schedule:
    """Pause or resume a schedule. Firings that were due during the pause are not made up for."""
    async with conn.transaction():
        schedule = await schedules.lock(conn, schedule_id)
        next_due_at = schedule.next_due_at
        if not paused and schedule.paused:
            next_due_at = schedule.timing.after(await transaction_time(conn))
        return await schedules.set_paused(conn, schedule_id, next_due_at, paused=paused)


async def change(
    conn: Connection, workflow_registry: WorkflowRegistry, schedule_id: str, changes: Mapping[str, Any]
) -> Schedule:
    """Change fields of a schedule, checked as at its creation. A new timing counts from now.

    A schedule can be paused although its workflow no longer exists or refuses its inputs.
    """
    async with conn.transaction():
        schedule = await schedules.lock(conn, schedule_id)
        now = await transaction_time(conn)
        changed = schedule.evolve(**changes)
        if dict(changes) != {"paused": True}:
            check_plain(workflow_registry, message_of(changed, new_id()))
        if changes.keys() & TIMING:
            check_timing(changed.cron, changed.interval_seconds, changed.timezone, now)
        if changes.keys() & TIMING or (schedule.paused and not changed.paused):
            changed = changed.evolve(next_due_at=changed.timing.after(now))
        return await schedules.change(conn, changed)


async def create(
    conn: Connection,
    *,
    schedule_id: str,
    workflow_id: str,
    input_params: dict[str, Any],
    cron: str | None = None,
    interval_seconds: int | None = None,
    timezone: str = "UTC",
    catch_up: CatchUp = CatchUp.LAST,
    max_concurrent: int = 1,
    paused: bool = False,
) -> Schedule:
    """Create a schedule that is first due after now, by the database's clock. The caller has checked the inputs."""
    async with conn.transaction():
        now = await transaction_time(conn)
        next_due_at = check_timing(cron, interval_seconds, timezone, now)
        try:
            schedule = Schedule(
                schedule_id=schedule_id,
                workflow_id=workflow_id,
                input_params=input_params,
                cron=cron,
                interval_seconds=interval_seconds,
                timezone=timezone,
                catch_up=catch_up,
                max_concurrent=max_concurrent,
                paused=paused,
                next_due_at=next_due_at,
                created_at=now,
                updated_at=now,
            )
        except ValidationError as error:
            first = error.errors()[0]
            raise InputError(f"the schedule's {first['loc'][0]} is wrong: {first['msg']}") from error
        return await schedules.create(conn, schedule)
