"""Lists, counts and searches of jobs, whatever the number of jobs.

A list reads jobs in the order of one index, the newest first, and applies the filters that this index does not serve to
the jobs that it read. It reads at most `EXAMINED` jobs for a page. If these do not fill the page, the page is short and
says where the next one begins, so every request has a bounded cost. Jobs that wait to be claimed have no row yet: they
are messages, and are listed before all others.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime
from typing import Any, LiteralString

from pydantic import ValidationError

from geomill.domain.engine.attendance import unknown_queue
from geomill.domain.engine.job import Job
from geomill.domain.engine.message import JobQueueMessage
from geomill.domain.states import JobStatus
from geomill.sql import queries
from geomill.store.pool import Connection

EXAMINED = 10_000
"""The most jobs that a page reads, of each status that it asks for."""
COUNTED = 20_000
"""The most jobs that are counted, of each status."""
WITH_ERROR = (JobStatus.FAILED, JobStatus.CANCELLED)
OPEN = (JobStatus.PENDING, JobStatus.RUNNING)

Place = tuple[datetime, str]
"""Creation time and id of a job: its place in the list."""


@dataclass(frozen=True, slots=True)
class JobFilter:
    statuses: tuple[JobStatus, ...] = ()
    """Empty for every status."""
    workflow_id: str | None = None
    asset_id: str | None = None
    submitted_by: str | None = None
    correlation_id: str | None = None
    created_from: datetime | None = None
    created_to: datetime | None = None
    error: str | None = None
    """A part of the error message, in any case. Only failed and cancelled jobs have one."""
    parked: bool | None = None
    paused: bool | None = None
    """Whether the job is paused and has not ended."""

    def matches(self, job: Job) -> bool:
        """Return whether a job passes the filter, by the same rules as the statements."""
        names = ("workflow_id", "asset_id", "submitted_by", "correlation_id")
        return (
            all(getattr(self, name) in (None, getattr(job, name)) for name in names)
            and (not self.statuses or job.status in self.statuses)
            and (self.created_from is None or job.created_at >= self.created_from)
            and (self.created_to is None or job.created_at < self.created_to)
            and (self.error is None or self.error.lower() in (job.error_message or "").lower())
            and (self.parked is None or self.parked == (job.parked_at is not None))
            and (self.paused is None or self.paused == (job.paused_at is not None and job.status in OPEN))
        )


@dataclass(frozen=True, slots=True)
class _Question:
    """The source of a statement, and the parameters of source and judgement."""

    source: LiteralString
    first: dict[str, Any]
    covered: bool
    """Whether the source serves all filters, so that every row that it reads passes."""
    parameters: dict[str, Any] = field(default_factory=dict)

    def statement(self, question: LiteralString) -> LiteralString:
        judgement = queries("job_lists").judgement
        return f"WITH examined AS ({self.source}), judged AS ({judgement}) {question}"

    def asked(self, examined: int, before: Place | None = None, **more: Any) -> dict[str, Any]:
        moment, job_id = before or (None, None)
        return {**self.parameters, **self.first, "examined": examined, "before": moment, "before_id": job_id, **more}


_NOTHING_FIRST: dict[str, Any] = {
    "first_asset": None,
    "first_correlation": None,
    "first_submitter": None,
    "first_workflow": None,
    "first_statuses": None,
}
_SELECTIVE = {
    "asset_id": "first_asset",
    "correlation_id": "first_correlation",
    "submitted_by": "first_submitter",
}
"""Filters with an index of their own that usually leave few jobs, those that leave the fewest first."""


def _question(chosen: JobFilter, *, by_status: bool = False) -> _Question:
    """Choose the index to read by: that of the filter that usually leaves the fewest jobs. `by_status` asks for a line
    of each status where the filter allows it."""
    parameters = asdict(chosen)
    active = {name for name, value in parameters.items() if value not in (None, ())} - {"created_from", "created_to"}
    parameters["statuses"] = [status.value for status in chosen.statuses] or None
    if chosen.parked:
        return _Question(queries("job_lists").newest_parked, _NOTHING_FIRST, active == {"parked"}, parameters)
    for name, first in _SELECTIVE.items():
        if parameters[name]:
            served = _NOTHING_FIRST | {first: parameters[name]}
            return _Question(queries("job_lists").newest, served, active <= {name}, parameters)
    if chosen.statuses or chosen.error is not None or chosen.paused or by_status:
        statuses = chosen.statuses or _possible(chosen)
        served = _NOTHING_FIRST | {
            "first_statuses": [status.value for status in statuses],
            "first_workflow": chosen.workflow_id,
        }
        covered = active <= {"statuses", "workflow_id"}
        return _Question(queries("job_lists").newest_of_each_status, served, covered, parameters)
    served = _NOTHING_FIRST | {"first_workflow": chosen.workflow_id}
    return _Question(queries("job_lists").newest, served, active <= {"workflow_id"}, parameters)


def _possible(chosen: JobFilter) -> tuple[JobStatus, ...]:
    """Return the states in which a job can pass the filter."""
    if chosen.paused:
        return OPEN
    return WITH_ERROR if chosen.error is not None else tuple(JobStatus)


@dataclass(frozen=True, slots=True)
class JobListPage:
    jobs: list[Job]
    end: Place | None
    """Where the next page begins; None if this is the last."""


async def page(conn: Connection, chosen: JobFilter, *, limit: int, before: Place | None = None) -> JobListPage:
    """Return claimed jobs, the newest first. The page is short if `EXAMINED` jobs did not fill it."""
    question = _question(chosen)
    examined = limit + 1 if question.covered else max(EXAMINED, limit + 1)
    parameters = question.asked(examined, before, limit=limit + 1)
    cursor = await conn.execute(question.statement(queries("job_lists").page), parameters, prepare=False)
    jobs = [Job.from_row(row) for row in await cursor.fetchall()]
    if len(jobs) > limit:
        last = jobs[limit - 1]
        return JobListPage(jobs[:limit], (last.created_at, last.job_id))
    if question.covered:
        return JobListPage(jobs, None)
    cursor = await conn.execute(question.statement(queries("job_lists").edges), parameters, prepare=False)
    rows = await cursor.fetchall()
    edge = max(((row["created_at"], row["job_id"]) for row in rows if row["examined"] >= examined), default=None)
    # Jobs behind the edge come on the next page, which reads all lines from there.
    return JobListPage([job for job in jobs if edge is None or (job.created_at, job.job_id) >= edge], edge)


async def of_ids(conn: Connection, job_ids: Sequence[str]) -> list[Job]:
    """Return these jobs, without their inputs and results, the oldest first."""
    if not job_ids:
        return []
    cursor = await conn.execute(queries("job_lists").of_ids, {"job_ids": list(job_ids)})
    return [Job.from_row(row) for row in await cursor.fetchall()]


@dataclass(frozen=True, slots=True)
class JobCounts:
    jobs: dict[str, int]
    """The number of jobs of each status."""
    at_least: tuple[str, ...]
    """The statuses of which there may be more than were counted."""


async def counts(conn: Connection, chosen: JobFilter) -> JobCounts:
    """Count claimed jobs by status, of each status at most the newest `COUNTED`."""
    question = _question(chosen, by_status=True)
    statement = question.statement(queries("job_lists").counts)
    cursor = await conn.execute(statement, question.asked(COUNTED), prepare=False)
    rows = await cursor.fetchall()
    statuses = [status.value for status in chosen.statuses or JobStatus]
    by_status = dict.fromkeys(statuses, 0) | {row["status"]: row["jobs"] for row in rows if row["status"] in statuses}
    if question.first["first_statuses"] is None:  # one line for all statuses
        cut = sum(row["examined"] for row in rows) >= COUNTED
        return JobCounts(by_status, tuple(by_status) if cut else ())
    return JobCounts(by_status, tuple(row["status"] for row in rows if row["examined"] >= COUNTED))


@dataclass(frozen=True, slots=True)
class HistogramCell:
    """Jobs of one workflow and status that were created in one part of the time."""

    part: int
    workflow_id: str
    status: str
    jobs: int


async def histogram(conn: Connection, chosen: JobFilter, parts: int) -> tuple[list[HistogramCell], datetime | None]:
    """Return how many jobs were created in each part of the filter's time range. Of each status at most the newest
    `COUNTED` are read: if there may be more, also return the time since which all are counted."""
    assert chosen.created_from is not None
    assert chosen.created_to is not None
    question = _question(chosen, by_status=True)
    times: dict[str, Any] = {
        "from_epoch": chosen.created_from.timestamp(),
        "to_epoch": chosen.created_to.timestamp(),
        "parts": parts,
    }
    statement = question.statement(queries("job_lists").histogram)
    rows = await (await conn.execute(statement, question.asked(COUNTED, **times), prepare=False)).fetchall()
    examined, oldest = Counter[str](), dict[str, datetime]()
    for row in rows:
        examined[row["line"]] += row["examined"]
        oldest[row["line"]] = min(row["oldest"], oldest.get(row["line"], row["oldest"]))
    cells = [HistogramCell(row["part"], row["workflow_id"], row["status"], row["jobs"]) for row in rows if row["jobs"]]
    return cells, max((oldest[line] for line, number in examined.items() if number >= COUNTED), default=None)


@dataclass(frozen=True, slots=True)
class WaitingPage:
    messages: list[JobQueueMessage]
    end: str | None
    """The id after which the next page begins; None if this is the last."""


def lists_waiting(chosen: JobFilter) -> bool:
    """Return whether a job without a row can pass the filter. It has no error, and is neither parked nor paused."""
    return chosen.error is None and not chosen.parked and not chosen.paused


async def waiting(
    conn: Connection, job_queue: str, chosen: JobFilter, *, limit: int, before_id: str | None = None
) -> WaitingPage:
    """Return submissions that nobody has claimed, the newest first."""
    parameters = _of_waiting(job_queue, chosen, max(EXAMINED, limit + 1), before_id) | {"limit": limit + 1}
    statement = _waiting_statement(queries("job_lists").waiting_page)
    rows = await (await conn.execute(statement, parameters, prepare=False)).fetchall()
    if len(rows) > limit:
        return WaitingPage(_messages(rows[:limit]), rows[limit - 1]["message_id"])
    statement = _waiting_statement(queries("job_lists").waiting_edges)
    edges = await (await conn.execute(statement, parameters, prepare=False)).fetchall()
    edge = max((row["message_id"] for row in edges if row["examined"] >= parameters["examined"]), default=None)
    return WaitingPage(_messages([row for row in rows if edge is None or row["message_id"] >= edge]), edge)


async def count_waiting(conn: Connection, job_queue: str, chosen: JobFilter) -> tuple[int, bool]:
    """Return the number of submissions that nobody has claimed, and whether there may be more of them."""
    parameters = _of_waiting(job_queue, chosen, COUNTED, None)
    statement = _waiting_statement(queries("job_lists").waiting_counts)
    rows = await (await conn.execute(statement, parameters, prepare=False)).fetchall()
    return sum(row["jobs"] for row in rows), any(row["examined"] >= COUNTED for row in rows)


def _waiting_statement(question: LiteralString) -> LiteralString:
    source, judgement = queries("job_lists").waiting, queries("job_lists").waiting_judgement
    return f"WITH examined AS ({source}), judged AS ({judgement}) {question}"


def _of_waiting(job_queue: str, chosen: JobFilter, examined: int, before_id: str | None) -> dict[str, Any]:
    queue_names = [job_queue, unknown_queue(job_queue)]
    of_rows = ("statuses", "error", "parked", "paused")
    parameters = {name: value for name, value in asdict(chosen).items() if name not in of_rows}
    return {**parameters, "queue_names": queue_names, "examined": examined, "before_id": before_id}


def _messages(rows: Sequence[dict[str, Any]]) -> list[JobQueueMessage]:
    """Return the submissions that can be read. The orchestrator that claims another makes a dead letter of it."""
    messages = []
    for row in rows:
        try:
            message = JobQueueMessage.received(row["body"], row["enqueued_at"])
        except ValidationError:
            continue
        messages.append(message)
    return messages
