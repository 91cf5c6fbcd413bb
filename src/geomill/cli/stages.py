"""`geomill stages`: submit and follow jobs in stages."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from geomill.cli.client import gateway_or_database, has_gateway
from geomill.cli.inputs import inputs_from_file
from geomill.cli.jobs import missing_roles, print_outcome
from geomill.cli.printing import Json, print_json, print_table, when
from geomill.contract.stage_jobs import JobType, StageAccepted, StageJobDetails
from geomill.domain.engine.stage_job import StageStatus
from geomill.errors import InputsError, NotFoundError, nearest

if TYPE_CHECKING:
    from geomill.cli.inside import LoadedParts
    from geomill.client import Client

app = typer.Typer(no_args_is_help=True, help="Submit and follow jobs in stages.")


@app.command()
def types(as_json: Json = False) -> None:
    """List the job types with their stages."""
    with gateway_or_database() as client:
        job_types = client.stage_jobs.types()
    if as_json:
        print_json(job_types)
        return
    rows = [(job.job_type, [stage.name for stage in job.stages], job.description) for job in job_types]
    print_table(("job type", "stages", "description"), rows, empty="There are no stage jobs.")


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
    from geomill.cli.watching import watch

    from_file = inputs_from_file(params_file)
    parts = None if has_gateway() else _checked_parts(job_type, from_file, params or [])
    with gateway_or_database(parts, with_roles=wait) as client:
        schema = _type(client, job_type).parameters_schema
        options = {"priority": priority, "correlation_id": correlation_id, "callback_url": callback_url}
        accepted = client.stage_jobs.submit(job_type, {**from_file, **_from_options(schema, params or [])}, **options)
        if not wait:
            _print_submitted(accepted, client, as_json=as_json)
            return
        job = watch(client, accepted.message_id, quiet=as_json)
    print_outcome(job, as_json=as_json)


def _checked_parts(job_type: str, from_file: Mapping[str, Any], options: list[str]) -> LoadedParts:
    """Load job types and handlers, and check the parameters before a database is started or created."""
    from geomill.cli.inside import load

    parts = load()
    job = parts.job_types[job_type]
    job.validate({**from_file, **_from_options(job.controller.parameters_schema(), options)})
    return parts


def _type(client: Client, job_type: str) -> JobType:
    types = {job.job_type: job for job in client.stage_jobs.types()}
    if job_type not in types:
        raise NotFoundError(f"there is no job type '{job_type}'", remedy=nearest(job_type, types))
    return types[job_type]


@app.command()
def status(
    job_id: Annotated[str, typer.Argument(metavar="JOB", help="Id of the stage job.")], as_json: Json = False
) -> None:
    """Show the state of a stage job, stage by stage."""
    with gateway_or_database() as client:
        stage_job = client.stage_jobs.get(job_id)
    if as_json:
        print_json(stage_job)
    else:
        typer.echo(_readable(stage_job))


@app.command("list")
def list_stage_jobs(
    job_type: Annotated[str | None, typer.Option("--type", help="Only jobs of this type.")] = None,
    status: Annotated[StageStatus | None, typer.Option("--status", help="Only jobs in this state.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=1000, help="Number of jobs to list.")] = 20,
    as_json: Json = False,
) -> None:
    """List the latest stage jobs."""
    with gateway_or_database() as client:
        jobs = client.stage_jobs.page(job_type=job_type, status=status, limit=limit).jobs
    if as_json:
        print_json(jobs)
        return
    if not jobs:
        typer.echo("There are no such stage jobs. Submit one with 'geomill stages submit hello_world --wait'.")
    for job in jobs:  # ids are too long for a table
        typer.echo(f"{job.job_id}  {when(job.created_at)}  {job.job_type}  {job.status}  attempt {job.attempt}")


def _from_options(schema: Mapping[str, Any], options: list[str]) -> dict[str, Any]:
    """Parse NAME=VALUE options: as text if the parameter is a string, and otherwise as JSON."""
    properties = schema.get("properties", {})
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


def _print_submitted(accepted: StageAccepted, client: Client, *, as_json: bool) -> None:
    if as_json:
        print_json(accepted)
        return
    typer.echo(
        f"{accepted.status} {accepted.job_id}" + (f" (attempt {accepted.attempt})" if accepted.attempt > 1 else "")
    )
    if accepted.status is StageStatus.QUEUED and missing_roles(client):
        typer.echo(
            "No orchestrator or no worker is running, so the job waits. Submit it with --wait to run it here.", err=True
        )


def _readable(job: StageJobDetails) -> str:
    lines = [f"{job.job_id}  {job.job_type}  {job.status}  attempt {job.attempt}"]
    if job.error_details:
        lines.append(f"  error: {job.error_details}")
    for stage in job.stages:
        failed = f", {stage.tasks.failed} failed" if stage.tasks.failed else ""
        failed += f", {stage.tasks.cancelled} cancelled" if stage.tasks.cancelled else ""
        circuit = f"  held back: {stage.open_circuit.error_message}" if stage.open_circuit else ""
        lines.append(
            f"  {stage.stage} {stage.name:<24} {stage.status:<10}"
            f" {stage.tasks.completed} of {stage.tasks.total} tasks{failed}{circuit}"
        )
    lines += [f"  result of {name}: {json.dumps(result)}" for name, result in job.stage_results.items()]
    lines += [f"  attempt {earlier.attempt}: {earlier.status}, job {earlier.run_id}" for earlier in job.attempts[1:]]
    return "\n".join(lines)
