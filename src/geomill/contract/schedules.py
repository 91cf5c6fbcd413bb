"""Requests and responses about schedules."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Self

from pydantic import AfterValidator, BaseModel, Field, StringConstraints, model_validator

from geomill.contract.inputs import ApiInput, Text, storable
from geomill.contract.jobs import JobSummary
from geomill.contract.paging import CursorPage, PageOptions
from geomill.domain.engine.schedule import CatchUp, Schedule

LONGEST_INTERVAL = 10 * 366 * 86_400
SHOWN_DUE_TIMES = 5

ScheduleName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.:-]*$", max_length=64)]
Cron = Annotated[str, StringConstraints(min_length=1, max_length=128), AfterValidator(storable)]
Interval = Annotated[int, Field(ge=1, le=LONGEST_INTERVAL, strict=True)]
Concurrency = Annotated[int, Field(ge=1, le=1000, strict=True)]


class NewSchedule(ApiInput):
    """A schedule. It needs either `cron` or `interval_seconds`."""

    schedule_id: ScheduleName
    workflow_id: Text
    input_params: dict[str, Any] = Field(default_factory=dict, description="Inputs of its jobs; they are checked now")
    cron: Cron | None = Field(default=None, description="Minute, hour, day of month, month, day of week")
    interval_seconds: Interval | None = Field(default=None, description="Seconds between two jobs, instead of `cron`")
    timezone: Text = Field(default="UTC", description="Time zone of `cron`, such as Europe/Bern")
    catch_up: CatchUp = CatchUp.LAST
    max_concurrent: Concurrency = Field(default=1, description="How many of its jobs may run at once")
    paused: Annotated[bool, Field(strict=True)] = False


class ScheduleChanges(ApiInput):
    """Changes to a schedule. Fields that are not named stay as they are."""

    input_params: dict[str, Any] = Field(default_factory=dict, description="All inputs; those not named are dropped")
    cron: Cron | None = Field(default=None, description="Replaces `interval_seconds`, if the schedule has that")
    interval_seconds: Interval | None = Field(default=None, description="Replaces `cron`, if the schedule has that")
    timezone: Text = "UTC"
    catch_up: CatchUp = CatchUp.LAST
    max_concurrent: Concurrency = 1
    paused: Annotated[bool, Field(strict=True)] = Field(
        default=False, description="Firings that fall due while it is paused are not made up for"
    )

    @model_validator(mode="after")
    def _something(self) -> Self:
        if not self.model_fields_set:
            raise ValueError("there is nothing to change: name at least one field")
        if self.cron is not None and self.interval_seconds is not None:
            raise ValueError("give either cron or interval_seconds, not both")
        return self

    def named(self) -> dict[str, Any]:
        """Return the changes. A new cron expression ends an interval, and the other way round."""
        changes = {name: getattr(self, name) for name in self.model_fields_set}
        if changes.get("cron") is not None:
            changes["interval_seconds"] = None
        elif changes.get("interval_seconds") is not None:
            changes["cron"] = None
        return changes


class ScheduleFilters(PageOptions):
    workflow_id: Text | None = None


class ScheduleView(BaseModel):
    schedule_id: str
    workflow_id: str
    input_params: dict[str, Any]
    cron: str | None
    interval_seconds: int | None
    timezone: str
    catch_up: CatchUp
    max_concurrent: int
    paused: bool
    next_due_at: datetime | None = Field(description="The first due time that has not been handled")
    last_fired_at: datetime | None
    last_error: str | None = Field(description="Why it could not fire; null after the next firing")
    open_jobs: list[str] = Field(description="Its jobs that had not ended when it last fired")
    created_at: datetime
    updated_at: datetime

    @classmethod
    def of(cls, schedule: Schedule, **more: Any) -> Self:
        return cls(**{name: getattr(schedule, name) for name in ScheduleView.model_fields}, **more)


class ScheduleDetails(ScheduleView):
    due_times: list[datetime] = Field(description="The next five due times; empty while it is paused")


class SchedulePage(CursorPage):
    schedules: list[ScheduleView]


class ScheduleDeleted(BaseModel):
    schedule_id: str
    deleted: bool = True


class ScheduleJobPage(CursorPage):
    jobs: list[JobSummary]
