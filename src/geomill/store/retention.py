"""Rows that are deleted when they are old."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from geomill.sql import queries
from geomill.store.pool import Connection


async def due(conn: Connection, older_than: timedelta) -> int:
    """Return how many jobs have details that old."""
    parameters = {"older_than": older_than.total_seconds()}
    row = await (await conn.execute(queries("retention").due, parameters)).fetchone()
    assert row is not None
    return int(row["jobs"])


async def mark(conn: Connection, older_than: timedelta, lease_seconds: float, limit: int) -> list[str]:
    """Return the next jobs whose details this process deletes. From now on they cannot be retried."""
    parameters = {"older_than": older_than.total_seconds(), "lease_seconds": lease_seconds, "limit": limit}
    cursor = await conn.execute(queries("retention").mark, parameters)
    return [row["job_id"] for row in await cursor.fetchall()]


async def release(conn: Connection, job_ids: Sequence[str]) -> None:
    await conn.execute(queries("retention").release, {"job_ids": list(job_ids)})


async def delete_rows(conn: Connection, job_ids: Sequence[str], limit: int) -> dict[str, int]:
    """Delete details of these jobs, and return how many rows of each kind. `limit` holds for each kind but results and
    callbacks."""
    row = await (
        await conn.execute(queries("retention").delete_rows, {"job_ids": list(job_ids), "limit": limit})
    ).fetchone()
    assert row is not None
    return row


async def finish(conn: Connection, job_ids: Sequence[str]) -> None:
    await conn.execute(queries("retention").finish, {"job_ids": list(job_ids)})


async def delete_dead_letters(conn: Connection, older_than: timedelta, limit: int) -> int:
    parameters = {"older_than": older_than.total_seconds(), "limit": limit}
    return (await conn.execute(queries("retention").delete_dead_letters, parameters)).rowcount


async def delete_jobs(conn: Connection, older_than: timedelta, limit: int) -> int:
    parameters = {"older_than": older_than.total_seconds(), "limit": limit}
    return (await conn.execute(queries("retention").delete_jobs, parameters)).rowcount
