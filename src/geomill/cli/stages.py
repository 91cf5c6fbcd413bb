"""`geomill stages`: jobs in stages."""

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
from geomill.cli.watching import watch
from geomill.domain.engine.job import Job
from geomill.domain.engine.message import JobQueueMessage
from geomill.domain.engine.stage_job import StageStatus, workflow_id
from geomill.errors import InputsError
from geomill.stages.registration import StageJob
from geomill.stages.status import StageJobView, view
from geomill.stages.submission import StageJobOrder, Submitted
from geomill.stages.submission import submit as submit_stage_job
from geomill.store import stage_jobs
from geomill.store.pool import Connection, open_pool
from geomill.store.stage_jobs import StageJobAttempt

app = typer.Typer(no_args_is_help=True, help="Jobs in stages: submit them and see how they stand.")

Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]


@app.command()
def types(as_json: Json = False) -> None:
    """The job types, with their stages."""
    found = context.stage_jobs()
    if as_json:
        _print_json([_type_json(job) for job in found.values()])
        return
    table = Table(Column("job type", no_wrap=True), "stages", "description", box=None)
    for job in found.values():
        table.add_row(job.job_type, ", ".join(one.stage_name for one in job.definition.stages), job.description)
    Console().print(table)


@app.command()
def submit(
    job_type: Annotated[str, typer.Argument(metavar="TYPE")],
    params: Annotated[
        list[str] | None, typer.Option("--param", "-p", metavar="NAME=VALUE", help="One parameter.")
    ] = None,
    params_file: Annotated[
        Path | None, typer.Option("--params", metavar="FILE", help="JSON file of parameters.")
    ] = None,
    priority: Annotated[int, typer.Option(min=0, max=10, help="Higher is sooner.")] = 0,
    correlation_id: Annotated[str | None, typer.Option(help="An id of yours, to find the attempt by.")] = None,
    callback_url: Annotated[str | None, typer.Option(help="Told when the attempt has ended.")] = None,
    wait: Annotated[bool, typer.Option("--wait", help="Show progress and the result.")] = False,
    as_json: Json = False,
) -> None:
    """Submit a stage job. The same request is the same job, unless it failed or was cancelled."""
    registry, job_types = context.handlers(), context.stage_jobs()
    catalogue, settings = context.catalogue(registry, job_types), context.settings()
    job = job_types[job_type]
    given = {**inputs_from_file(params_file), **_from_options(job, params or [])}
    order = StageJobOrder(job_type, given, None, priority, correlation_id, callback_url)
    job.validate(given)  # before a database is started or made

    async def work(url: str) -> Job | None:
        async with open_pool(url, size=6, hot=True) as pool:
            async with pool.connection() as conn:
                found = await submit_stage_job(conn, job_types, catalogue, settings.queue.job_queue_name, order)
            if not wait:
                _print_submitted(found, nobody=bool(await missing_roles(pool)), as_json=as_json)
                return None
            loader_url = context.loader_database_url()
            async with local_roles(url, pool, settings.queue, catalogue, registry, context.storage(), loader_url):
                message = JobQueueMessage(job_id=found.run.run_id, workflow_id=job.workflow_id)
                return await watch(pool, catalogue.get(job.workflow_id), message, quiet=as_json)

    with context.ready_database() as url:
        ended = asyncio.run(work(url))
    if ended:
        print_outcome(ended, as_json=as_json)


@app.command()
def status(job_id: Annotated[str, typer.Argument(metavar="JOB")], as_json: Json = False) -> None:
    """How a stage job stands, stage by stage."""
    queue, catalogue = context.settings().queue.job_queue_name, context.catalogue(context.handlers())

    async def work(conn: Connection) -> StageJobView:
        (latest, *_) = await stage_jobs.get(conn, queue, job_id)
        name = workflow_id(latest.run.job_type)
        return await view(conn, queue, job_id, catalogue.get(name) if name in catalogue else None)

    found = context.with_database(work)
    if as_json:
        from geomill.api.stage_models import StageJobDetails

        typer.echo(StageJobDetails.of_view(found).model_dump_json(indent=2))
    else:
        typer.echo(_readable(found))


