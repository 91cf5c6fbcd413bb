"""The owner's write of one round, and of the claim that comes before the first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cache
from typing import Any, LiteralString

from geomill.domain.engine.job import JobPurpose
from geomill.domain.states import JobStatus, NodeStatus
from geomill.sql import queries
from geomill.store.events import EventWrite
from geomill.store.pool import Connection
from geomill.store.recordset import recordset
from geomill.store.signals import queue_channel


@dataclass(frozen=True, slots=True)
class NewJob:
    """A job as it comes into being. One that is refused at the door, or cancelled before it, has no definition."""

    job_id: str
    workflow_id: str
    status: JobStatus
    input_params: dict[str, Any]
    owner_id: str | None = None
    workflow_version: int | None = None
    definition_hash: str | None = None
    result_data: Any = None
    error_message: str | None = None
    failed_node_id: str | None = None
    priority: int = 0
    tenant: str = ""
    correlation_id: str | None = None
    submitted_by: str | None = None
    callback_url: str | None = None
    idempotency_key: str | None = None
    submitted_at: datetime | None = None
    timeout_seconds: float | None = None
    asset_id: str | None = None
    asset_revision: int | None = None
    request_id: str | None = None
    purpose: JobPurpose = JobPurpose.PROCESS


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
    dispatched_at: datetime | None = None
    started_at: datetime | None = None
    items_total: int | None = None
    items_sent: int | None = None


@dataclass(slots=True)
class MessageWrite:
    queue_name: str
    message_id: str
    body: Mapping[str, Any]
    priority: int = 0
    tenant: str = ""
    visible_at: datetime | None = None
    ttl_seconds: float | None = None


@dataclass(slots=True)
class Spread:
    """New items of a fan-out that are sent for the first time, with what they have in common."""

    queue_name: str
    priority: int
    tenant: str
    ttl_seconds: float | None
    before_index: str
    after_index: str
    """Around an item's index, these are its task id."""
    body: Mapping[str, Any]
    items: list[int] = field(default_factory=list)
    params: list[Mapping[str, Any]] = field(default_factory=list)


@dataclass(slots=True)
class Completed:
    """Items that were sent at one time and begun by one worker at another, and that ended well."""

    job_id: str
    node_id: str
    attempt: int
    before_index: str
    after_index: str
    worker_id: str | None
    dispatched_at: datetime | None
    started_at: datetime | None
    items: list[int] = field(default_factory=list)


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
    items: list[NodeWrite] = field(default_factory=list)
    completed: list[Completed] = field(default_factory=list)
    spread: list[Spread] = field(default_factory=list)
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
            ("items", self.items),
            ("completed", self.completed),
            ("spread", self.spread),
            ("sent", self.messages),
            ("noted", self.events),
            ("decided", self.jobs),
            ("summarised", self.summaries),
        )

    def parts(self) -> dict[str, dict[str, Any]]:
        """The parts of the statement that have something to do, with their parameters."""
        found: dict[str, dict[str, Any]] = {name: {name: recordset(rows)} for name, rows in self.recordsets() if rows}
        if self.withdrawals:
            queues, ids = zip(*self.withdrawals, strict=True)
            found["withdrawn"] = {"withdrawn_queues": list(queues), "withdrawn_ids": list(ids)}
        return found

    @property
    def queues(self) -> set[str]:
        """Those that have something to do at once."""
        at_once = {message.queue_name for message in self.messages if message.visible_at is None}
        return at_once | {spread.queue_name for spread in self.spread}


async def commit(
    conn: Connection,
    owner_id: str,
    epochs: Mapping[str, int],
    writes: Writes,
    reports: Sequence[int] = (),
    *,
    called: bool = False,
) -> bool:
    """One statement, so one commit. False, and nothing written, when a job of the round is no longer ours.

    `reports` are the inbox entries that the round answers. With `called`, workers hear of their tasks with the commit.
    """
    parts = writes.parts()
    if reports:
        parts["taken"] = {"reports": list(reports)}
    if called:
        parts |= _called(writes)
    return await _execute(conn, parts, _fenced(owner_id, epochs))


async def claim(conn: Connection, submissions: Sequence[int], new: Sequence[NewJob], writes: Writes) -> bool:
    """Submissions become jobs, in one statement. False, and nothing written, when one of them was no longer there.
    Raises `UniqueViolation` when one has its job already."""
    parts: dict[str, dict[str, Any]] = {
        "claimed": {"submissions": list(submissions)},
        "created": {"created": recordset(new)},
    }
    return await _execute(conn, {**parts, **writes.parts(), **_called(writes)}, {}, "unclaimed")


async def create(conn: Connection, new: Sequence[NewJob]) -> set[str]:
    """The ids of those that came into being: not those that, or whose idempotency key, were there already."""
    if not new:
        return set()
    open_fence = "WITH fence AS (SELECT true AS held)"
    statement = f"{open_fence} {queries('rounds').created} ON CONFLICT DO NOTHING RETURNING job_id"
    cursor = await conn.execute(statement, {"created": recordset(new)})
    return {row["job_id"] for row in await cursor.fetchall()}


async def write_new(conn: Connection, owner_id: str, writes: Writes) -> None:
    """Of jobs that this transaction has made. Those who wait for their tasks hear of it with its commit."""
    await _execute(conn, {**writes.parts(), **_called(writes)}, _fenced(owner_id, {}))


def _called(writes: Writes) -> dict[str, dict[str, Any]]:
    channels = [queue_channel(name) for name in sorted(writes.queues)]
    return {"called": {"channels": channels}} if channels else {}


def _fenced(owner_id: str, epochs: Mapping[str, int]) -> dict[str, Any]:
    return {"owner_id": owner_id, "job_ids": list(epochs), "epochs": list(epochs.values())}


async def _execute(
    conn: Connection, parts: Mapping[str, Mapping[str, Any]], parameters: dict[str, Any], fence: str = "fence"
) -> bool:
    for needed in parts.values():
        parameters |= needed
    row = await (await conn.execute(_statement(tuple(parts), fence), parameters)).fetchone()
    return row is not None and bool(row["held"])


@cache
def _statement(parts: tuple[str, ...], fence: str = "fence") -> LiteralString:
    """A round writes what it has: the other parts of the statement are left out."""
    found = queries("rounds")
    written = "".join(f", {part} AS ({getattr(found, part)})" for part in parts)
    seen = "fence, called" if "called" in parts else "fence"
    return f"WITH fence AS MATERIALIZED ({getattr(found, fence)}){written} SELECT held FROM {seen}"  # noqa: S608  our own files
