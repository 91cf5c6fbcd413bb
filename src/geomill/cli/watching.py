"""Follows a job on the terminal: a live table where there is one, a line per change where there is none."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from datetime import UTC, datetime

import typer
from rich.console import Console
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table

from geomill.domain.engine.job import Job
from geomill.domain.engine.message import JobQueueMessage
from geomill.domain.engine.workflow import Workflow
from geomill.domain.states import JOB_MACHINE, NodeStatus
from geomill.store import jobs as job_store
from geomill.store import progress as progress_store
from geomill.store.pool import Pool
from geomill.store.progress import JobProgress, NodeProgress

FASTEST, SLOWEST = 0.05, 0.5
MOST_ROWS = 30
_MARKS = {
    NodeStatus.PENDING: ("·", "dim"),
    NodeStatus.READY: ("·", "dim"),
    NodeStatus.DISPATCHED: ("○", "yellow"),
    NodeStatus.RUNNING: ("●", "cyan"),
    NodeStatus.COMPLETED: ("✓", "green"),
    NodeStatus.FAILED: ("✗", "red"),
    NodeStatus.SKIPPED: ("-", "dim"),
    NodeStatus.CANCELLED: ("-", "yellow"),
}


async def watch(pool: Pool, workflow: Workflow, message: JobQueueMessage, *, quiet: bool) -> Job:
    """Until the job has ended. A duplicate submission follows the job that was there first."""
    console = Console(stderr=True)
    order = {node_id: place for place, node_id in enumerate(workflow.nodes)}
    if quiet or not console.is_terminal:
        return await _watch_lines(pool, message, order, quiet=quiet)
    with Live(console=console, refresh_per_second=12, transient=False) as live:
        async for found in _changes(pool, message):
            live.update(_table(workflow, found, order))
    return found.job


async def _watch_lines(pool: Pool, message: JobQueueMessage, order: dict[str, int], *, quiet: bool) -> Job:
    seen: dict[str, NodeStatus] = {}
    waits: tuple[str, ...] = ()
    async for found in _changes(pool, message):
        for reason in found.waits:
            if not quiet and reason not in waits:
                typer.echo(f"  {reason}", err=True)
        waits = found.waits
        for node in _sorted(found.nodes, order):
            if not quiet and seen.get(node.node_id) is not node.status and node.status is not NodeStatus.PENDING:
                typer.echo(_line(node), err=True)
            seen[node.node_id] = node.status
    return found.job


async def _changes(pool: Pool, message: JobQueueMessage) -> AsyncIterator[JobProgress]:
    """The job's progress again and again; the last one has ended."""
    pause = FASTEST
    while True:
        async with pool.connection() as conn:
            found = await progress_store.find(conn, message.job_id)
            if found is None and message.idempotency_key:
                first = await job_store.by_idempotency_key(conn, message.idempotency_key)
                found = await progress_store.find(conn, first.job_id) if first else None
        if found:
            yield found
            if found.job.status in JOB_MACHINE.terminal:
                return
        await asyncio.sleep(pause)
        pause = min(pause * 1.2, SLOWEST)


def _sorted(nodes: Iterable[NodeProgress], order: dict[str, int]) -> list[NodeProgress]:
    return sorted(nodes, key=lambda node: order.get(node.node_id, len(order)))


def _line(node: NodeProgress) -> str:
    mark, _ = _MARKS[node.status]
    retries = f" (attempt {node.attempt})" if node.attempt > 1 else ""
    return f"{mark} {node.node_id} {node.status.value}{retries}" + (f": {node.error}" if node.error else "")


def _table(workflow: Workflow, found: JobProgress, order: dict[str, int]) -> Table:
    title = f"{workflow.name}  {found.job.job_id}  {_state(found)}"
    table = Table(title=title, title_justify="left", box=None, show_header=False, min_width=len(title))
    for node in _sorted(found.nodes, order)[:MOST_ROWS]:
        mark, style = _MARKS[node.status]
        table.add_row(f"[{style}]{mark}[/]", node.node_id, node.status.value, _bar(node), _detail(node))
    if len(found.nodes) > MOST_ROWS:
        table.add_row("", f"… {len(found.nodes) - MOST_ROWS} more")
    return table


def _state(found: JobProgress) -> str:
    status = (
        "paused" if found.job.paused_at and found.job.status not in JOB_MACHINE.terminal else found.job.status.value
    )
    remaining = found.remaining(datetime.now(UTC))
    return f"{status}  {found.fraction:.0%}" + (f"  {_duration(remaining)} to go" if remaining is not None else "")


def _duration(seconds: float) -> str:
    minutes, rest = divmod(round(max(seconds, 0)), 60)
    return (
        f"{minutes // 60} h {minutes % 60} min"
        if minutes >= 60
        else f"{minutes} min {rest} s"
        if minutes
        else f"{rest} s"
    )


def _bar(node: NodeProgress) -> ProgressBar | str:
    if node.terminal or node.fraction is None:
        return ""
    return ProgressBar(total=1.0, completed=node.fraction, width=24)


def _detail(node: NodeProgress) -> str:
    if node.items_total:
        failed = f", {node.items_failed} failed" if node.items_failed else ""
        said = f"; {node.message}" if node.message and not node.terminal else ""
        return f"{node.items_completed} of {node.items_total} items{failed}{said}"
    return node.error or node.message
