"""Figures about the whole platform, read from its tables. Bounded in rows and in time, so that looking costs little."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any, LiteralString

from geomill.sql import queries
from geomill.store.pool import Connection

WINDOW_SECONDS = 300.0
SAMPLE = 20_000
OLD_SECONDS = 600.0
OLD_TRANSACTIONS = 2_000_000
"""A transaction that is open for longer than that, in seconds or in transactions begun since, is reported."""
PATIENCE_SECONDS = 2.0
"""How long one of these statements may take."""


@dataclass(frozen=True, slots=True)
class InstanceHealth:
    instance_id: str
    role: str
    version: str
    hostname: str
    pid: int
    queues: list[str]
    duties: dict[str, dict[str, Any]]
    started_at: datetime
    heartbeat_seconds: float
    alive: bool
    owned_jobs: int


@dataclass(frozen=True, slots=True)
class QueueDepth:
    queue_name: str
    waiting: int
    leased: int
    oldest_seconds: float


@dataclass(frozen=True, slots=True)
class DeadLetters:
    queue_name: str
    reason: str
    letters: int


@dataclass(frozen=True, slots=True)
class StuckJob:
    job_id: str
    workflow_id: str
    quiet_seconds: float


async def instances(conn: Connection) -> list[InstanceHealth]:
    return [InstanceHealth(**row) for row in await _rows(conn, queries("metrics").instances)]


async def queues(conn: Connection) -> list[QueueDepth]:
    return [QueueDepth(**row) for row in await _rows(conn, queries("metrics").queues)]


async def active_jobs(conn: Connection) -> dict[str, int]:
    """Return how many jobs are unfinished: pending, running, paused or parked."""
    return {row["status"]: row["jobs"] for row in await _rows(conn, queries("metrics").active_jobs)}


async def recent_jobs(conn: Connection) -> dict[str, int]:
    """Return how many jobs were created in the window, by status."""
    return {row["status"]: row["jobs"] for row in await _rows(conn, queries("metrics").recent_jobs)}


async def events(conn: Connection) -> dict[str, int]:
    """Return how many events of each type there were in the window."""
    return {row["event_type"]: row["events"] for row in await _rows(conn, queries("metrics").events)}


async def connections(conn: Connection) -> dict[str, int]:
    """Return how many sessions of this database each application has."""
    return {row["application"]: row["sessions"] for row in await _rows(conn, queries("metrics").connections)}


async def dead_letters(conn: Connection) -> list[DeadLetters]:
    return [DeadLetters(**row) for row in await _rows(conn, queries("metrics").dead_letters, window_seconds=None)]


async def stuck_jobs(conn: Connection, quiet_seconds: float, limit: int) -> list[StuckJob]:
    rows = await _rows(conn, queries("metrics").stuck_jobs, quiet_seconds=quiet_seconds, sample=limit)
    return [StuckJob(**row) for row in rows]


@dataclass(frozen=True, slots=True)
class Holder:
    """Something that keeps dead rows from being vacuumed: a transaction, open or prepared, or a replication slot."""

    kind: str
    name: str
    seconds: float | None
    """How long it has been open; None if that is unknown or hidden from this role."""
    transactions: int
    """How many transactions have begun since."""

    @property
    def old(self) -> bool:
        return (self.seconds or 0.0) >= OLD_SECONDS or self.transactions >= OLD_TRANSACTIONS

    def told(self) -> str:
        since = f"for {self.seconds / 60:.0f} min" if self.seconds is not None else f"for {self.transactions:,} others"
        subject = {
            "session": "a transaction of",
            "prepared": "the prepared transaction",
            "slot": "the replication slot",
        }
        return f"{subject[self.kind]} {self.name} has been open {since}: dead rows cannot be vacuumed meanwhile"


async def horizon(conn: Connection) -> list[Holder]:
    """Return what keeps dead rows from being vacuumed, the oldest first."""
    return [Holder(**row) for row in await _rows(conn, queries("metrics").horizon, sample=20)]


async def fresh_dead_letters(conn: Connection) -> list[DeadLetters]:
    """Return the dead letters of the last day."""
    return [DeadLetters(**row) for row in await _rows(conn, queries("metrics").dead_letters, window_seconds=86_400.0)]


async def database_bytes(conn: Connection) -> int:
    (row,) = await _rows(conn, queries("metrics").database_bytes)
    return int(row["bytes"])


async def clock(conn: Connection) -> datetime:
    (row,) = await _rows(conn, queries("metrics").clock)
    now: datetime = row["now"]
    return now


async def _rows(conn: Connection, statement: LiteralString, **options: Any) -> list[dict[str, Any]]:
    parameters: dict[str, Any] = {
        "window_seconds": WINDOW_SECONDS,
        "sample": SAMPLE,
        **options,
    }
    async with conn.transaction():
        await conn.execute(queries("metrics").limit_time, {"milliseconds": int(PATIENCE_SECONDS * 1000)})
        return await (await conn.execute(statement, parameters)).fetchall()
