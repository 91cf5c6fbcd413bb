# Written by script/client from client/asynchronous. Change that, not this.
"""Operations on stage jobs."""

from __future__ import annotations

import time
from typing import Any

from geomill.client.answers import path
from geomill.client.synchronous.connection import GatewayConnection
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


class StageJobOperations:
    def __init__(self, connection: GatewayConnection) -> None:
        self._connection = connection

    def types(self) -> list[JobType]:
        return self._connection.get(list[JobType], "/api/jobs/types")

    def submit(self, job_type: str, parameters: dict[str, Any], **options: Any) -> StageAccepted:
        """Submit a stage job. The same parameters give the same job. `options` are those of the route."""
        return self._connection.post(StageAccepted, path("/api/jobs/submit/{}", job_type), parameters, **options)

    def page(self, **filters: Any) -> StageJobPage:
        return self._connection.get(StageJobPage, "/api/jobs", **filters)

    def get(self, job_id: str) -> StageJobDetails:
        return self._connection.get(StageJobDetails, path("/api/jobs/status/{}", job_id))

    def tasks(self, job_id: str, *, stage: int = 1, after: int | None = None) -> StageTaskPage:
        return self._connection.get(StageTaskPage, path("/api/jobs/status/{}/tasks", job_id), stage=stage, after=after)

    def task(self, task_id: str, *, job_id: str | None = None) -> StageTaskView:
        """Return a task by its id. `job_id` decides if several jobs have a task with this id."""
        return self._connection.get(StageTaskView, path("/api/jobs/tasks/{}", task_id), job_id=job_id)

    def wait(self, job_id: str) -> StageJobDetails:
        """Wait until the stage job has ended and return it."""
        pause = FASTEST_SECONDS
        while True:
            job = self.get(job_id)
            if job.status not in (StageStatus.QUEUED, StageStatus.PROCESSING):
                return job
            time.sleep(pause)
            pause = min(pause * 1.2, SLOWEST_SECONDS)
