"""`geomill jobs`: submit jobs, list them, and show one with its log."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Annotated, Any

import typer

from geomill.cli import context
from geomill.cli.local import local_roles, missing_roles
from geomill.domain.engine.job import Job
from geomill.domain.engine.log import TaskLog
from geomill.domain.engine.message import JobQueueMessage
from geomill.domain.ids import SINGLE
from geomill.domain.states import JobStatus
from geomill.settings import Settings
from geomill.store import attendance
from geomill.store import events as event_store
from geomill.store import jobs as job_store
from geomill.store import logs as log_store
from geomill.store import progress as progress_store
from geomill.store.pool import open_pool

app = typer.Typer(no_args_is_help=True, help="Submit, follow and control jobs.")

Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]


@app.command()
def submit(
    workflow_id: Annotated[str, typer.Argument(metavar="WORKFLOW", help="Id of the workflow.")],
    inputs: Annotated[
        list[str] | None, typer.Option("--input", "-i", metavar="NAME=VALUE", help="An input; may be repeated.")
    ] = None,
    inputs_file: Annotated[Path | None, typer.Option("--inputs", metavar="FILE", help="JSON file with inputs.")] = None,
    priority: Annotated[int, typer.Option(min=0, max=10, help="Priority; a higher number runs sooner.")] = 0,
    idempotency_key: Annotated[
        str | None, typer.Option(help="A repeated submission with this key returns the same job.")
    ] = None,
    correlation_id: Annotated[str | None, typer.Option(help="Your own id, to find the job by.")] = None,
    callback_url: Annotated[str | None, typer.Option(help="URL to call when the job has ended.")] = None,
    wait: Annotated[bool, typer.Option("--wait", help="Show progress, then print the result.")] = False,
    as_json: Json = False,
) -> None:
    """Submit a job. With --wait, this process runs an orchestrator and a worker if none run elsewhere."""
    from geomill.cli.inputs import inputs_from_file, inputs_from_options
    from geomill.cli.watching import watch
    from geomill.engine.submit import check_plain
    from geomill.engine.submit import submit as submit_job

    registry = context.handlers()
    workflow_registry = context.workflow_registry(registry)
    workflow = workflow_registry.get(workflow_id)
    message = JobQueueMessage(
        workflow_id=workflow_id,
        input_params={**inputs_from_file(inputs_file), **inputs_from_options(workflow, inputs or [])},
        priority=priority,
        idempotency_key=idempotency_key,
        correlation_id=correlation_id,
        callback_url=callback_url,
    )
    check_plain(workflow_registry, message)  # before a database is started or created
    settings = context.settings()

    async def work(url: str) -> Job | None:
        async with open_pool(url, size=6, hot=True) as pool:
            async with pool.connection() as conn:
                await submit_job(conn, workflow_registry, settings.queue.job_queue_name, message)
            if not wait:
                _print_queued(message, unattended=bool(await missing_roles(pool)), as_json=as_json)
                return None
            loader_url = context.loader_database_url()
            async with local_roles(
                url, pool, settings.queue, workflow_registry, registry, context.storage(), loader_url
            ):
                return await watch(pool, workflow, message, quiet=as_json)

    with context.ready_database() as url:
        job = asyncio.run(work(url))
    if job:
        print_outcome(job, as_json=as_json)


@app.command("list")
def list_jobs(
    status: Annotated[JobStatus | None, typer.Option(help="Only jobs in this state.")] = None,
    workflow_id: Annotated[str | None, typer.Option("--workflow", help="Only jobs of this workflow.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=1000, help="Number of jobs to list.")] = 20,
    as_json: Json = False,
) -> None:
    """List the latest jobs."""

    async def work(url: str) -> list[Job]:
        async with open_pool(url, size=1) as pool, pool.connection() as conn:
            return await job_store.recent(conn, limit=limit, status=status, workflow_id=workflow_id)

    with context.ready_database() as url:
        jobs = asyncio.run(work(url))
    if as_json:
        typer.echo(json.dumps([job.model_dump(mode="json") for job in jobs], indent=2))
    elif jobs:
        _print_table(jobs)
    else:
        typer.echo("There are no such jobs. Submit one with 'geomill jobs submit hello_world --wait'.")


@app.command()
def show(
    job_id: Annotated[str, typer.Argument(metavar="JOB", help="Id of the job.")],
    events: Annotated[bool, typer.Option("--events", help="Also show the job's events.")] = False,
    as_json: Json = False,
) -> None:
    """Show one job with its nodes."""
    settings = context.settings()

    async def work(url: str) -> dict[str, Any]:
        async with open_pool(url, size=1) as pool, pool.connection() as conn:
            return await _describe(conn, settings, job_id, with_events=events)

    with context.ready_database() as url:
        description = asyncio.run(work(url))
    typer.echo(json.dumps(description, indent=2) if as_json else _readable(description))


@app.command()
def logs(
    job_id: Annotated[str, typer.Argument(metavar="JOB", help="Id of the job.")],
    node_id: Annotated[str | None, typer.Option("--node", help="Only lines of this node.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=100_000, help="Number of lines at most.")] = 1000,
    as_json: Json = False,
) -> None:
    """Print the log lines of a job's handlers."""

    async def work(url: str) -> tuple[Job, list[TaskLog]]:
        async with open_pool(url, size=1) as pool, pool.connection() as conn:
            job = await job_store.get(conn, job_id)
            return job, await log_store.of_job(conn, job_id, node_id=node_id, limit=limit)

    with context.ready_database() as url:
        job, lines = asyncio.run(work(url))
    if job.details_gone:
        typer.echo(job.details_gone, err=True)
    if as_json:
        typer.echo(json.dumps([line.model_dump(mode="json") for line in lines], indent=2))
        return
    for line in lines:
        place = line.node_id if line.item_index == SINGLE else f"{line.node_id}[{line.item_index}]"
        typer.echo(f"{line.created_at:%H:%M:%S}  {line.level:<7}  {place}  {line.message}")


