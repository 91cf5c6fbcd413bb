"""The live processes of geomill, in the database."""

from __future__ import annotations

import hashlib
import json
import os
import socket
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from geomill import __version__
from geomill.domain.engine.instance import Instance, InstanceRole
from geomill.domain.ids import new_id
from geomill.errors import ConflictError
from geomill.sql import queries
from geomill.store.activity import Activity
from geomill.store.pool import Connection

BEAT_SECONDS = 5.0
SILENT_SECONDS = 25.0
"""A process without a heartbeat for that long counts as dead, even if its session is still there."""
ABSENT_SECONDS = 0.9
"""A process whose lock stays free for that long, without a heartbeat, counts as dead. A live process opens a lost
session again after a tenth of a second."""
SETTLE_SECONDS = 10.0
"""After a restart of the server, processes have that long to reconnect. Until then neither a free lock nor silence
proves that a process is dead. Attempts to reconnect are at most two seconds apart."""


def lock_key(instance_id: str) -> int:
    """Return 62 bits of a hash: positive as a bigint, and each half is shown in full by pg_locks."""
    return int.from_bytes(hashlib.sha256(instance_id.encode()).digest()[:8]) >> 2


def new_instance_id(role: InstanceRole) -> str:
    return f"{'orch' if role is InstanceRole.ORCHESTRATOR else 'work'}-{new_id()}"


async def register(
    conn: Connection, instance_id: str, role: InstanceRole, queues: Sequence[str] = (), slots: int | None = None
) -> bool:
    """Take the liveness lock on this very session, then add the row: never the other way round. Returns whether the row
    is new: at the start, or because others took this process for dead."""
    cursor = await conn.execute(queries("instances").hold, {"lock_key": lock_key(instance_id)})
    row = await cursor.fetchone()
    if row is None or not row["held"]:
        raise ConflictError(f"another session runs as {instance_id}")
    return await appear(conn, instance_id, role, queues, slots)


async def appear(
    conn: Connection, instance_id: str, role: InstanceRole, queues: Sequence[str] = (), slots: int | None = None
) -> bool:
    """Add the row of the process, or note its heartbeat. Returns whether the row is new."""
    cursor = await conn.execute(
        queries("instances").register,
        {
            "instance_id": instance_id,
            "role": role.value,
            "hostname": socket.gethostname()[:255],
            "pid": os.getpid(),
            "version": __version__,
            "queues": json.dumps(list(queues)),
            "lock_key": lock_key(instance_id),
            "slots": slots,
        },
    )
    row = await cursor.fetchone()
    return row is not None and bool(row["is_new"])


async def note_handlers(conn: Connection, instance_id: str, versions: Mapping[str, str]) -> None:
    """Store which handlers a process has, each with its code version. A process that has no row any more stores
    nothing."""
    parameters = {
        "instance_id": instance_id,
        "handlers": json.dumps(sorted(versions)),
        "versions": json.dumps(versions, sort_keys=True),
    }
    await conn.execute(queries("instances").note_handlers, parameters)


@dataclass(frozen=True, slots=True)
class Pulse:
    """The answer to a heartbeat."""

    registered: bool
    """The process has its row. If not, others took it for dead."""
    locked: bool
    """The listening session of the process has the liveness lock."""


async def beat(conn: Connection, instance_id: str, activity: Activity) -> Pulse:
    parameters = {"instance_id": instance_id, "lock_key": lock_key(instance_id), **activity.parameters()}
    row = await (await conn.execute(queries("instances").beat, parameters)).fetchone()
    assert row is not None
    return Pulse(**row)


async def remove(conn: Connection, instance_id: str) -> None:
    await conn.execute(queries("instances").remove, {"instance_id": instance_id})


async def everyone(conn: Connection) -> list[Instance]:
    cursor = await conn.execute(queries("instances").all)
    return [Instance.from_row(row) for row in await cursor.fetchall()]


async def heartbeat(conn: Connection, instance_id: str) -> datetime | None:
    """Return when a process last said that it is alive, or None if it has no row any more."""
    row = await (await conn.execute(queries("instances").heartbeat, {"instance_id": instance_id})).fetchone()
    return row["heartbeat_at"] if row else None


@dataclass(frozen=True, slots=True)
class InstanceLoad:
    """A process and its share of the work."""

    instance_id: str
    role: str
    hostname: str
    pid: int
    version: str
    queues: list[str]
    slots: int | None
    counts: dict[str, int]
    started_at: datetime
    looked_at: datetime | None
    heartbeat_seconds: float
    alive: bool
    owned_jobs: int
    leased_tasks: int


async def overview(conn: Connection) -> list[InstanceLoad]:
    cursor = await conn.execute(queries("instances").overview)
    return [InstanceLoad(**row) for row in await cursor.fetchall()]


@dataclass(frozen=True, slots=True)
class ServingInstance:
    """A live process and the handlers that it has."""

    instance_id: str
    version: str
    hostname: str
    pid: int
    queues: list[str]
    handlers: list[str]
    versions: dict[str, str]
    """The code version of each handler."""


async def serving(conn: Connection) -> list[ServingInstance]:
    cursor = await conn.execute(queries("instances").serving)
    return [ServingInstance(**row) for row in await cursor.fetchall()]


class Need(NamedTuple):
    """A handler, and the queue whose tasks want it."""

    queue_name: str
    handler: str


async def served_elsewhere(conn: Connection, instance_id: str, needs: Collection[Need]) -> set[Need]:
    """Return the handlers that another worker of their queue has."""
    parameters = {
        "instance_id": instance_id,
        "queue_names": [need.queue_name for need in needs],
        "handlers": [need.handler for need in needs],
    }
    cursor = await conn.execute(queries("instances").served_elsewhere, parameters)
    return {Need(**row) for row in await cursor.fetchall()}


@dataclass(frozen=True, slots=True)
class Absent:
    """A process whose liveness lock is free, or that is silent."""

    instance_id: str
    role: InstanceRole
    heartbeat_at: datetime
    silent: bool


async def absent(conn: Connection, silent_seconds: float = SILENT_SECONDS) -> list[Absent]:
    cursor = await conn.execute(queries("instances").absent, {"silent_seconds": silent_seconds})
    return [Absent(**{**row, "role": InstanceRole(row["role"])}) for row in await cursor.fetchall()]


@dataclass(frozen=True, slots=True)
class Outlook:
    """The work that an orchestrator finds when it looks around."""

    absent: bool
    settled: bool
    """The server has been up long enough for every live process to have reconnected."""
    orphans: bool
    lapsed: bool
    overdue: bool
    strays: bool
    schedules: bool
    callbacks: bool
    catalogue: bool
    reports: bool
    submissions: bool
    peers: int
    active: int | None
    """None if the look was not thorough."""


async def look(
    conn: Connection, owner_id: str, job_queue: str, silent_seconds: float, *, thorough: bool = True
) -> Outlook:
    parameters = {
        "owner_id": owner_id,
        "job_queue": job_queue,
        "silent_seconds": silent_seconds,
        "settle_seconds": SETTLE_SECONDS,
        "thorough": thorough,
    }
    row = await (await conn.execute(queries("instances").look, parameters)).fetchone()
    assert row is not None
    return Outlook(**row)


async def forget(conn: Connection, instance_ids: Sequence[str]) -> None:
    await conn.execute(queries("instances").forget, {"instance_ids": list(instance_ids)})
