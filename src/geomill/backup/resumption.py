"""Makes leases, jobs and schedules ready for the engine after a restoration.

Jobs that were under way go on. Their owners and workers are gone, so their leases are ended here, and the first
orchestrator takes the jobs over as those of a dead one. Tasks that ran begin again, from their last checkpoint, with a
greater token. If the operator asks for it, the jobs are cancelled instead.

A job that has validated its source stores the source's etag, and fails when the source has another one. A restored
object has the same bytes and another etag, so the etags in open jobs are replaced.

Due times of schedules that passed since the backup are skipped, whatever the schedule's policy: the lost platform may
have fired them, and their jobs would run twice. Callbacks that were not yet delivered are delivered; a receiver
recognises repeated ones by X-Geomill-Delivery.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import LiteralString

from geomill.engine.control import cancel
from geomill.errors import ConflictError, NotFoundError
from geomill.sql import queries
from geomill.store import schedules
from geomill.store.pool import Connection, transaction_time

_ETAG = re.compile(r'"etag": ?("(?:[^"\\]|\\.)*")')
REASON = "interrupted: the platform was restored from a backup"


@dataclass(frozen=True)
class Resumed:
    jobs: int
    """Jobs that were under way when the backup was taken."""
    cancelled: int
    released: int
    postponed: tuple[str, ...]
    """Schedules whose due times passed since the backup."""


async def resume(conn: Connection, job_queue: str, etags: Mapping[str, str], *, cancel_jobs: bool) -> Resumed:
    """Prepare jobs and schedules, in the transaction that loads the rows: no orchestrator sees them before. `etags` are
    those of sources in the backup, each with the etag of the same bytes here."""
    for sources, note in (
        (queries("backup").node_sources, queries("backup").note_node_source),
        (queries("backup").result_sources, queries("backup").note_result_source),
        (queries("backup").message_sources, queries("backup").note_message_source),
    ):
        await _rename_versions(conn, sources, note, etags)
    released = (await conn.execute(queries("backup").release_leases)).rowcount
    rows = await (await conn.execute(queries("backup").open_jobs, {"job_queue": job_queue})).fetchall()
    open_jobs = [row["job_id"] for row in rows]
    cancelled = await _cancel(conn, job_queue, open_jobs) if cancel_jobs else 0
    return Resumed(len(open_jobs), cancelled, released, await _postpone(conn))


async def _rename_versions(
    conn: Connection, sources: LiteralString, note: LiteralString, etags: Mapping[str, str]
) -> None:
    """Give the documents that the statement `sources` reads the etags of the restored objects."""
    rows = await (await conn.execute(sources)).fetchall()
    for row in rows:
        document = with_etags(row["document"], etags)
        if document != row["document"]:
            await conn.execute(note, {"place": row["place"], "document": document})


def with_etags(document: str, etags: Mapping[str, str]) -> str:
    """Return the JSON text with the new etags."""

    def renamed(match: re.Match[str]) -> str:
        etag = json.loads(match[1])
        return f'"etag": {json.dumps(etags.get(etag, etag), ensure_ascii=False)}'

    return _ETAG.sub(renamed, document)


async def _cancel(conn: Connection, job_queue: str, job_ids: list[str]) -> int:
    cancelled = 0
    for job_id in job_ids:
        try:
            async with conn.transaction():
                await cancel(conn, job_queue, job_id, REASON)
            cancelled += 1
        except (ConflictError, NotFoundError):
            continue  # it has ended, or it is a message that never becomes a job
    return cancelled


async def _postpone(conn: Connection) -> tuple[str, ...]:
    now = await transaction_time(conn)
    rows = await (await conn.execute(queries("backup").overdue_schedules)).fetchall()
    for row in rows:
        schedule = await schedules.lock(conn, row["schedule_id"])
        due = {"schedule_id": schedule.schedule_id, "next_due_at": schedule.timing.after(now)}
        await conn.execute(queries("backup").postpone_schedule, due)
    return tuple(row["schedule_id"] for row in rows)
