# Written by script/client from client/asynchronous. Change that, not this.
"""Operations on schedules."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from geomill.client.answers import path
from geomill.client.synchronous.connection import GatewayConnection
from geomill.contract.jobs import JobAccepted
from geomill.contract.schedules import NewSchedule, ScheduleDetails, ScheduleJobPage, SchedulePage


class ScheduleOperations:
    def __init__(self, connection: GatewayConnection) -> None:
        self._connection = connection

    def page(self, **filters: Any) -> SchedulePage:
        return self._connection.get(SchedulePage, "/api/v1/schedules", **filters)

    def get(self, schedule_id: str) -> ScheduleDetails:
        """Return a schedule with its next due times."""
        return self._connection.get(ScheduleDetails, path("/api/v1/schedules/{}", schedule_id))

    def create(self, schedule: NewSchedule | Mapping[str, Any]) -> ScheduleDetails:
        return self._connection.post(ScheduleDetails, "/api/v1/schedules", schedule)

    def change(self, schedule_id: str, **changes: Any) -> ScheduleDetails:
        """Change the named fields of a schedule, such as `cron` or `paused`. The others stay as they are."""
        return self._connection.patch(ScheduleDetails, path("/api/v1/schedules/{}", schedule_id), changes)

    def delete(self, schedule_id: str) -> None:
        self._connection.delete(path("/api/v1/schedules/{}", schedule_id))

    def run(self, schedule_id: str) -> JobAccepted:
        """Start a job of the schedule now. Its due times do not change."""
        return self._connection.post(JobAccepted, path("/api/v1/schedules/{}/run", schedule_id))

    def jobs(self, schedule_id: str, **options: Any) -> ScheduleJobPage:
        return self._connection.get(ScheduleJobPage, path("/api/v1/schedules/{}/jobs", schedule_id), **options)
