"""`geomill jobs`: submit jobs, list them, and show one with its log."""

from __future__ import annotations

import json
from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from geomill.cli.client import gateway_or_database, has_gateway
from geomill.cli.printing import Json, print_json, print_table, short
from geomill.contract.jobs import JobDetails, JobSummary
from geomill.contract.logs import LogLine
from geomill.contract.nodes import ItemOrder
from geomill.domain.engine.instance import InstanceRole
from geomill.domain.states import JobStatus, NodeStatus

if TYPE_CHECKING:
    from geomill.cli.inside import LoadedParts
    from geomill.client import Client

app = typer.Typer(no_args_is_help=True, help="Submit, follow and control jobs.")

JobArgument = Annotated[str, typer.Argument(metavar="JOB", help="Id of the job.")]


class ListedState(StrEnum):
    """The states by which jobs are listed: those of the job machine, and `queued`."""

    QUEUED = "queued"
    PENDING = "pending"
    RUNNING = "running"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"


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
    from geomill.cli.inputs import inputs_from_file, typed_inputs
    from geomill.cli.watching import watch

    order: dict[str, Any] = {
        "workflow_id": workflow_id,
        "priority": priority,
        "idempotency_key": idempotency_key,
        "correlation_id": correlation_id,
        "callback_url": callback_url,
    }
    from_file = inputs_from_file(inputs_file)
    parts = None if has_gateway() else _checked_parts(order, from_file, inputs or [])
    with gateway_or_database(parts, with_roles=wait) as client:
        input_params = {**from_file, **typed_inputs(client.workflows.get(workflow_id), inputs or [])}
        accepted = client.jobs.submit({**order, "input_params": input_params})
        if not wait:
            print_queued(accepted.job_id, accepted.status, client, as_json=as_json)
            return
        job = watch(client, accepted.job_id, quiet=as_json)
    print_outcome(job, as_json=as_json)


def _checked_parts(order: Mapping[str, Any], from_file: Mapping[str, Any], options: list[str]) -> LoadedParts:
    """Load workflows and handlers, and check the submission before a database is started or created."""
    from geomill.cli.inputs import inputs_from_options
    from geomill.cli.inside import load
    from geomill.domain.engine.message import JobQueueMessage
    from geomill.engine.submit import check_plain

    parts = load()
    workflow = parts.workflow_registry.get(order["workflow_id"])
    inputs = {**from_file, **inputs_from_options(workflow.workflow_id, workflow.inputs, options)}
    check_plain(parts.workflow_registry, JobQueueMessage(**order, input_params=inputs))
    return parts


@app.command("list")
def list_jobs(
    status: Annotated[list[ListedState] | None, typer.Option(help="Only jobs in this state; may be repeated.")] = None,
    workflow_id: Annotated[str | None, typer.Option("--workflow", help="Only jobs of this workflow.")] = None,
    asset_id: Annotated[str | None, typer.Option("--asset", help="Only jobs of this asset.")] = None,
    submitted_by: Annotated[str | None, typer.Option("--submitter", help="Only jobs of this submitter.")] = None,
    correlation_id: Annotated[str | None, typer.Option(help="Only jobs with this id of yours.")] = None,
    error: Annotated[str | None, typer.Option(help="Only jobs whose error has this text.")] = None,
    parked: Annotated[bool, typer.Option("--parked", help="Only parked jobs.")] = False,
    limit: Annotated[int, typer.Option(min=1, max=1000, help="Number of jobs to list.")] = 20,
    as_json: Json = False,
) -> None:
    """List the latest jobs. Those that wait to be claimed come first."""
    with gateway_or_database() as client:
        jobs = client.jobs.page(
            status=[state.value for state in status or []] or None,
            workflow_id=workflow_id,
            asset_id=asset_id,
            submitted_by=submitted_by,
            correlation_id=correlation_id,
            error=error,
            parked=parked or None,
            limit=limit,
        ).jobs
    if as_json:
        print_json(jobs)
        return
    empty = "There are no such jobs. Submit one with 'geomill jobs submit hello_world --wait'."
    print_table(("job", "workflow", "status", "created", "took"), map(_row, jobs), empty=empty)


def _row(job: JobSummary) -> tuple[object, ...]:
    created = job.created_at or job.submitted_at
    took = f"{(job.completed_at - created).total_seconds():.2f} s" if job.completed_at and created else ""
    return job.job_id, job.workflow_id, "parked" if job.parked_at else job.status, created, took


