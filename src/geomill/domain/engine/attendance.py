"""Unserved queues: messages wait in them and no process serves them."""

from __future__ import annotations

from typing import ClassVar

from geomill.domain.entity import Entity, Key, Now

UNKNOWN = ".unknown"
"""The suffix of the queue for submissions whose workflow no orchestrator knows."""
LONGEST_JOB_QUEUE = 64 - len(UNKNOWN)


class UnservedQueue(Entity):
    """A queue in which messages wait and which no process serves. Orchestrators add and remove the rows."""

    __sql_table__: ClassVar = "dag_unserved_queues"
    __sql_primary_key__: ClassVar = ("queue_name",)

    queue_name: Key
    since: Now


def unknown_queue(job_queue: str) -> str:
    return job_queue + UNKNOWN
