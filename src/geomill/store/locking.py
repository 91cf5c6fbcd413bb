"""How long a session waits for rows that others have locked.

Sessions of the engine wait for half a second (`HOT` in pool.py). A search for the locked row waits less.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from geomill.sql import queries
from geomill.store.pool import LOCK_MILLISECONDS, Connection

IMPATIENT_MILLISECONDS = 25


@asynccontextmanager
async def impatient(conn: Connection) -> AsyncIterator[None]:
    """Give up locked rows almost at once, to search for the one that is locked. Not in a transaction."""
    await _wait_for(conn, IMPATIENT_MILLISECONDS)
    try:
        yield
    finally:
        if not conn.closed:
            await _wait_for(conn, LOCK_MILLISECONDS)


async def _wait_for(conn: Connection, milliseconds: int) -> None:
    await conn.execute(queries("rounds").limit_locks, {"milliseconds": str(milliseconds)})
