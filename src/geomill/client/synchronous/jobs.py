# Written by script/client from client/asynchronous. Change that, not this.
"""Operations on jobs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from httpx_sse import ServerSentEvent

from geomill.client.answers import path
from geomill.client.synchronous.connection import GatewayConnection
from geomill.contract.jobs import (
    ActionAccepted,
    EventPage,
    JobAccepted,
    JobDetails,
    JobPage,
    JobSubmission,
    Progress,
)


class JobOperations:
    def __init__(self, connection: GatewayConnection) -> None:
        self._connection = connection

    def submit(self, submission: JobSubmission) -> JobAccepted:
        return self._connection.post(JobAccepted, "/api/v1/jobs", submission)

    def run(self, workflow_id: str, **input_params: Any) -> JobDetails:
        """Submit a job, wait until it has ended and return it: `client.jobs.run("hello_world", name="Ada")`."""
        accepted = self.submit(JobSubmission(workflow_id=workflow_id, input_params=input_params))
        return self.wait(accepted.job_id)

    def page(self, **filters: Any) -> JobPage:
        """Return a page of jobs, the newest first. `filters` are those of `GET /api/v1/jobs`."""
        return self._connection.get(JobPage, "/api/v1/jobs", **filters)

    def get(self, job_id: str, *, outputs: bool = True) -> JobDetails:
        return self._connection.get(JobDetails, path("/api/v1/jobs/{}", job_id), outputs=outputs)

    def events(self, job_id: str, *, after: int = 0, limit: int = 200) -> EventPage:
        return self._connection.get(EventPage, path("/api/v1/jobs/{}/events", job_id), after=after, limit=limit)

    def follow(self, job_id: str, *, last_event_id: str = "") -> Iterator[ServerSentEvent]:
        """Iterate over the events of a job: `event`, `progress` and, last, `end`. Survives a restart of the gateway."""
        return self._connection.follow(path("/api/v1/jobs/{}/stream", job_id), last_event_id)

    def wait(self, job_id: str, *, on_progress: Callable[[Progress], None] | None = None) -> JobDetails:
        """Wait until the job has ended and return it. `on_progress` is called with each change."""
        for event in self.follow(job_id):
            if on_progress and event.event == "progress":
                on_progress(Progress.model_validate_json(event.data))
        return self.get(job_id)

    def cancel(self, job_id: str, reason: str = "cancelled") -> ActionAccepted:
        return self._connection.post(ActionAccepted, path("/api/v1/jobs/{}/cancel", job_id), {"reason": reason})

    def pause(self, job_id: str) -> ActionAccepted:
        return self._connection.post(ActionAccepted, path("/api/v1/jobs/{}/pause", job_id))

    def resume(self, job_id: str) -> ActionAccepted:
        return self._connection.post(ActionAccepted, path("/api/v1/jobs/{}/resume", job_id))

    def retry(self, job_id: str) -> ActionAccepted:
        return self._connection.post(ActionAccepted, path("/api/v1/jobs/{}/retry", job_id))

    def release(self, job_id: str) -> ActionAccepted:
        """Release a parked job."""
        return self._connection.post(ActionAccepted, path("/api/v1/jobs/{}/release", job_id))
