"""Sends dead letters again.

A refused submission leaves a failed job under its id for its submitter. When it is sent again it must be able to become
that job, so the same transaction deletes the failed job.
"""

from __future__ import annotations

from collections.abc import Sequence

from geomill.queues import postgres as queue
from geomill.queues.broker import Broker, Dead
from geomill.store.pool import Connection
from geomill.store.signals import notify, queue_channel

MOST = 10_000


async def redrive(
    conn: Connection, broker: Broker[Connection], queue_name: str, message_ids: Sequence[str] | None, limit: int = MOST
) -> list[Dead]:
    """Send the dead letters with these ids again, or all of the queue if none are given. Returns those that were
    sent."""
    async with conn.transaction():
        sent = await broker.redrive(conn, queue_name, message_ids, limit)
        job_ids = [letter.body["job_id"] for letter in sent if _is_submission(letter)]
        await queue.forget_refused(conn, job_ids)
    if sent:
        await notify(conn, [queue_channel(queue_name)])
    return sent


def _is_submission(letter: Dead) -> bool:
    body = letter.body
    return isinstance(body, dict) and isinstance(body.get("job_id"), str) and "task_id" not in body