@app.command()
def counts(
    workflow_id: Annotated[str | None, typer.Option("--workflow", help="Only jobs of this workflow.")] = None,
    as_json: Json = False,
) -> None:
    """Count jobs by status."""
    with gateway_or_database() as client:
        counted = client.jobs.counts(workflow_id=workflow_id)
    if as_json:
        print_json(counted)
        return
    rows = [(name, f"{count} or more" if name in counted.at_least else count) for name, count in counted.counts.items()]
    print_table(("status", "jobs"), rows, empty="There are no such jobs.")


@app.command()
def show(
    job_id: JobArgument,
    events: Annotated[bool, typer.Option("--events", help="Also show the job's events.")] = False,
    as_json: Json = False,
) -> None:
    """Show one job with its nodes."""
    with gateway_or_database() as client:
        job = client.jobs.get(job_id)
        shown_events = client.jobs.events(job_id, limit=1000).events if events else None
    if as_json:
        more = {} if shown_events is None else {"events": [event.model_dump(mode="json") for event in shown_events]}
        print_json({**job.model_dump(mode="json"), **more})
        return
    typer.echo(_readable(job))
    for event in shown_events or []:
        typer.echo(f"  {event.created_at.isoformat()}  {event.event_type}  {event.node_id or ''}")


@app.command()
def node(
    job_id: JobArgument,
    node_id: Annotated[str, typer.Argument(metavar="NODE", help="Id of the node.")],
    item: Annotated[int | None, typer.Option("--item", min=0, help="An item of a fan-out, by its number.")] = None,
    as_json: Json = False,
) -> None:
    """Show one node, or one item of a fan-out, with its parameters, attempts and checkpoint."""
    with gateway_or_database() as client:
        details = client.jobs.node(job_id, node_id) if item is None else client.jobs.item(job_id, node_id, item)
    if as_json:
        print_json(details)
        return
    typer.echo(f"{details.node_id}  {details.status}  {details.handler or details.type}  attempt {details.attempt}")
    typer.echo(f"  worker {details.worker_id or 'none'}, queue {details.queue or 'none'}")
    typer.echo(f"  params: {short(details.params)}\n  output: {short(details.output)}")
    for attempt in details.attempts:
        outcome = f"{attempt.error_code}: {attempt.error}" if attempt.error else attempt.status
        typer.echo(f"  attempt {attempt.attempt} on {attempt.worker_id}: {outcome}")


@app.command()
def items(
    job_id: JobArgument,
    node_id: Annotated[str, typer.Argument(metavar="NODE", help="Id of the fan-out.")],
    state: Annotated[NodeStatus | None, typer.Option(help="Only items in this state.")] = None,
    order: Annotated[ItemOrder, typer.Option(help="The order of the list.")] = ItemOrder.FAILED_FIRST,
    limit: Annotated[int, typer.Option(min=1, max=1000, help="Number of items to list.")] = 20,
    as_json: Json = False,
) -> None:
    """Summarise a fan-out and list its items, failed ones first."""
    with gateway_or_database() as client:
        summary = client.jobs.item_summary(job_id, node_id)
        listed = client.jobs.items(job_id, node_id, state=state, order=order, limit=limit).items
    if as_json:
        print_json(
            {"summary": summary.model_dump(mode="json"), "items": [entry.model_dump(mode="json") for entry in listed]}
        )
        return
    typer.echo(f"{summary.total} items: {', '.join(f'{count} {name}' for name, count in summary.states.items())}")
    rows = [(entry.index, entry.status, entry.attempt, entry.run_seconds, entry.error) for entry in listed]
    print_table(("item", "status", "attempt", "seconds", "error"), rows, empty="There are no such items.")


@app.command()
def diff(
    job_id: JobArgument,
    other_job_id: Annotated[str, typer.Argument(metavar="OTHER", help="Id of the other job.")],
    as_json: Json = False,
) -> None:
    """Show how two jobs differ: inputs, definition, nodes and results."""
    with gateway_or_database() as client:
        difference = client.jobs.difference(job_id, other_job_id)
    if as_json:
        print_json(difference)
        return
    rows = [("status", difference.status.before, difference.status.after)]
    rows += [("seconds", difference.run_seconds.before, difference.run_seconds.after)]
    rows += [("definition", difference.definition_hash.before, difference.definition_hash.after)]
    for title, changes in (("input", difference.inputs), ("result", difference.results)):
        rows += [(f"{title} {change.name}", short(change.before), short(change.after)) for change in changes]
    for changed in difference.nodes:
        rows += [(f"node {changed.node_id}", changed.status.before, changed.status.after)]
    print_table(("", job_id, other_job_id), rows, empty="")


