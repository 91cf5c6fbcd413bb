"""The statement by which an owner writes one round, and the one by which it claims jobs before the first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cache
from typing import Any, LiteralString, NamedTuple

from geomill.domain.engine.job import NewJob
from geomill.domain.engine.permit import Permit
from geomill.domain.states import JobStatus, NodeStatus
from geomill.sql import queries
from geomill.store.events import EventWrite
from geomill.store.pool import Connection
from geomill.store.recordset import recordset
from geomill.store.signals import Call, call_parameters, queue_channel


@dataclass(slots=True)
class NodeWrite:
    """All columns of a node or an item that an owner writes."""

    job_id: str
    node_id: str
    item_index: int
    status: NodeStatus
    task_id: str | None
    attempt: int
    retry_count: int
    output: Any = None
    error_message: str | None = None
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
    """New items of a fan-out that are sent for the first time, with the fields that they share."""

    queue_name: str
    priority: int
    tenant: str
    ttl_seconds: float | None
    before_index: str
    after_index: str
    """An item's index between these two texts is its task id."""
    body: Mapping[str, Any]
    items: list[int] = field(default_factory=list)
    params: list[Mapping[str, Any]] = field(default_factory=list)


@dataclass(slots=True)
class Completed:
    """Completed items that were sent at one time and begun by one worker at one time."""

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
    """The changes of a decision to the row of a job."""

    job_id: str
    status: JobStatus
    result: Any = None
    error: str | None = None
    failed_node: str | None = None
    paused: bool | None = None
    summary: Mapping[str, Any] | None = None
    """The progress at the end, for the asset that the job works for."""


@dataclass(slots=True)
class SummaryWrite:
    """The progress of a job, for the asset that it works for."""

    job_id: str
    summary: Mapping[str, Any]


class RoundPart(NamedTuple):
    """One common table expression, `name AS (statement)`, of the statement that writes a round."""

    name: str
    statement: LiteralString


RoundParts = dict[RoundPart, dict[str, Any]]
"""Parts of a round's statement, each with the parameters that it needs."""


@dataclass
class Writes:
    """Everything that a round writes."""

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

    def recordsets(self) -> tuple[tuple[RoundPart, Sequence[Any]], ...]:
        """Returns the rows to write, each kind with the part of the statement that writes it."""
        return (
            (RoundPart("inserted", queries("rounds").inserted), self.inserts),
            (RoundPart("updated", queries("rounds").updated), self.updates),
            (RoundPart("items", queries("rounds").items), self.items),
            (RoundPart("completed", queries("rounds").completed), self.completed),
            (RoundPart("spread", queries("rounds").spread), self.spread),
            (RoundPart("sent", queries("rounds").sent), self.messages),
            (RoundPart("noted", queries("rounds").noted), self.events),
            (RoundPart("decided", queries("rounds").decided), self.jobs),
            (RoundPart("summarised", queries("rounds").summarised), self.summaries),
        )

    def parts(self) -> RoundParts:
        """Returns the parts of the statement that have something to do, with their parameters."""
        parts: RoundParts = {part: {part.name: recordset(rows)} for part, rows in self.recordsets() if rows}
        if self.withdrawals:
            queues, ids = zip(*self.withdrawals, strict=True)
            withdrawn = RoundPart("withdrawn", queries("rounds").withdrawn)
            parts[withdrawn] = {"withdrawn_queues": list(queues), "withdrawn_ids": list(ids)}
        return parts

    def permits(self) -> Iterator[Permit]:
        """Returns a permit for each task that the round sends, for Service Bus."""
        for message in self.messages:
            yield _permit(message.queue_name, message.message_id, message.body, message.visible_at)
        for spread in self.spread:
            for index in spread.items:
                task_id = f"{spread.before_index}{index}{spread.after_index}"
                yield _permit(spread.queue_name, task_id, spread.body)

    @property
    def tasks(self) -> Counter[str]:
        """The queues whose workers have something to do at once, with the number of tasks."""
        tasks = Counter(message.queue_name for message in self.messages if message.visible_at is None)
        for spread in self.spread:
            tasks[spread.queue_name] += len(spread.items)
        return tasks


