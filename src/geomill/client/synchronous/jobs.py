# Written by script/client from client/asynchronous. Change that, not this.
"""Operations on jobs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from httpx_sse import ServerSentEvent

from geomill.client.answers import path
from geomill.client.synchronous.connection import GatewayConnection
from geomill.contract.differences import JobDifference
from geomill.contract.jobs import (
    ActionAccepted,
    EventPage,
    JobAccepted,
    JobCountsView,
    JobDetails,
    JobHistogram,
    JobPage,
    JobSubmission,
    Progress,
    RetryOptions,
)
from geomill.contract.logs import LogPage
from geomill.contract.nodes import ItemPage, ItemSummary, NodeDetails
from geomill.contract.operations import ParkedJobPage


class JobOperations:
    def __init__(self, connection: GatewayConnection) -> None:
        self._connection = connection

    def submit(self, submission: JobSubmission | Mapping[str, Any]) -> JobAccepted:
        """Submit a job. A mapping is sent as it is."""
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

    def counts(self, **filters: Any) -> JobCountsView:
        """Count jobs by status, with the filters of `page`."""
        return self._connection.get(JobCountsView, "/api/v1/jobs/counts", **filters)

    def histogram(self, **filters: Any) -> JobHistogram:
        """Count jobs over time, and by workflow."""
        return self._connection.get(JobHistogram, "/api/v1/jobs/histogram", **filters)

    def parked(self, **options: Any) -> ParkedJobPage:
        return self._connection.get(ParkedJobPage, "/api/v1/jobs/parked", **options)

    def node(self, job_id: str, node_id: str) -> NodeDetails:
        """Return a node with its parameters, attempts and checkpoint."""
        return self._connection.get(NodeDetails, path("/api/v1/jobs/{}/nodes/{}", job_id, node_id))

    def items(self, job_id: str, node_id: str, **filters: Any) -> ItemPage:
        """Return a page of the items of a fan-out. Filters: `state`, `order`, `limit`, `cursor`."""
        return self._connection.get(ItemPage, path("/api/v1/jobs/{}/nodes/{}/items", job_id, node_id), **filters)

    def item_summary(self, job_id: str, node_id: str) -> ItemSummary:
        return self._connection.get(ItemSummary, path("/api/v1/jobs/{}/nodes/{}/items/summary", job_id, node_id))

    def item(self, job_id: str, node_id: str, index: int) -> NodeDetails:
        return self._connection.get(NodeDetails, path("/api/v1/jobs/{}/nodes/{}/items/{}", job_id, node_id, str(index)))

    def difference(self, job_id: str, other_job_id: str) -> JobDifference:
        return self._connection.get(JobDifference, path("/api/v1/jobs/{}/difference", job_id), **{"with": other_job_id})

    def logs(self, job_id: str, **filters: Any) -> LogPage:
        """Return log lines of a job's handlers. Filters: `node_id`, `item_index`, `attempt`, `level`, `after`."""
        return self._connection.get(LogPage, path("/api/v1/jobs/{}/logs", job_id), **filters)

    def follow_logs(self, job_id: str, **filters: Any) -> Iterator[ServerSentEvent]:
        """Iterate over log lines while they are written: `line` and, last, `end`."""
        return self._connection.follow(path("/api/v1/jobs/{}/logs/stream", job_id), **filters)

    def follow_all(self, **filters: Any) -> Iterator[ServerSentEvent]:
        """Iterate over changes of all jobs that pass the filters. It does not end by itself."""
        return self._connection.follow("/api/v1/jobs/stream", **filters)

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

    def retry(
        self, job_id: str, *, from_node: str | None = None, input_params: dict[str, Any] | None = None
    ) -> ActionAccepted:
        """Run again what did not complete. With `from_node`, that node and all after it run again, too. With
        `input_params`, a new job repeats the old one with these inputs changed."""
        options = RetryOptions(from_node=from_node, input_params=input_params)
        return self._connection.post(ActionAccepted, path("/api/v1/jobs/{}/retry", job_id), options)

    def release(self, job_id: str) -> ActionAccepted:
        """Release a parked job."""
        return self._connection.post(ActionAccepted, path("/api/v1/jobs/{}/release", job_id))
