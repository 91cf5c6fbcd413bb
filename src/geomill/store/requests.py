"""Work orders of partners in the database."""

from __future__ import annotations

from typing import LiteralString

from geomill.domain.assets.request import NewRequest, PlatformRequest
from geomill.domain.engine.job import Job
from geomill.domain.ids import new_id
from geomill.domain.jsonvalue import to_json
from geomill.errors import NotFoundError
from geomill.sql import queries
from geomill.store.pool import Connection


async def create(conn: Connection, request: NewRequest) -> PlatformRequest:
    parameters = {name: to_json(value) if isinstance(value, dict | list) else value for name, value in request}
    row = await (await conn.execute(queries("requests").create, parameters)).fetchone()
    assert row is not None
    return PlatformRequest.from_row(row)


async def get(conn: Connection, request_id: str) -> PlatformRequest:
    return await _get(conn, queries("requests").get, request_id)


async def lock(conn: Connection, request_id: str) -> PlatformRequest:
    return await _get(conn, queries("requests").lock, request_id)


async def by_idempotency_key(conn: Connection, platform_id: str, key: str) -> PlatformRequest | None:
    parameters = {"platform_id": platform_id, "idempotency_key": key}
    row = await (await conn.execute(queries("requests").by_idempotency_key, parameters)).fetchone()
    return PlatformRequest.from_row(row) if row else None


async def failed_finally(conn: Connection, job: Job) -> bool:
    """Return whether a job failed with an error that a retry would meet again."""
    if job.failed_node_id is None:
        return False
    parameters = {"job_id": job.job_id, "node_id": job.failed_node_id}
    row = await (await conn.execute(queries("requests").failed_finally, parameters)).fetchone()
    return bool(row and row["final"])


async def supersede(conn: Connection, asset_id: str) -> list[str]:
    """The jobs of the requests that were still open."""
    cursor = await conn.execute(queries("requests").supersede, {"asset_id": asset_id})
    return [row["job_id"] for row in await cursor.fetchall()]


async def retry(conn: Connection, request_id: str, job_id: str) -> PlatformRequest:
    row = await (await conn.execute(queries("requests").retry, {"request_id": request_id, "job_id": job_id})).fetchone()
    assert row is not None  # its row is locked
    return PlatformRequest.from_row(row)


async def replace(conn: Connection, failed_request_id: str, request: NewRequest) -> PlatformRequest:
    """Store a request in the place of one that failed, for the same revision. It begins as the failed one was and is
    then retried, so that the asset follows it in the same way."""
    await conn.execute(queries("requests").replace, {"request_id": failed_request_id})
    await create(conn, request.model_copy(update={"job_id": new_id()}))
    return await retry(conn, request.request_id, request.job_id)


async def _get(conn: Connection, statement: LiteralString, request_id: str) -> PlatformRequest:
    row = await (await conn.execute(statement, {"request_id": request_id})).fetchone()
    if row is None:
        raise NotFoundError(f"there is no request '{request_id}'")
    return PlatformRequest.from_row(row)
