"""Queues in which work waits for somebody who is not there."""

from __future__ import annotations

from typing import ClassVar

from geomill.domain.entity import Entity, Key, Now

UNKNOWN = ".unknown"
"""Ends the name of the queue in which submissions wait whose workflow no orchestrator has known so far."""
LONGEST_JOB_QUEUE = 64 - len(UNKNOWN)


class UnservedQueue(Entity):
    """A queue in which something waits and which no process serves. Written by orchestrators, when it changes."""

    __sql_table__: ClassVar = "dag_unserved_queues"
    __sql_primary_key__: ClassVar = ("queue_name",)

    queue_name: Key
    since: Now


def unknown_queue(job_queue: str) -> str:
    return job_queue + UNKNOWN
