"""Follows a job: a live table on a terminal, one line for each change elsewhere."""

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
    """Follow a job until it has ended and return it. A duplicate submission follows the original job."""
    console = Console(stderr=True)
    order = {node_id: place for place, node_id in enumerate(workflow.nodes)}
    if quiet or not console.is_terminal:
        return await _watch_lines(pool, message, order, quiet=quiet)
    with Live(console=console, refresh_per_second=12, transient=False) as live:
        async for progress in _changes(pool, message):
            live.update(_table(workflow, progress, order))
    return progress.job


async def _watch_lines(pool: Pool, message: JobQueueMessage, order: dict[str, int], *, quiet: bool) -> Job:
    printed: dict[str, NodeStatus] = {}
    waits: tuple[str, ...] = ()
    async for progress in _changes(pool, message):
        for reason in progress.waits:
            if not quiet and reason not in waits:
                typer.echo(f"  {reason}", err=True)
        waits = progress.waits
        for node in _sorted(progress.nodes, order):
            if not quiet and printed.get(node.node_id) is not node.status and node.status is not NodeStatus.PENDING:
                typer.echo(_line(node), err=True)
            printed[node.node_id] = node.status
    return progress.job


async def _changes(pool: Pool, message: JobQueueMessage) -> AsyncIterator[JobProgress]:
    """Yield the job's progress repeatedly until the job has ended."""
    pause = FASTEST
    while True:
        async with pool.connection() as conn:
            progress = await progress_store.find(conn, message.job_id)
            if progress is None and message.idempotency_key:
                original = await job_store.by_idempotency_key(conn, message.idempotency_key)
                progress = await progress_store.find(conn, original.job_id) if original else None
        if progress:
            yield progress
            if progress.job.status in JOB_MACHINE.terminal:
                return
        await asyncio.sleep(pause)
        pause = min(pause * 1.2, SLOWEST)


def _sorted(nodes: Iterable[NodeProgress], order: dict[str, int]) -> list[NodeProgress]:
    return sorted(nodes, key=lambda node: order.get(node.node_id, len(order)))


def _line(node: NodeProgress) -> str:
    mark, _ = _MARKS[node.status]
    retries = f" (attempt {node.attempt})" if node.attempt > 1 else ""
    return f"{mark} {node.node_id} {node.status.value}{retries}" + (f": {node.error}" if node.error else "")


def _table(workflow: Workflow, progress: JobProgress, order: dict[str, int]) -> Table:
    title = f"{workflow.name}  {progress.job.job_id}  {_state(progress)}"
    table = Table(title=title, title_justify="left", box=None, show_header=False, min_width=len(title))
    for node in _sorted(progress.nodes, order)[:MOST_ROWS]:
        mark, style = _MARKS[node.status]
        table.add_row(f"[{style}]{mark}[/]", node.node_id, node.status.value, _bar(node), _detail(node))
    if len(progress.nodes) > MOST_ROWS:
        table.add_row("", f"… {len(progress.nodes) - MOST_ROWS} more")
    return table


def _state(progress: JobProgress) -> str:
    status = (
        "paused"
        if progress.job.paused_at and progress.job.status not in JOB_MACHINE.terminal
        else progress.job.status.value
    )
    remaining = progress.remaining(datetime.now(UTC))
    return f"{status}  {progress.fraction:.0%}" + (f"  {_duration(remaining)} to go" if remaining is not None else "")


def _duration(seconds: float) -> str:
    minutes, seconds_left = divmod(round(max(seconds, 0)), 60)
    return (
        f"{minutes // 60} h {minutes % 60} min"
        if minutes >= 60
        else f"{minutes} min {seconds_left} s"
        if minutes
        else f"{seconds_left} s"
    )


def _bar(node: NodeProgress) -> ProgressBar | str:
    if node.terminal or node.fraction is None:
        return ""
    return ProgressBar(total=1.0, completed=node.fraction, width=24)


def _detail(node: NodeProgress) -> str:
    if node.items_total:
        failed = f", {node.items_failed} failed" if node.items_failed else ""
        message = f"; {node.message}" if node.message and not node.terminal else ""
        return f"{node.items_completed} of {node.items_total} items{failed}{message}"
    return node.error or node.message
