"""One bounded pool per process. What a process needs is two or three connections, never one per task."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime
from typing import Any

from psycopg import AsyncConnection
from psycopg.rows import DictRow, dict_row
from psycopg_pool import AsyncConnectionPool, PoolTimeout

from geomill.errors import DatabaseUnreachable

Connection = AsyncConnection[DictRow]
Pool = AsyncConnectionPool[Connection]

CONNECTION: dict[str, Any] = {"autocommit": True, "row_factory": dict_row}


@asynccontextmanager
async def open_pool(url: str, *, size: int = 4, name: str = "geomill") -> AsyncIterator[Pool]:
    pool: Pool = AsyncConnectionPool(
        url,
        connection_class=AsyncConnection[DictRow],
        kwargs={**CONNECTION, "application_name": name},
        min_size=1,
        max_size=size,
        open=False,
        name=name,
    )
    try:
        await pool.open(wait=True, timeout=15)
    except PoolTimeout as error:
        await pool.close()
        raise DatabaseUnreachable(
            "the database gave no connection within 15 s", remedy="run 'geomill db status'"
        ) from error
    try:
        yield pool
    finally:
        await pool.close()


async def transaction_time(conn: Connection) -> datetime:
    """The database's now: time belongs to it."""
    row = await (await conn.execute("SELECT now() AS now")).fetchone()
    assert row is not None
    found: datetime = row["now"]
    return found
