"""Pages and counts of jobs. Jobs that wait to be claimed come before all others."""

from __future__ import annotations

from collections import Counter, defaultdict
from datetime import datetime, timedelta

from geomill.api import cursors
from geomill.contract.jobs import (
    QUEUED,
    HistogramOptions,
    HistogramPart,
    JobFilters,
    JobHistogram,
    JobListOptions,
    JobPage,
    JobSummary,
    WorkflowCounts,
)
from geomill.domain.states import JobStatus
from geomill.errors import InputError, Problem
from geomill.store import assets, job_lists
from geomill.store.job_lists import JobFilter
from geomill.store.pool import Connection

WAITING, CLAIMED = "waiting", "claimed"
USUAL_SPAN = timedelta(hours=2)
MOST_WORKFLOWS = 50


def job_filter(filters: JobFilters) -> JobFilter:
    """Return the filter of claimed jobs. Raises `InputError` for a time range that has no moment in it."""
    if filters.created_from and filters.created_to and filters.created_from >= filters.created_to:
        problem = Problem(
            "created_to",
            f"{filters.created_to.isoformat()} is not later than created_from",
            "give a later time, or leave one of them out",
        )
        raise InputError(f"the filters are wrong: {problem}", problems=[problem])
    others = {name: getattr(filters, name) for name in JobFilters.model_fields if name != "status"}
    return JobFilter(statuses=tuple(JobStatus(name) for name in JobStatus if name in filters.status), **others)


def asks_for_waiting(filters: JobFilters, chosen: JobFilter) -> bool:
    return (not filters.status or QUEUED in filters.status) and job_lists.lists_waiting(chosen)


def asks_for_claimed(filters: JobFilters) -> bool:
    return set(filters.status) != {QUEUED}


async def page(conn: Connection, job_queue: str, options: JobListOptions) -> JobPage:
    """Return a page of jobs with the names of their assets."""
    listed = await _page(conn, job_queue, options)
    names = await assets.item_ids(conn, (job.asset_id for job in listed.jobs if job.asset_id))
    named = [job.model_copy(update={"asset_name": names.get(job.asset_id or "")}) for job in listed.jobs]
    return JobPage(jobs=named, next_cursor=listed.next_cursor)


async def _page(conn: Connection, job_queue: str, options: JobListOptions) -> JobPage:
    chosen = job_filter(options)
    section, moment, last = cursors.unpack(options.cursor, str, str, str) if options.cursor else (WAITING, "", "")
    if section not in (WAITING, CLAIMED):
        raise cursors.unreadable()
    jobs: list[JobSummary] = []
    if section == WAITING and asks_for_waiting(options, chosen):
        listed = await job_lists.waiting(conn, job_queue, chosen, limit=options.limit, before_id=last or None)
        jobs = [JobSummary.waiting(message) for message in listed.messages]
        if listed.end:
            return JobPage(jobs=jobs, next_cursor=cursors.pack(WAITING, "", listed.end))
    if not asks_for_claimed(options):
        return JobPage(jobs=jobs)
    if len(jobs) == options.limit:
        return JobPage(jobs=jobs, next_cursor=cursors.pack(CLAIMED, "", ""))
    before = (cursors.moment(moment), last) if moment and section == CLAIMED else None
    claimed = await job_lists.page(conn, chosen, limit=options.limit - len(jobs), before=before)
    return JobPage(jobs=[*jobs, *map(JobSummary.of, claimed.jobs)], next_cursor=_cursor(claimed.end))


def _cursor(end: tuple[datetime, str] | None) -> str | None:
    return cursors.pack(CLAIMED, end[0].isoformat(), end[1]) if end else None


async def counts(conn: Connection, job_queue: str, filters: JobFilters) -> tuple[dict[str, int], list[str]]:
    """Return the number of jobs of each status, and the statuses of which there may be more."""
    chosen = job_filter(filters)
    numbers: dict[str, int] = {}
    at_least: list[str] = []
    if not filters.status or QUEUED in filters.status:
        waiting, more = 0, False
        if job_lists.lists_waiting(chosen):
            waiting, more = await job_lists.count_waiting(conn, job_queue, chosen)
        numbers[QUEUED] = waiting
        at_least += [QUEUED] if more else []
    if asks_for_claimed(filters):
        claimed = await job_lists.counts(conn, chosen)
        numbers |= claimed.jobs
        at_least += claimed.at_least
    return numbers, at_least


async def histogram(conn: Connection, options: HistogramOptions, now: datetime) -> JobHistogram:
    end = options.created_to or now
    begin = options.created_from or end - USUAL_SPAN
    chosen = job_filter(options.model_copy(update={"created_from": begin, "created_to": end}))
    cells, complete_from = await job_lists.histogram(conn, chosen, options.parts)
    width = (end - begin) / options.parts
    by_part: defaultdict[int, Counter[str]] = defaultdict(Counter)
    by_workflow: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for cell in cells:
        by_part[cell.part][cell.status] += cell.jobs
        if complete_from is None or begin + width * cell.part >= complete_from:
            by_workflow[cell.workflow_id][cell.status] += cell.jobs
    ranked = sorted(by_workflow.items(), key=lambda entry: (-entry[1].total(), entry[0]))[:MOST_WORKFLOWS]
    return JobHistogram(
        created_from=begin,
        created_to=end,
        parts=[HistogramPart(begins_at=begin + width * part, counts=by_part[part]) for part in range(options.parts)],
        workflows=[WorkflowCounts(workflow_id=name, counts=counts) for name, counts in ranked],
        more=complete_from is not None,
        complete_from=complete_from,
    )
