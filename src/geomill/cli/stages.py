"""`geomill stages`: submit and follow jobs in stages."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Column, Table

from geomill.cli import context
from geomill.cli.inputs import inputs_from_file
from geomill.cli.jobs import print_outcome
from geomill.cli.local import local_roles, missing_roles
from geomill.cli.printing import Json
from geomill.cli.watching import watch
from geomill.domain.engine.job import Job
from geomill.domain.engine.message import JobQueueMessage
from geomill.domain.engine.stage_job import StageJobOrder, StageStatus, workflow_id
from geomill.errors import InputsError
from geomill.stages.registration import StageJob
from geomill.stages.status import StageJobView, view
from geomill.stages.submission import Submitted
from geomill.stages.submission import submit as submit_stage_job
from geomill.store import stage_jobs
from geomill.store.pool import Connection, open_pool
from geomill.store.stage_jobs import StageJobAttempt

app = typer.Typer(no_args_is_help=True, help="Submit and follow jobs in stages.")


@app.command()
def types(as_json: Json = False) -> None:
    """List the job types with their stages."""
    job_types = context.stage_jobs()
    if as_json:
        _print_json([_type_json(job) for job in job_types.values()])
        return
    table = Table(Column("job type", no_wrap=True), "stages", "description", box=None)
    for job in job_types.values():
        table.add_row(job.job_type, ", ".join(stage.stage_name for stage in job.definition.stages), job.description)
    Console().print(table)


@app.command()
def submit(
    job_type: Annotated[str, typer.Argument(metavar="TYPE", help="Type of the stage job.")],
    params: Annotated[
        list[str] | None, typer.Option("--param", "-p", metavar="NAME=VALUE", help="A parameter; may be repeated.")
    ] = None,
    params_file: Annotated[
        Path | None, typer.Option("--params", metavar="FILE", help="JSON file with parameters.")
    ] = None,
    priority: Annotated[int, typer.Option(min=0, max=10, help="Priority; a higher number runs sooner.")] = 0,
    correlation_id: Annotated[str | None, typer.Option(help="Your own id, to find the attempt by.")] = None,
    callback_url: Annotated[str | None, typer.Option(help="URL to call when the attempt has ended.")] = None,
    wait: Annotated[bool, typer.Option("--wait", help="Show progress, then print the result.")] = False,
    as_json: Json = False,
) -> None:
    """Submit a stage job. The same parameters give the same job, unless it failed or was cancelled."""
    registry, job_types = context.handlers(), context.stage_jobs()
    workflow_registry, settings = context.workflow_registry(registry, job_types), context.settings()
    job = job_types[job_type]
    parameters = {**inputs_from_file(params_file), **_from_options(job, params or [])}
    order = StageJobOrder(
        job_type=job_type,
        parameters=parameters,
        priority=priority,
        correlation_id=correlation_id,
        callback_url=callback_url,
    )
    job.validate(parameters)  # before a database is started or created

    async def work(url: str) -> Job | None:
        async with open_pool(url, size=6, hot=True) as pool:
            async with pool.connection() as conn:
                submitted = await submit_stage_job(
                    conn, job_types, workflow_registry, settings.queue.job_queue_name, order
                )
            if not wait:
                _print_submitted(submitted, unattended=bool(await missing_roles(pool)), as_json=as_json)
                return None
            loader_url = context.loader_database_url()
            async with local_roles(
                url, pool, settings.queue, workflow_registry, registry, context.storage(), loader_url
            ):
                message = JobQueueMessage(job_id=submitted.run.run_id, workflow_id=job.workflow_id)
                return await watch(pool, workflow_registry.get(job.workflow_id), message, quiet=as_json)

    with context.ready_database() as url:
        ended = asyncio.run(work(url))
    if ended:
        print_outcome(ended, as_json=as_json)


@app.command()
def status(
    job_id: Annotated[str, typer.Argument(metavar="JOB", help="Id of the stage job.")], as_json: Json = False
) -> None:
    """Show the state of a stage job, stage by stage."""
    queue, workflow_registry = context.settings().queue.job_queue_name, context.workflow_registry(context.handlers())

    async def work(conn: Connection) -> StageJobView:
        (latest, *_) = await stage_jobs.get(conn, queue, job_id)
        name = workflow_id(latest.run.job_type)
        return await view(conn, queue, job_id, workflow_registry.get(name) if name in workflow_registry else None)

    stage_job = context.with_database(work)
    if as_json:
        from geomill.api.views.stage_jobs import stage_job_details

        typer.echo(stage_job_details(stage_job).model_dump_json(indent=2))
    else:
        typer.echo(_readable(stage_job))


@app.command("list")
def list_stage_jobs(
    job_type: Annotated[str | None, typer.Option("--type", help="Only jobs of this type.")] = None,
    wanted_status: Annotated[StageStatus | None, typer.Option("--status", help="Only jobs in this state.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=1000, help="Number of jobs to list.")] = 20,
    as_json: Json = False,
) -> None:
    """List the latest stage jobs."""
    queue = context.settings().queue.job_queue_name

    async def work(conn: Connection) -> list[StageJobAttempt]:
        return await stage_jobs.page(conn, queue, job_type=job_type, status=wanted_status, limit=limit)

    attempts = context.with_database(work)
    if as_json:
        _print_json([_attempt_json(attempt) for attempt in attempts])
        return
    if not attempts:
        typer.echo("There are no such stage jobs. Submit one with 'geomill stages submit hello_world --wait'.")
        return
    for attempt in attempts:  # ids are too long for a table
        run = attempt.run
        typer.echo(
            f"{run.job_id}  {run.submitted_at:%Y-%m-%d %H:%M:%S}  {run.job_type}  {attempt.status}"
            f"  attempt {run.attempt}"
        )


def _from_options(job: StageJob, options: list[str]) -> dict[str, Any]:
    """Parse NAME=VALUE options: as text if the parameter is a string, and otherwise as JSON."""
    properties = job.controller.parameters_schema().get("properties", {})
    parameters: dict[str, Any] = {}
    for option in options:
        name, equals, text = option.partition("=")
        if not equals:
            raise InputsError(f"--param {option!r} has no '='", remedy="write --param NAME=VALUE")
        parameters[name] = _value(_kinds(properties.get(name, {})), text)
    return parameters


def _kinds(schema: Mapping[str, Any]) -> set[str]:
    return {str(option.get("type", "")) for option in [schema, *schema.get("anyOf", [])]} - {""}


def _value(kinds: set[str], text: str) -> Any:
    if "string" in kinds and not ("null" in kinds and text == "null"):
        return text
    try:
        return json.loads(text)
    except ValueError:
        return text


def _print_submitted(submitted: Submitted, *, unattended: bool, as_json: bool) -> None:
    run = submitted.run
    if as_json:
        document = {"job_id": run.job_id, "status": submitted.status, "attempt": run.attempt, "run_id": run.run_id}
        _print_json({**document, "new": submitted.is_new})
        return
    typer.echo(f"{submitted.status} {run.job_id}" + (f" (attempt {run.attempt})" if run.attempt > 1 else ""))
    if unattended and submitted.is_new:
        typer.echo(
            "No orchestrator or no worker is running, so the job waits. Submit it with --wait to run it here.", err=True
        )


def _readable(stage_job: StageJobView) -> str:
    latest = stage_job.latest
    lines = [f"{latest.run.job_id}  {latest.run.job_type}  {latest.status}  attempt {latest.run.attempt}"]
    if latest.error:
        lines.append(f"  error: {latest.error}")
    for stage in stage_job.stages:
        failed = f", {stage.failed} failed" if stage.failed else ""
        failed += f", {stage.cancelled} cancelled" if stage.cancelled else ""
        circuit = f"  held back: {stage.circuit.error_message}" if stage.circuit else ""
        lines.append(
            f"  {stage.stage} {stage.name:<24} {stage.status:<10}"
            f" {stage.completed} of {stage.total} tasks{failed}{circuit}"
        )
    lines += [f"  result of {name}: {json.dumps(result)}" for name, result in stage_job.stage_results.items()]
    lines += [
        f"  attempt {earlier.run.attempt}: {earlier.status}, job {earlier.run.run_id}"
        for earlier in stage_job.attempts[1:]
    ]
    return "\n".join(lines)


def _attempt_json(attempt: StageJobAttempt) -> dict[str, Any]:
    return {**attempt.run.model_dump(mode="json"), "status": attempt.status, "error_details": attempt.error}


def _type_json(job: StageJob) -> dict[str, Any]:
    return {
        "job_type": job.job_type,
        "description": job.description,
        "stages": [stage.model_dump(mode="json") for stage in job.definition.stages],
        "parameters_schema": job.controller.parameters_schema(),
    }


def _print_json(value: Any) -> None:
    typer.echo(json.dumps(value, indent=2, ensure_ascii=False))