async def _describe(conn: Any, settings: Settings, job_id: str, *, with_events: bool) -> dict[str, Any]:
    progress = await progress_store.find(conn, job_id)
    if progress is None:
        waiting = await job_store.waiting(conn, settings.queue.job_queue_name, job_id)
        if waiting is None:
            await job_store.get(conn, job_id)  # raises, with the remedy
        reason = await attendance.why_queued(conn, settings.queue.job_queue_name, job_id)
        return {
            "job_id": job_id,
            "status": "queued",
            "workflow_id": waiting.workflow_id if waiting else None,
            "waits": [reason] if reason else [],
        }
    description = progress.job.model_dump(mode="json") | {"nodes": [_node_json(node) for node in progress.nodes]}
    description["waits"] = list(progress.waits)
    description["note"] = progress.job.details_gone
    if with_events:
        description["events"] = [event.model_dump(mode="json") for event in await event_store.of_job(conn, job_id)]
    return description


def _node_json(node: progress_store.NodeProgress) -> dict[str, Any]:
    return {
        "node_id": node.node_id,
        "status": node.status.value,
        "attempt": node.attempt,
        "error": node.error,
        "output": node.output,
        "items": {"total": node.items_total, "completed": node.items_completed, "failed": node.items_failed},
    }


def _readable(description: dict[str, Any]) -> str:
    lines = [f"{description['job_id']}  {description['workflow_id']}  {description['status']}"]
    if description.get("error_message"):
        lines.append(f"  error: {description['error_message']}")
    if description.get("parked_at"):
        lines.append(f"  parked since {description['parked_at']}: {description['parked_reason']}")
        lines.append(f"  fix the cause, then run 'geomill jobs release {description['job_id']}'")
    if description.get("note"):
        lines.append(f"  {description['note']}")
    lines += [f"  {reason}" for reason in description["waits"]]
    for node in description.get("nodes", []):
        items = f"  {node['items']['completed']} of {node['items']['total']} items" if node["items"]["total"] else ""
        lines.append(
            f"  {node['status']:<11} {node['node_id']}{items}" + (f"  {node['error']}" if node["error"] else "")
        )
    lines += [f"  {e['created_at']}  {e['event_type']}  {e['node_id'] or ''}" for e in description.get("events", [])]
    if description.get("result_data") is not None:
        lines.append("  result: " + json.dumps(description["result_data"], ensure_ascii=False))
    return "\n".join(lines)


def _print_queued(message: JobQueueMessage, *, unattended: bool, as_json: bool) -> None:
    if as_json:
        typer.echo(json.dumps({"job_id": message.job_id, "status": "queued"}))
        return
    typer.echo(f"queued {message.job_id}")
    if unattended:
        typer.echo(
            "No orchestrator or no worker is running, so the job waits. Submit it with --wait to run it here.", err=True
        )


def print_outcome(job: Job, *, as_json: bool) -> None:
    if as_json:
        typer.echo(json.dumps(job.outcome(), indent=2, ensure_ascii=False))
    elif job.status is JobStatus.COMPLETED:
        typer.echo(json.dumps(job.result_data, indent=2, ensure_ascii=False))
    else:
        typer.echo(f"error: the job ended as {job.status.value}: {job.error_message}", err=True)
    if job.status is not JobStatus.COMPLETED:
        raise typer.Exit(1)


def _print_table(jobs: list[Job]) -> None:
    from rich.console import Console
    from rich.table import Column, Table

    table = Table(Column("job", no_wrap=True), "workflow", "status", "created", "took", box=None)
    for job in jobs:
        took = f"{(job.completed_at - job.created_at).total_seconds():.2f} s" if job.completed_at else ""
        status = "parked" if job.parked_at else job.status.value
        table.add_row(job.job_id, job.workflow_id, status, f"{job.created_at:%Y-%m-%d %H:%M:%S}", took)
    Console().print(table)
