"""Operations on schedules."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from geomill.client.answers import path
from geomill.client.asynchronous.connection import AsyncGatewayConnection
from geomill.contract.jobs import JobAccepted
from geomill.contract.schedules import NewSchedule, ScheduleDetails, ScheduleJobPage, SchedulePage


class AsyncScheduleOperations:
    def __init__(self, connection: AsyncGatewayConnection) -> None:
        self._connection = connection

    async def page(self, **filters: Any) -> SchedulePage:
        return await self._connection.get(SchedulePage, "/api/v1/schedules", **filters)

    async def get(self, schedule_id: str) -> ScheduleDetails:
        """Return a schedule with its next due times."""
        return await self._connection.get(ScheduleDetails, path("/api/v1/schedules/{}", schedule_id))

    async def create(self, schedule: NewSchedule | Mapping[str, Any]) -> ScheduleDetails:
        return await self._connection.post(ScheduleDetails, "/api/v1/schedules", schedule)

    async def change(self, schedule_id: str, **changes: Any) -> ScheduleDetails:
        """Change the named fields of a schedule, such as `cron` or `paused`. The others stay as they are."""
        return await self._connection.patch(ScheduleDetails, path("/api/v1/schedules/{}", schedule_id), changes)

    async def delete(self, schedule_id: str) -> None:
        await self._connection.delete(path("/api/v1/schedules/{}", schedule_id))

    async def run(self, schedule_id: str) -> JobAccepted:
        """Start a job of the schedule now. Its due times do not change."""
        return await self._connection.post(JobAccepted, path("/api/v1/schedules/{}/run", schedule_id))

    async def jobs(self, schedule_id: str, **options: Any) -> ScheduleJobPage:
        return await self._connection.get(ScheduleJobPage, path("/api/v1/schedules/{}/jobs", schedule_id), **options)
