"""Follows a job: a live table on a terminal, one line for each change elsewhere."""

from __future__ import annotations

import time
from collections.abc import Iterator

import typer
from rich.console import Console
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table

from geomill.client import Client
from geomill.contract.jobs import JobDetails, NodeView
from geomill.domain.states import JOB_MACHINE, NODE_MACHINE, NodeStatus

FASTEST, SLOWEST = 0.05, 0.5
MOST_ROWS = 30
ENDED = frozenset(status.value for status in JOB_MACHINE.terminal)
ENDED_NODES = frozenset(status.value for status in NODE_MACHINE.terminal)
_MARKS = {
    NodeStatus.PENDING.value: ("·", "dim"),
    NodeStatus.READY.value: ("·", "dim"),
    NodeStatus.DISPATCHED.value: ("○", "yellow"),
    NodeStatus.RUNNING.value: ("●", "cyan"),
    NodeStatus.COMPLETED.value: ("✓", "green"),
    NodeStatus.FAILED.value: ("✗", "red"),
    NodeStatus.SKIPPED.value: ("-", "dim"),
    NodeStatus.CANCELLED.value: ("-", "yellow"),
}


def watch(client: Client, job_id: str, *, quiet: bool) -> JobDetails:
    """Follow a job until it has ended and return it."""
    console = Console(stderr=True)
    if quiet or not console.is_terminal:
        _watch_lines(client, job_id, quiet=quiet)
    else:
        with Live(console=console, refresh_per_second=12, transient=False) as live:
            for job in _changes(client, job_id):
                live.update(_table(job))
    return client.jobs.get(job_id)


def _watch_lines(client: Client, job_id: str, *, quiet: bool) -> None:
    printed: dict[str, str] = {}
    waits: list[str] = []
    for job in _changes(client, job_id):
        if quiet:
            continue
        for reason in job.progress.waits:
            if reason not in waits:
                typer.echo(f"  {reason}", err=True)
        waits = job.progress.waits
        for node in job.nodes:
            if printed.get(node.node_id) != node.status and node.status != NodeStatus.PENDING.value:
                typer.echo(_line(node), err=True)
            printed[node.node_id] = node.status


def _changes(client: Client, job_id: str) -> Iterator[JobDetails]:
    """Yield the job repeatedly until it has ended."""
    pause = FASTEST
    while True:
        job = client.jobs.get(job_id, outputs=False)
        yield job
        if job.status in ENDED:
            return
        time.sleep(pause)
        pause = min(pause * 1.2, SLOWEST)


def _line(node: NodeView) -> str:
    mark, _ = _MARKS[node.status]
    retries = f" (attempt {node.attempt})" if node.attempt > 1 else ""
    return f"{mark} {node.node_id} {node.status}{retries}" + (f": {node.error}" if node.error else "")


def _table(job: JobDetails) -> Table:
    title = f"{job.workflow_id}  {job.job_id}  {_state(job)}"
    table = Table(title=title, title_justify="left", box=None, show_header=False, min_width=len(title))
    for node in job.nodes[:MOST_ROWS]:
        mark, style = _MARKS[node.status]
        table.add_row(f"[{style}]{mark}[/]", node.node_id, node.status, _bar(node), _detail(node))
    if len(job.nodes) > MOST_ROWS:
        table.add_row("", f"… {len(job.nodes) - MOST_ROWS} more")
    return table


def _state(job: JobDetails) -> str:
    status = "paused" if job.paused else job.status
    seconds = job.progress.remaining_seconds
    return f"{status}  {job.progress.fraction:.0%}" + (f"  {_duration(seconds)} to go" if seconds is not None else "")


def _duration(seconds: float) -> str:
    minutes, seconds_left = divmod(round(max(seconds, 0)), 60)
    if minutes >= 60:
        return f"{minutes // 60} h {minutes % 60} min"
    return f"{minutes} min {seconds_left} s" if minutes else f"{seconds_left} s"


def _bar(node: NodeView) -> ProgressBar | str:
    if node.status in ENDED_NODES or node.progress is None:
        return ""
    return ProgressBar(total=1.0, completed=node.progress, width=24)


def _detail(node: NodeView) -> str:
    if node.items:
        failed = f", {node.items.failed} failed" if node.items.failed else ""
        message = f"; {node.message}" if node.message and node.status not in ENDED_NODES else ""
        return f"{node.items.completed} of {node.items.total} items{failed}{message}"
    return node.error or node.message
