"""The owner's write of one round."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cache
from typing import Any, LiteralString

from geomill.domain.states import JobStatus, NodeStatus
from geomill.sql import queries
from geomill.store.events import EventWrite
from geomill.store.pool import Connection
from geomill.store.recordset import recordset


@dataclass(slots=True)
class NodeWrite:
    """The whole of what an owner writes of a node or an item."""

    job_id: str
    node_id: str
    item_index: int
    status: NodeStatus
    task_id: str | None
    attempt: int
    retry_count: int
    output: Any = None
    error: str | None = None
    not_before: datetime | None = None
    worker_id: str | None = None
    started_at: datetime | None = None


@dataclass(slots=True)
class MessageWrite:
    queue_name: str
    message_id: str
    body: Mapping[str, Any]
    priority: int = 0
    visible_at: datetime | None = None
    ttl_seconds: float | None = None


@dataclass(slots=True)
class JobWrite:
    """What a decision changes on a job's row."""

    job_id: str
    status: JobStatus
    result: Any = None
    error: str | None = None
    failed_node: str | None = None
    paused: bool | None = None


@dataclass(slots=True)
class SummaryWrite:
    """How far a job is, for the asset that it works for."""

    job_id: str
    summary: Mapping[str, Any]


@dataclass
class Writes:
    """All that a round writes."""

    inserts: list[NodeWrite] = field(default_factory=list)
    updates: list[NodeWrite] = field(default_factory=list)
    messages: list[MessageWrite] = field(default_factory=list)
    withdrawals: list[tuple[str, str]] = field(default_factory=list)
    events: list[EventWrite] = field(default_factory=list)
    jobs: list[JobWrite] = field(default_factory=list)
    summaries: list[SummaryWrite] = field(default_factory=list)

    def recordsets(self) -> tuple[tuple[str, Sequence[Any]], ...]:
        """What is written by a part of the statement of that name."""
        return (
            ("inserted", self.inserts),
            ("updated", self.updates),
            ("sent", self.messages),
            ("noted", self.events),
            ("decided", self.jobs),
            ("summarised", self.summaries),
        )

    @property
    def queues(self) -> set[str]:
        """Those that have something to do at once."""
        return {message.queue_name for message in self.messages if message.visible_at is None}


async def commit(
    conn: Connection, owner_id: str, epochs: Mapping[str, int], writes: Writes, reports: Sequence[int] = ()
) -> bool:
    """One statement, so one commit. False, and nothing written, when a job of the round is no longer ours.

    `reports` are the inbox entries that the round answers.
    """
    parameters: dict[str, Any] = {"owner_id": owner_id, "job_ids": list(epochs), "epochs": list(epochs.values())}
    parts: dict[str, dict[str, Any]] = {}
    if reports:
        parts["taken"] = {"reports": list(reports)}
    for part, rows in writes.recordsets():
        if rows:
            parts[part] = {part: recordset(rows)}
    if writes.withdrawals:
        queues, ids = zip(*writes.withdrawals, strict=True)
        parts["withdrawn"] = {"withdrawn_queues": list(queues), "withdrawn_ids": list(ids)}
    for needed in parts.values():
        parameters |= needed
    cursor = await conn.execute(_statement(tuple(parts)), parameters)
    row = await cursor.fetchone()
    return row is not None and bool(row["held"])


@cache
def _statement(parts: tuple[str, ...]) -> LiteralString:
    """A round writes what it has: the other parts of the statement are left out."""
    found = queries("rounds")
    written = "".join(f", {part} AS ({getattr(found, part)})" for part in parts)
    return f"WITH fence AS MATERIALIZED ({found.fence}){written} SELECT held FROM fence"  # noqa: S608  our own files
