"""Finds a job in its row or, before it is claimed, on the queue."""

from __future__ import annotations

from geomill.domain.engine.message import JobQueueMessage
from geomill.errors import ConflictError, NotFoundError
from geomill.remedies import LIST_JOBS
from geomill.store import jobs, progress
from geomill.store.pool import Connection
from geomill.store.progress import JobProgress

JobStanding = JobProgress | JobQueueMessage


async def find(conn: Connection, job_queue: str, job_id: str) -> JobStanding | None:
    """Return the job, or None. Look twice, because a claim may move the job between the two queries."""
    for _ in range(2):
        if row := await progress.find(conn, job_id):
            return row
        if message := await jobs.waiting(conn, job_queue, job_id):
            return message
    return None


async def get(conn: Connection, job_queue: str, job_id: str) -> JobStanding:
    standing = await find(conn, job_queue, job_id)
    if standing is None:
        raise unknown(job_id)
    return standing


async def require_claimed(conn: Connection, job_queue: str, job_id: str) -> None:
    """Raise `ConflictError` if no orchestrator has claimed the job."""
    if isinstance(await get(conn, job_queue, job_id), JobQueueMessage):
        raise ConflictError(f"no orchestrator has claimed the job {job_id} yet", remedy="try again in a moment")


def unknown(job_id: str) -> NotFoundError:
    return NotFoundError(f"there is no job '{job_id}'", remedy=LIST_JOBS.http)
