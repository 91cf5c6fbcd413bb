"""Schedules, which start workflows at set times.

Cron expressions have the rules of Debian's cron. A time that a clock change skips fires right after the gap; a time
that comes twice fires the first time. Expressions whose minute or hour begins with `*` simply follow the clock.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Annotated, ClassVar
from uuid import UUID, uuid5
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError, available_timezones

from pydantic import AwareDatetime, Field

from geomill.domain.entity import Check, Entity, Index, Json, Key, Name, Now
from geomill.errors import InputError, nearest

GRACE = timedelta(seconds=60)
"""A firing that is later than this is missed."""

_FIRINGS = UUID("6f0f6f0e-2d0c-5a53-9b1c-9d8a3f1f7a55")
_LOOK_BACK = (timedelta(hours=1), timedelta(days=2), timedelta(days=62), timedelta(days=730))


class CatchUp(StrEnum):
    """The policy for missed firings."""

    SKIP = "skip"
    LAST = "last"
    ALL = "all"


class Schedule(Entity):
    __sql_table__: ClassVar = "dag_schedules"
    __sql_primary_key__: ClassVar = ("schedule_id",)
    __sql_indexes__: ClassVar = (Index("idx_dag_schedules_due", ("next_due_at",), where="NOT paused"),)
    __sql_checks__: ClassVar = (
        Check("dag_schedules_timing", "(cron IS NULL) <> (interval_seconds IS NULL)"),
        Check("dag_schedules_interval", "interval_seconds > 0"),
        Check("dag_schedules_concurrent", "max_concurrent >= 1"),
    )

    schedule_id: Key
    workflow_id: Key
    input_params: Json = Field(default_factory=dict)
    cron: Annotated[str, Field(max_length=128)] | None = None
    interval_seconds: int | None = None
    timezone: Name = "UTC"
    catch_up: CatchUp = CatchUp.LAST
    max_concurrent: int = 1
    paused: bool = False
    next_due_at: AwareDatetime | None = Field(default=None, description="The first due time that has not been handled")
    last_fired_at: AwareDatetime | None = None
    last_error: str | None = Field(default=None, description="Why it could not fire; null after the next firing")
    held_until: AwareDatetime | None = Field(
        default=None, description="When to try again, after it could not fire at its due time"
    )
    open_jobs: list[str] = Field(default_factory=list, description="Its jobs that had not ended when it last fired")
    created_at: Now
    updated_at: Now

    @property
    def timing(self) -> Timing:
        return Timing(self.cron, self.interval_seconds, self.timezone, self.created_at)


@dataclass(frozen=True, slots=True)
class Timing:
    """Either a cron expression in a time zone, or an interval that is counted from `anchor`."""

    cron: str | None
    interval_seconds: int | None
    timezone: str
    anchor: datetime

    def after(self, moment: datetime) -> datetime | None:
        """Return the first due time after `moment`, in UTC, or None if there is none."""
        if self.interval_seconds is not None:
            step = timedelta(seconds=self.interval_seconds)
            return (self.anchor + ((moment - self.anchor) // step + 1) * step).astimezone(UTC)
        assert self.cron is not None
        moment = moment.astimezone(UTC)
        zone = time_zone(self.timezone)
        from cronsim import CronSim  # the client knows schedules, and needs no due times

        for due in CronSim(self.cron, moment.astimezone(zone)):
            # When an hour comes twice, the first 01:30 may be earlier than a moment in the second 01:xx.
            if (due_utc := due.astimezone(UTC)) > moment:
                return due_utc
        return None

    def following(self, moment: datetime, count: int) -> list[datetime]:
        """Return the next due times after `moment`, at most `count`."""
        due_times: list[datetime] = []
        due = self.after(moment)
        while due is not None and len(due_times) < count:
            due_times.append(due)
            due = self.after(due)
        return due_times

    def between(self, first: datetime, last: datetime) -> Iterator[datetime]:
        """Yield `first`, which is a due time, and all due times after it until `last`."""
        due: datetime | None = first
        while due is not None and due <= last:
            yield due
            due = self.after(due)

    def latest(self, first: datetime, now: datetime) -> datetime:
        """Return the last due time until `now`, but at least `first`. It is searched backwards, because `first` may be
        years ago."""
        if self.interval_seconds is not None:
            step = timedelta(seconds=self.interval_seconds)
            return max(first, (self.anchor + (now - self.anchor) // step * step).astimezone(UTC))
        for back in _LOOK_BACK:
            if now - back <= first:
                break
            due_times = list(self._within(now - back, now))
            if due_times:
                return due_times[-1]
        return list(self.between(first, now))[-1]

    def _within(self, start: datetime, last: datetime) -> Iterator[datetime]:
        due = self.after(start)
        if due is not None:
            yield from self.between(due, last)


@dataclass(frozen=True, slots=True)
class Firing:
    """The due times for which a schedule starts jobs now, and its next due time."""

    due: tuple[datetime, ...]
    next_due_at: datetime | None
    blocked: bool = False
    """Whether its firings wait until jobs of the schedule have ended."""


def firings(schedule: Schedule, now: datetime, free: int, limit: int) -> Firing:
    """Return the firings of a schedule. Pure. `free` is how many jobs may begin. A firing without room is missed, and
    `catch_up` decides what happens then."""
    first = schedule.next_due_at
    if first is None or first > now:
        return Firing((), first)
    timing = schedule.timing
    if schedule.catch_up is CatchUp.ALL:
        return _in_turn(timing, first, now, free, limit)
    latest = timing.latest(first, now)
    if schedule.catch_up is CatchUp.SKIP and (now - latest > GRACE or free < 1):
        return Firing((), timing.after(now))
    if free < 1:
        return Firing((), first, blocked=True)
    return Firing((latest,), timing.after(now))


def _in_turn(timing: Timing, first: datetime, now: datetime, free: int, limit: int) -> Firing:
    due: list[datetime] = []
    for moment in timing.between(first, now):
        if len(due) == min(free, limit):
            return Firing(tuple(due), moment, blocked=len(due) == free)
        due.append(moment)
    return Firing(tuple(due), timing.after(due[-1]))


def firing_id(schedule_id: str, due: datetime) -> str:
    """Return the id of the job for one due time. It is the same in every orchestrator."""
    return str(uuid5(_FIRINGS, f"{schedule_id}|{due.astimezone(UTC).isoformat()}"))


def time_zone(name: str) -> ZoneInfo:
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise InputError(f"there is no time zone '{name}'", remedy=nearest(name, available_timezones())) from error


def check_timing(cron: str | None, interval_seconds: int | None, timezone: str, now: datetime) -> datetime:
    """Return the first due time after `now`. Raises `InputError` if there is none or the timing is invalid."""
    if (cron is None) is (interval_seconds is None):
        raise InputError("a schedule needs either a cron expression or an interval", remedy="give exactly one of them")
    if interval_seconds is not None and interval_seconds < 1:
        raise InputError(f"the interval must be at least 1 second, not {interval_seconds}")
    time_zone(timezone)
    if cron is not None:
        _check_cron(cron)
    due = Timing(cron, interval_seconds, timezone, now).after(now)
    if due is None:
        raise InputError(f"the cron expression '{cron}' is never due")
    return due


def _check_cron(cron: str) -> None:
    remedy = "write minute, hour, day of month, month and day of week, such as '30 2 * * MON-FRI'"
    if len(cron.split()) != 5:
        raise InputError(f"the cron expression '{cron}' has {len(cron.split())} fields, not 5", remedy=remedy)
    from cronsim import CronSim, CronSimError

    try:
        CronSim(cron, datetime(2000, 1, 1, tzinfo=UTC))
    except (CronSimError, ValueError) as error:
        raise InputError(f"the cron expression '{cron}' cannot be read: {error}", remedy=remedy) from error
