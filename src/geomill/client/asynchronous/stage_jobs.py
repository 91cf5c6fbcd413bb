"""Operations on stage jobs."""

from __future__ import annotations

import asyncio
from typing import Any

from geomill.client.answers import path
from geomill.client.asynchronous.connection import AsyncGatewayConnection
from geomill.contract.stage_jobs import (
    JobType,
    StageAccepted,
    StageJobDetails,
    StageJobPage,
    StageTaskPage,
    StageTaskView,
)
from geomill.domain.engine.stage_job import StageStatus

FASTEST_SECONDS, SLOWEST_SECONDS = 0.1, 2.0


class AsyncStageJobOperations:
    def __init__(self, connection: AsyncGatewayConnection) -> None:
        self._connection = connection

    async def types(self) -> list[JobType]:
        return await self._connection.get(list[JobType], "/api/jobs/types")

    async def submit(self, job_type: str, parameters: dict[str, Any], **options: Any) -> StageAccepted:
        """Submit a stage job. The same parameters give the same job. `options` are those of the route."""
        return await self._connection.post(StageAccepted, path("/api/jobs/submit/{}", job_type), parameters, **options)

    async def page(self, **filters: Any) -> StageJobPage:
        return await self._connection.get(StageJobPage, "/api/jobs", **filters)

    async def get(self, job_id: str) -> StageJobDetails:
        return await self._connection.get(StageJobDetails, path("/api/jobs/status/{}", job_id))

    async def tasks(self, job_id: str, *, stage: int = 1, after: int | None = None) -> StageTaskPage:
        return await self._connection.get(
            StageTaskPage, path("/api/jobs/status/{}/tasks", job_id), stage=stage, after=after
        )

    async def task(self, task_id: str, *, job_id: str | None = None) -> StageTaskView:
        """Return a task by its id. `job_id` decides if several jobs have a task with this id."""
        return await self._connection.get(StageTaskView, path("/api/jobs/tasks/{}", task_id), job_id=job_id)

    async def wait(self, job_id: str) -> StageJobDetails:
        """Wait until the stage job has ended and return it."""
        pause = FASTEST_SECONDS
        while True:
            job = await self.get(job_id)
            if job.status not in (StageStatus.QUEUED, StageStatus.PROCESSING):
                return job
            await asyncio.sleep(pause)
            pause = min(pause * 1.2, SLOWEST_SECONDS)
