"""Assets whose catalogue entry could not be written together with them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

import psycopg

from geomill.sql import queries
from geomill.store.passing import spoils_session
from geomill.store.pool import Connection


@dataclass(frozen=True, slots=True)
class Pending:
    count: int
    since: datetime | None
    reason: str | None


async def pending(conn: Connection) -> Pending:
    row = await (await conn.execute(queries("catalogue").pending)).fetchone()
    assert row is not None
    return Pending(**row)


async def due(conn: Connection, limit: int) -> list[str]:
    rows = await (await conn.execute(queries("catalogue").due, {"limit": limit})).fetchall()
    return [row["asset_id"] for row in rows]


async def settle(conn: Connection, asset_id: str) -> str | None:
    """Why not; None once the catalogue says what is true, or while somebody changes the asset and sees to it."""
    given = {"asset_id": asset_id}
    try:
        async with conn.transaction():
            await conn.execute(queries("catalogue").lock_timeout)
            if await (await conn.execute(queries("catalogue").hold_asset, given)).fetchone():
                await conn.execute(queries("catalogue").settle, given)
                await conn.execute(queries("catalogue").settled, given)
    except psycopg.Error as error:
        if spoils_session(error):
            raise
        return await _postpone(conn, asset_id, error)
    return None


async def _postpone(conn: Connection, asset_id: str, error: psycopg.Error) -> str:
    reason = (error.diag.message_primary or str(error))[:2000]
    await conn.execute(queries("catalogue").postpone, {"asset_id": asset_id, "reason": reason})
    return reason
