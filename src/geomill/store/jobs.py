"""Jobs in the database."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime

from pydantic import ValidationError

from geomill.domain.engine.job import Job
from geomill.domain.engine.message import JobQueueMessage
from geomill.errors import NotFoundError
from geomill.remedies import LIST_JOBS
from geomill.sql import queries
from geomill.store.pool import Connection


async def find(conn: Connection, job_id: str) -> Job | None:
    cursor = await conn.execute(queries("jobs").get, {"job_id": job_id})
    row = await cursor.fetchone()
    return Job.from_row(row) if row else None


async def get(conn: Connection, job_id: str) -> Job:
    job = await find(conn, job_id)
    if job is None:
        raise NotFoundError(f"there is no job '{job_id}'", remedy=LIST_JOBS.shell)
    return job


async def by_idempotency_key(conn: Connection, key: str) -> Job | None:
    cursor = await conn.execute(queries("jobs").by_idempotency_key, {"idempotency_key": key})
    row = await cursor.fetchone()
    return Job.from_row(row) if row else None


async def waiting(conn: Connection, queue_name: str, job_id: str) -> JobQueueMessage | None:
    """Return the submission of a job that nobody has claimed yet."""
    cursor = await conn.execute(queries("jobs").waiting, {"queue_name": queue_name, "message_id": job_id})
    row = await cursor.fetchone()
    if row is None:
        return None
    try:
        return JobQueueMessage.received(row["body"], row["enqueued_at"])
    except ValidationError:
        return None  # malformed: the orchestrator that claims it makes a dead letter of it


async def reclaim(conn: Connection, owner_id: str, dead: Sequence[str], limit: int) -> list[Job]:
    parameters = {"owner_id": owner_id, "dead": list(dead), "limit": limit}
    cursor = await conn.execute(queries("jobs").reclaim, parameters)
    return [Job.from_row(row) for row in await cursor.fetchall()]


async def owned(conn: Connection, owner_id: str) -> list[Job]:
    """Return the unfinished jobs of an owner."""
    cursor = await conn.execute(queries("jobs").owned, {"owner_id": owner_id})
    return [Job.from_row(row) for row in await cursor.fetchall()]


async def release(conn: Connection, owner_id: str) -> None:
    await conn.execute(queries("jobs").release, {"owner_id": owner_id})


async def overdue(conn: Connection, owner_id: str) -> list[str]:
    cursor = await conn.execute(queries("jobs").overdue, {"owner_id": owner_id})
    return [row["job_id"] for row in await cursor.fetchall()]


async def lock(conn: Connection, job_id: str) -> Job:
    """Return the job, locked until the transaction ends."""
    cursor = await conn.execute(queries("jobs").lock, {"job_id": job_id})
    row = await cursor.fetchone()
    return Job.from_row(row) if row else await get(conn, job_id)


async def reopen(conn: Connection, job_id: str) -> None:
    await conn.execute(queries("jobs").reopen, {"job_id": job_id})


async def quarantine(conn: Connection, owner_id: str, job_id: str, error: str) -> None:
    await conn.execute(queries("jobs").quarantine, {"owner_id": owner_id, "job_id": job_id, "error": error})


async def park(conn: Connection, owner_id: str, job_id: str, reason: str) -> None:
    await conn.execute(queries("jobs").park, {"owner_id": owner_id, "job_id": job_id, "reason": reason})


async def release_parked(conn: Connection, job_id: str, released_by: str) -> bool:
    """Let a parked job go on. Returns False if the job is not parked."""
    parameters = {"job_id": job_id, "released_by": released_by[:200]}
    return await (await conn.execute(queries("jobs").release_parked, parameters)).fetchone() is not None


@dataclass(frozen=True, slots=True)
class ParkedJob:
    job_id: str
    workflow_id: str
    parked_at: datetime
    parked_reason: str


async def parked(conn: Connection, *, limit: int = 20) -> list[ParkedJob]:
    """Return parked jobs, the longest parked first."""
    cursor = await conn.execute(queries("jobs").parked, {"limit": limit})
    return [ParkedJob(**row) for row in await cursor.fetchall()]


async def unlocked(conn: Connection, job_ids: Collection[str]) -> set[str]:
    """Return the jobs whose rows nobody else has locked at the moment."""
    cursor = await conn.execute(queries("jobs").unlocked, {"job_ids": sorted(job_ids)})
    return {row["job_id"] for row in await cursor.fetchall()}


QUIET_SECONDS = 10.0
"""A job counts as ended that long after its end: a worker needs some seconds to notice that its lease is gone."""


async def ended(conn: Connection, job_id: str) -> bool:
    """Return whether the job has ended and none of its tasks runs any more, or there is no such job."""
    row = await (await conn.execute(queries("jobs").ended, {"job_id": job_id, "quiet": QUIET_SECONDS})).fetchone()
    return row is not None and bool(row["ended"])