def _permit(queue_name: str, task_id: str, body: Mapping[str, Any], due_at: datetime | None = None) -> Permit:
    names = {name: str(body.get(name, "")) for name in ("job_id", "node_id", "handler")}
    return Permit(queue_name=queue_name, task_id=task_id, due_at=due_at, **names)


async def commit(
    conn: Connection,
    owner_id: str,
    epochs: Mapping[str, int],
    writes: Writes,
    reports: Sequence[int] = (),
    calls: Collection[Call] = (),
) -> bool:
    """Write a round in one statement, so in one commit. Returns False, with nothing written, if `owner_id` no longer
    owns a job of the round.

    `reports` are the inbox entries that the round answers. The commit sends the `calls`.
    """
    parts = writes.parts()
    if reports:
        parts[RoundPart("taken", queries("rounds").taken)] = {"reports": list(reports)}
    parts |= _called(calls)
    return await _execute(conn, queries("rounds").fence, parts, _fenced(owner_id, epochs))


async def claim(conn: Connection, submissions: Sequence[int], new: Sequence[NewJob], writes: Writes) -> bool:
    """Turn submissions into jobs, in one statement. Returns False, with nothing written, if a submission was no longer
    there. Raises `UniqueViolation` if a submission has its job already."""
    parts: RoundParts = {
        RoundPart("claimed", queries("rounds").claimed): {"submissions": list(submissions)},
        RoundPart("created", queries("rounds").created): {"created": recordset(new)},
    }
    return await _execute(
        conn, queries("rounds").unclaimed, {**parts, **writes.parts(), **_called(_everyone(writes))}, {}
    )


async def create(conn: Connection, new: Sequence[NewJob]) -> set[str]:
    """Insert jobs. Returns the ids of those inserted: a job whose id or idempotency key exists already is left out."""
    if not new:
        return set()
    fence, created = queries("rounds").open_fence, queries("rounds").created
    statement = f"WITH fence AS ({fence}) {created} ON CONFLICT DO NOTHING RETURNING job_id"
    cursor = await conn.execute(statement, {"created": recordset(new)})
    return {row["job_id"] for row in await cursor.fetchall()}


async def write_new(conn: Connection, owner_id: str, writes: Writes) -> None:
    """Write a round of jobs that this transaction has inserted. Its commit notifies the workers."""
    parts = {**writes.parts(), **_called(_everyone(writes))}
    await _execute(conn, queries("rounds").fence, parts, _fenced(owner_id, {}))


def _everyone(writes: Writes) -> list[Call]:
    """Return calls to all workers of the queues that have new tasks."""
    return [Call(queue_channel(queue_name)) for queue_name in writes.tasks]


def _called(calls: Collection[Call]) -> RoundParts:
    return {RoundPart("called", queries("rounds").called): dict(call_parameters(calls))} if calls else {}


def _fenced(owner_id: str, epochs: Mapping[str, int]) -> dict[str, Any]:
    return {"owner_id": owner_id, "job_ids": list(epochs), "epochs": list(epochs.values())}


async def _execute(conn: Connection, fence: LiteralString, parts: RoundParts, parameters: dict[str, Any]) -> bool:
    for needed in parts.values():
        parameters |= needed
    row = await (await conn.execute(round_statement(fence, tuple(parts)), parameters)).fetchone()
    return row is not None and bool(row["held"])


@cache
def round_statement(fence: LiteralString, parts: tuple[RoundPart, ...]) -> LiteralString:
    """Returns the statement of a round that has these parts to write. The other parts are left out, and so is the
    indentation: psycopg prepares only statements that are not long."""
    written = "".join(f", {part.name} AS ({part.statement})" for part in parts)
    source = "fence, called" if any(part.name == "called" for part in parts) else "fence"
    statement = f"WITH fence AS MATERIALIZED ({fence}){written} SELECT held FROM {source}"  # noqa: S608  our own files
    return "\n".join(line.strip() for line in statement.split("\n"))
