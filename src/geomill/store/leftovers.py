"""Data of revisions that nobody needs any more, in the database."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta

from geomill.sql import queries
from geomill.store.pool import Connection


@dataclass(frozen=True, slots=True)
class KeptFor:
    """How long the data of a revision is kept after it failed, and after it was superseded. None means for ever."""

    failed: timedelta | None
    completed: timedelta | None

    def parameters(self) -> dict[str, float | None]:
        return {name: age.total_seconds() if age else None for name, age in self._ages()}

    def _ages(self) -> list[tuple[str, timedelta | None]]:
        return [("failed", self.failed), ("completed", self.completed)]


@dataclass(frozen=True, slots=True)
class Leftover:
    asset_id: str
    revision: int
    job_id: str | None
    ended_at: datetime | None = None
    completed: bool = False
    """Whether the revision had completed before a newer one replaced it."""
    bytes: int | None = None
    """The size of its files, if it had completed."""


async def due(conn: Connection, ages: KeptFor, limit: int) -> list[Leftover]:
    cursor = await conn.execute(queries("leftovers").due, {**ages.parameters(), "limit": limit})
    return [Leftover(**row) for row in await cursor.fetchall()]


@asynccontextmanager
async def holding(conn: Connection, leftover: Leftover, ages: KeptFor) -> AsyncIterator[str | None]:
    """Lock a revision whose files the caller deletes inside, and yield the stem of the asset's files. If the caller
    leaves without an error, the tables of the revision are dropped too, and it cannot be restored. Yields None if
    another process deletes it, or if it is needed again."""
    which = {"asset_id": leftover.asset_id, "revision": leftover.revision}
    async with conn.transaction():
        row = await (await conn.execute(queries("leftovers").alone, which)).fetchone()
        if row is None or not row["alone"]:
            yield None
            return
        asset_row = await (await conn.execute(queries("leftovers").hold, {**which, **ages.parameters()})).fetchone()
        if asset_row is None:
            yield None
            return
        yield str(asset_row["blob_stem"])
        await conn.execute(queries("leftovers").note, {**which, "job_id": leftover.job_id})
        await conn.execute(queries("leftovers").drop_tables, which)
        if asset_row["completed"]:
            await conn.execute(queries("leftovers").settle, which)


async def deleted(conn: Connection, asset_id: str, revision: int) -> bool:
    """Return whether the data of the revision was deleted because nobody needed it any more."""
    parameters = {"asset_id": asset_id, "revision": revision}
    row = await (await conn.execute(queries("leftovers").deleted, parameters)).fetchone()
    return row is not None and bool(row["deleted"])