@app.command("list")
def list_stage_jobs(
    job_type: Annotated[str | None, typer.Option("--type", help="Only jobs of this type.")] = None,
    wanted: Annotated[StageStatus | None, typer.Option("--status", help="Only jobs in this state.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=1000)] = 20,
    as_json: Json = False,
) -> None:
    """The latest stage jobs."""
    queue = context.settings().queue.job_queue_name

    async def work(conn: Connection) -> list[StageJobAttempt]:
        return await stage_jobs.page(conn, queue, job_type=job_type, status=wanted, limit=limit)

    found = context.with_database(work)
    if as_json:
        _print_json([_attempt_json(one) for one in found])
        return
    if not found:
        typer.echo("no stage jobs yet; submit one with 'geomill stages submit hello_world --wait'")
        return
    for one in found:  # an id is too long for a table
        run = one.run
        typer.echo(
            f"{run.job_id}  {run.submitted_at:%Y-%m-%d %H:%M:%S}  {run.job_type}  {one.status}  attempt {run.attempt}"
        )


def _from_options(job: StageJob, options: list[str]) -> dict[str, Any]:
    """As JSON, unless the parameter is a text."""
    properties = job.controller.parameters_schema().get("properties", {})
    found: dict[str, Any] = {}
    for option in options:
        name, equals, text = option.partition("=")
        if not equals:
            raise InputsError(f"--param {option!r} has no '='", remedy="write --param NAME=VALUE")
        found[name] = _value(_kinds(properties.get(name, {})), text)
    return found


def _kinds(schema: Mapping[str, Any]) -> set[str]:
    return {str(one.get("type", "")) for one in [schema, *schema.get("anyOf", [])]} - {""}


def _value(kinds: set[str], text: str) -> Any:
    if "string" in kinds and not ("null" in kinds and text == "null"):
        return text
    try:
        return json.loads(text)
    except ValueError:
        return text


def _print_submitted(found: Submitted, *, nobody: bool, as_json: bool) -> None:
    run = found.run
    if as_json:
        told = {"job_id": run.job_id, "status": found.status, "attempt": run.attempt, "run_id": run.run_id}
        _print_json({**told, "new": found.is_new})
        return
    typer.echo(f"{found.status} {run.job_id}" + (f" (attempt {run.attempt})" if run.attempt > 1 else ""))
    if nobody and found.is_new:
        typer.echo("no orchestrator or no worker is running: it waits; submit with --wait to run it here", err=True)


def _readable(found: StageJobView) -> str:
    latest = found.latest
    lines = [f"{latest.run.job_id}  {latest.run.job_type}  {latest.status}  attempt {latest.run.attempt}"]
    if latest.error:
        lines.append(f"  error: {latest.error}")
    for one in found.stages:
        failed = f", {one.failed} failed" if one.failed else ""
        held = f"  held back: {one.circuit.error_message}" if one.circuit else ""
        lines.append(
            f"  {one.stage} {one.name:<24} {one.status:<10} {one.completed} of {one.total} tasks{failed}{held}"
        )
    lines += [f"  result of {name}: {json.dumps(result)}" for name, result in found.stage_results.items()]
    lines += [f"  attempt {one.run.attempt}: {one.status}, job {one.run.run_id}" for one in found.attempts[1:]]
    return "\n".join(lines)


def _attempt_json(one: StageJobAttempt) -> dict[str, Any]:
    return {**one.run.model_dump(mode="json"), "status": one.status, "error_details": one.error}


def _type_json(job: StageJob) -> dict[str, Any]:
    return {
        "job_type": job.job_type,
        "description": job.description,
        "stages": [stage.model_dump(mode="json") for stage in job.definition.stages],
        "parameters_schema": job.controller.parameters_schema(),
    }


def _print_json(value: Any) -> None:
    typer.echo(json.dumps(value, indent=2, ensure_ascii=False))
