"""Recognises a pooler that gives one session of the server to several clients, one transaction after the other.

geomill needs sessions of its own: they listen for notifications, hold the lock that says that a process lives, and have
settings and prepared statements. Behind such a pooler all of that would get lost without an error.

Two connections that do nothing are answered by one process of the server only if a pooler shares it. Weakness: on a
busy pooler the second connection may get another one, so it is sometimes recognised only at the next start.
"""

from __future__ import annotations

from typing import Any

from psycopg import AsyncConnection

from geomill.errors import DatabaseUnfit
from geomill.sql import queries
from geomill.store.connection import connect


async def require_own_sessions(conn: AsyncConnection[Any], url: str) -> None:
    """Raise `DatabaseUnfit` if another connection to this URL is answered by the session of `conn`."""
    async with await connect(url) as other:
        if await _backend(conn) == await _backend(other):
            raise DatabaseUnfit(
                "a pooler in transaction mode stands before the database: several connections share one session",
                remedy="name the port of PostgreSQL itself in the URL, or set the pooler to pool_mode = session",
            )


async def _backend(conn: AsyncConnection[Any]) -> int:
    cursor = await conn.execute(queries("queue").backend, prepare=False)
    row = await cursor.fetchone()
    assert row is not None
    return int(row["pid"] if isinstance(row, dict) else row[0])
