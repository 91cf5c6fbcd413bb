"""Which queues nobody serves, and which messages wait in them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime

from geomill.domain.engine.attendance import UNKNOWN, unknown_queue
from geomill.sql import queries
from geomill.store import metrics
from geomill.store.pool import Connection

MOST_RECALLED = 1_000
"""The most submissions that one statement brings back."""


@dataclass(frozen=True, slots=True)
class Unserved:
    """A queue that nobody serves. `workflow_id` is set if submissions wait for an orchestrator that has it."""

    queue_name: str
    since: datetime
    workflow_id: str | None = None

    @property
    def reason(self) -> str:
        if self.workflow_id is not None:
            return f"no orchestrator knows the workflow '{self.workflow_id}': its submissions wait"
        return f"nobody serves the queue '{self.queue_name}': what is in it waits"

    @property
    def remedy(self) -> str:
        if self.workflow_id is not None:
            return "start an orchestrator that has this workflow (GEOMILL_WORKFLOWS), or cancel the jobs"
        return f"run 'geomill worker --queue {self.queue_name}'"


async def note(conn: Connection) -> list[Unserved]:
    """Find the queues that nobody serves, and store them: other processes read them with `unserved`."""
    return [Unserved(**row) for row in await (await conn.execute(queries("attendance").note)).fetchall()]


async def unserved(conn: Connection) -> list[Unserved]:
    """Return the queues that nobody served when an orchestrator looked last."""
    cursor = await conn.execute(queries("attendance").unserved, {"unknown": f"%{UNKNOWN}"})
    return [Unserved(**row) for row in await cursor.fetchall()]


async def consumers(conn: Connection) -> dict[str, int]:
    """Return how many processes take from each queue; 0 for a queue that nobody serves."""
    serving = Counter(
        queue_name for instance in await metrics.instances(conn) if instance.alive for queue_name in instance.queues
    )
    return {queue.queue_name: 0 for queue in await unserved(conn)} | dict(serving)


async def give_up(conn: Connection, seconds: float) -> list[str]:
    """Fail the tasks in queues that nobody has served for `seconds`. Returns the owners of their jobs."""
    cursor = await conn.execute(queries("attendance").give_up, {"seconds": seconds})
    return sorted({row["owner_id"] for row in await cursor.fetchall()})


async def waits(conn: Connection, message_ids: Sequence[str]) -> dict[str, str]:
    """Return the messages that wait in a queue that nobody serves, each with the name of the queue."""
    cursor = await conn.execute(queries("attendance").waits, {"message_ids": list(message_ids)})
    return {row["message_id"]: row["queue_name"] for row in await cursor.fetchall()}


async def put_aside(conn: Connection, job_queue: str, sequences: Sequence[int]) -> int:
    """Leave submissions to an orchestrator that knows their workflow. Returns how many were still there."""
    parameters = {"job_queue": job_queue, "unknown_queue": unknown_queue(job_queue), "sequences": list(sequences)}
    row = await (await conn.execute(queries("attendance").put_aside, parameters)).fetchone()
    assert row is not None
    return int(row["submissions"])


async def recall(conn: Connection, job_queue: str, workflow_ids: Collection[str]) -> int:
    """Bring back the submissions that wait for one of these workflows."""
    parameters = {
        "job_queue": job_queue,
        "unknown_queue": unknown_queue(job_queue),
        "workflow_ids": list(workflow_ids),
        "limit": MOST_RECALLED,
    }
    return (await conn.execute(queries("attendance").recall, parameters)).rowcount


async def why_queued(conn: Connection, job_queue: str, job_id: str) -> str | None:
    """Return why a submission is not claimed, or None if it has just come."""
    parameters = {"job_queue": job_queue, "unknown_queue": unknown_queue(job_queue), "job_id": job_id}
    row = await (await conn.execute(queries("attendance").queued, parameters)).fetchone()
    if row is None:
        return None
    if row["queue_name"] != job_queue:
        return f"no orchestrator knows the workflow '{row['workflow_id']}'"
    instances = await metrics.instances(conn)
    claimed = any(instance.alive and job_queue in instance.queues for instance in instances)
    return None if claimed else "no orchestrator is alive"
