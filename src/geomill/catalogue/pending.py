"""Assets whose catalogue entry has still to be written: the notes that the trigger `follow_asset` leaves."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime

from geomill.sql import queries
from geomill.store.pool import Connection

LONGEST_REASON = 2000


@dataclass(frozen=True, slots=True)
class Overdue:
    """How many assets wait for their entry longer than it takes an orchestrator to write one."""

    count: int
    since: datetime | None
    reason: str | None


@dataclass(frozen=True, slots=True)
class DueAsset:
    asset_id: str
    collection_id: str
    size: int
    """The size of its stored outputs, in bytes."""


async def overdue(conn: Connection) -> Overdue:
    row = await (await conn.execute(queries("catalogue").overdue)).fetchone()
    assert row is not None
    return Overdue(**row)


async def due(conn: Connection, limit: int) -> list[DueAsset]:
    rows = await (await conn.execute(queries("catalogue").due, {"limit": limit})).fetchall()
    return [DueAsset(**row) for row in rows]


async def awaits_entry(conn: Connection, asset_id: str) -> bool:
    """Whether an orchestrator has still to write the entry of an asset. A refused entry counts as done."""
    row = await (await conn.execute(queries("catalogue").awaits_entry, {"asset_id": asset_id})).fetchone()
    return row is not None and bool(row["awaits_entry"])


async def lock(conn: Connection, asset_ids: Collection[str]) -> list[str]:
    """Lock the notes of these assets until the transaction ends. Returns those that nobody else has locked. Read the
    assets afterwards: a change that commits later waits at the note, and leaves a new one."""
    parameters = {"asset_ids": list(asset_ids)}
    rows = await (await conn.execute(queries("catalogue").lock_pending, parameters)).fetchall()
    return [row["asset_id"] for row in rows]


async def note(conn: Connection, asset_id: str, reason: str) -> None:
    """Note that the entry of an asset has to be written again. The present one stays visible until then."""
    await conn.execute(queries("catalogue").note_change, {"asset_id": asset_id, "reason": reason})


async def clear(conn: Connection, asset_ids: Collection[str]) -> None:
    await conn.execute(queries("catalogue").clear_pending, {"asset_ids": list(asset_ids)})


async def postpone(conn: Connection, asset_id: str, reason: str, seconds: float = 0.0) -> None:
    """Note that the entry was refused, and is not tried again for some seconds. Nobody sees the entry meanwhile."""
    parameters = {"asset_id": asset_id, "reason": reason[:LONGEST_REASON], "seconds": seconds}
    await conn.execute(queries("catalogue").postpone, parameters)