@app.command()
def logs(
    job_id: JobArgument,
    node_id: Annotated[str | None, typer.Option("--node", help="Only lines of this node.")] = None,
    item: Annotated[int | None, typer.Option("--item", min=0, help="Only lines of this item; needs --node.")] = None,
    attempt: Annotated[int | None, typer.Option("--attempt", min=1, help="Only lines of this attempt.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=100_000, help="Number of lines at most.")] = 1000,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Print lines until the job has ended.")] = False,
    as_json: Json = False,
) -> None:
    """Print the log lines of a job's handlers."""
    filters = {"node_id": node_id, "item_index": item, "attempt": attempt}
    with gateway_or_database() as client:
        job = client.jobs.get(job_id, outputs=False)
        if job.details_deleted_at:
            typer.echo(f"the logs of the job were deleted on {job.details_deleted_at:%Y-%m-%d}", err=True)
        if follow:
            for event in client.jobs.follow_logs(job_id, **filters):
                if event.event == "line":
                    typer.echo(event.data if as_json else _line(LogLine.model_validate_json(event.data)))
            return
        lines = _lines(client, job_id, filters, limit)
    if as_json:
        print_json(lines)
        return
    for line in lines:
        typer.echo(_line(line))


def _lines(client: Client, job_id: str, filters: dict[str, Any], limit: int) -> list[LogLine]:
    lines: list[LogLine] = []
    after, more = 0, True
    while more and len(lines) < limit:
        page = client.jobs.logs(job_id, **filters, after=after, limit=min(1000, limit - len(lines)))
        lines += page.lines
        after, more = page.next_after, page.more
    return lines


def _line(line: LogLine) -> str:
    place = line.node_id if line.item_index is None else f"{line.node_id}[{line.item_index}]"
    return f"{line.created_at:%H:%M:%S}  {line.level:<7}  {place}  {line.message}"


def _readable(job: JobDetails) -> str:
    lines = [f"{job.job_id}  {job.workflow_id}  {job.status}"]
    if job.error:
        lines.append(f"  error: {job.error}")
    if job.parked_at:
        lines.append(f"  parked since {job.parked_at}: {job.parked_reason}")
        lines.append(f"  fix the cause, then run 'geomill jobs release {job.job_id}'")
    if job.retry_of:
        lines.append(f"  repeats the job {job.retry_of}")
    if job.details_deleted_at:
        lines.append(f"  its details were deleted on {job.details_deleted_at:%Y-%m-%d}: nodes, events and logs")
    lines += [
        f"  warning: the code of '{mixed.handler}' changed while it ran: {', '.join(mixed.versions)}"
        for mixed in job.mixed_versions
    ]
    lines += [f"  {reason}" for reason in job.progress.waits]
    for entry in job.nodes:
        counts = f"  {entry.items.completed} of {entry.items.total} items" if entry.items else ""
        lines.append(f"  {entry.status:<11} {entry.node_id}{counts}" + (f"  {entry.error}" if entry.error else ""))
    if job.result is not None:
        lines.append("  result: " + json.dumps(job.result, ensure_ascii=False))
    return "\n".join(lines)


def print_queued(job_id: str, status: str, client: Client, *, as_json: bool) -> None:
    """Print that a job was submitted, and say if nobody would run it."""
    if as_json:
        print_json({"job_id": job_id, "status": status})
        return
    typer.echo(f"{status} {job_id}")
    if missing_roles(client):
        typer.echo(
            "No orchestrator or no worker is running, so the job waits. Submit it with --wait to run it here.", err=True
        )


def missing_roles(client: Client) -> list[str]:
    """Return the roles of which no process is alive."""
    alive = {process.role for process in client.operations.instances() if process.alive}
    return sorted({role.value for role in InstanceRole} - alive)


def print_outcome(job: JobDetails, *, as_json: bool) -> None:
    completed = job.status == JobStatus.COMPLETED.value
    if as_json:
        print_json({"job_id": job.job_id, "status": job.status, "result": job.result, "error": job.error})
    elif completed:
        print_json(job.result)
    else:
        typer.echo(f"error: the job ended as {job.status}: {job.error}", err=True)
    if not completed:
        raise typer.Exit(1)
