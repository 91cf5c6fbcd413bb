"""The status of an asset, for partners, reviewers and operators."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from geomill.catalogue import pending
from geomill.domain.assets.asset import Asset
from geomill.domain.assets.request import PlatformRequest, RequestStatus
from geomill.domain.engine.job import Job
from geomill.domain.states import JobStatus
from geomill.store import assets, attendance, jobs, progress, requests
from geomill.store.pool import Connection, transaction_time
from geomill.store.progress import JobProgress

QUEUED = "queued"
SUPERSEDED = "superseded"


@dataclass(frozen=True, slots=True)
class AssetStanding:
    asset: Asset
    request: PlatformRequest | None
    job_id: str | None
    progress: JobProgress | None
    """None while no orchestrator has claimed the job."""
    outside: Job | None
    """The latest export or withdrawal. None until it is claimed."""
    now: datetime
    waits: str | None = None
    """Why no orchestrator has claimed the job, if that is known."""
    awaits_entry: bool = False
    """Whether the catalogue entry has still to be written."""
    final: bool = False
    """Whether the step that failed calls its error final, so that a retry would end in the same way."""

    @property
    def status(self) -> str:
        """The status of the work: `queued` until there is a job, then the status of the job. A completed job counts as
        running until the catalogue has its item, so that a client who waits for `completed` finds it."""
        if self.request and self.request.status is RequestStatus.SUPERSEDED:
            return SUPERSEDED
        status = self.progress.job.status if self.progress else None
        if status is JobStatus.COMPLETED and self.awaits_entry:
            return JobStatus.RUNNING.value
        return status.value if status else QUEUED

    @property
    def outside_status(self) -> str | None:
        if self.asset.adf_run_id is None:
            return None
        return self.outside.status.value if self.outside else QUEUED


async def standing(conn: Connection, job_queue: str, identifier: str) -> AssetStanding:
    """Return the status by the id of a request, an asset or a job."""
    identified = await assets.identify(conn, identifier)
    asset = await assets.get(conn, identified.asset_id)
    current = await progress.find(conn, identified.job_id) if identified.job_id else None
    queued = identified.job_id is not None and current is None
    return AssetStanding(
        asset=asset,
        request=await requests.get(conn, identified.request_id) if identified.request_id else None,
        job_id=identified.job_id,
        progress=current,
        outside=await jobs.find(conn, asset.adf_run_id) if asset.adf_run_id else None,
        now=await transaction_time(conn),
        waits=await attendance.why_queued(conn, job_queue, identified.job_id) if queued and identified.job_id else None,
        awaits_entry=await pending.awaits_entry(conn, asset.asset_id),
        final=await requests.failed_finally(conn, current.job) if current else False,
    )
