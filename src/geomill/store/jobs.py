"""Jobs in the database."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from geomill.domain.job import Job
from geomill.domain.message import JobQueueMessage
from geomill.domain.states import JobStatus
from geomill.errors import NotFoundError
from geomill.sql import queries
from geomill.store.pool import Connection


@dataclass(frozen=True, slots=True)
class JobWrite:
    """What a decision changes on a job's row."""

    job_id: str
    status: JobStatus
    result: str | None = None
    error: str | None = None
    failed_node: str | None = None
    paused: bool | None = None


async def create(conn: Connection, job: dict[str, Any]) -> bool:
    """False when the job, or its idempotency key, is there already."""
    cursor = await conn.execute(queries("jobs").create, job)
    return await cursor.fetchone() is not None


async def fence(conn: Connection, owner_id: str, epochs: dict[str, int]) -> set[str]:
    """Lock these jobs until the transaction ends; returns those that are still ours."""
    parameters = {"owner_id": owner_id, "job_ids": list(epochs), "epochs": list(epochs.values())}
    cursor = await conn.execute(queries("jobs").fence, parameters)
    return {row["job_id"] for row in await cursor.fetchall()}


async def update(conn: Connection, writes: Sequence[JobWrite]) -> None:
    if writes:
        await conn.execute(
            queries("jobs").update,
            {
                "job_ids": [write.job_id for write in writes],
                "statuses": [write.status.value for write in writes],
                "results": [write.result for write in writes],
                "errors": [write.error for write in writes],
                "failed_nodes": [write.failed_node for write in writes],
                "paused": [write.paused for write in writes],
            },
        )


async def find(conn: Connection, job_id: str) -> Job | None:
    cursor = await conn.execute(queries("jobs").get, {"job_id": job_id})
    row = await cursor.fetchone()
    return Job.from_row(row) if row else None


async def get(conn: Connection, job_id: str) -> Job:
    job = await find(conn, job_id)
    if job is None:
        raise NotFoundError(f"there is no job '{job_id}'", remedy="run 'geomill jobs list' to see those there are")
    return job


async def by_idempotency_key(conn: Connection, key: str) -> Job | None:
    cursor = await conn.execute(queries("jobs").by_idempotency_key, {"idempotency_key": key})
    row = await cursor.fetchone()
    return Job.from_row(row) if row else None


async def recent(
    conn: Connection, *, limit: int, status: JobStatus | None = None, workflow_id: str | None = None
) -> list[Job]:
    parameters = {"limit": limit, "status": status.value if status else None, "workflow_id": workflow_id}
    cursor = await conn.execute(queries("jobs").recent, parameters)
    return [Job.from_row(row) for row in await cursor.fetchall()]


async def waiting(conn: Connection, queue_name: str, job_id: str) -> JobQueueMessage | None:
    """The submission of a job that nobody has claimed yet."""
    cursor = await conn.execute(queries("jobs").waiting, {"queue_name": queue_name, "message_id": job_id})
    row = await cursor.fetchone()
    return JobQueueMessage.model_validate(row["body"]) if row else None


async def reclaim(conn: Connection, owner_id: str, dead: Sequence[str], limit: int) -> list[Job]:
    parameters = {"owner_id": owner_id, "dead": list(dead), "limit": limit}
    cursor = await conn.execute(queries("jobs").reclaim, parameters)
    return [Job.from_row(row) for row in await cursor.fetchall()]


async def owned(conn: Connection, owner_id: str) -> list[Job]:
    """The unfinished jobs of an owner."""
    cursor = await conn.execute(queries("jobs").owned, {"owner_id": owner_id})
    return [Job.from_row(row) for row in await cursor.fetchall()]


async def release(conn: Connection, owner_id: str) -> None:
    await conn.execute(queries("jobs").release, {"owner_id": owner_id})


async def overdue(conn: Connection, owner_id: str) -> list[str]:
    cursor = await conn.execute(queries("jobs").overdue, {"owner_id": owner_id})
    return [row["job_id"] for row in await cursor.fetchall()]


async def lock(conn: Connection, job_id: str) -> Job:
    """The job, nobody else's to change until the transaction ends."""
    cursor = await conn.execute(queries("jobs").lock, {"job_id": job_id})
    row = await cursor.fetchone()
    return Job.from_row(row) if row else await get(conn, job_id)


async def reopen(conn: Connection, job_id: str) -> None:
    await conn.execute(queries("jobs").reopen, {"job_id": job_id})


async def counts(conn: Connection) -> dict[str | None, int]:
    """Unfinished jobs by owner."""
    cursor = await conn.execute(queries("jobs").counts)
    return {row["owner_id"]: row["jobs"] for row in await cursor.fetchall()}


async def quarantine(conn: Connection, owner_id: str, job_id: str, error: str) -> None:
    await conn.execute(queries("jobs").quarantine, {"owner_id": owner_id, "job_id": job_id, "error": error})
