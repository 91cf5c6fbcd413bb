"""`geomill jobs watch | cancel | pause | resume | retry | release`: follow and control jobs."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated

import typer

from geomill.cli.client import gateway_or_database
from geomill.cli.inputs import typed_inputs
from geomill.cli.jobs import JobArgument, app, missing_roles, print_outcome
from geomill.cli.printing import Json, print_json
from geomill.contract.jobs import ActionAccepted
from geomill.errors import InputError

if TYPE_CHECKING:
    from geomill.client import Client


@app.command("watch")
def watch_job(job_id: JobArgument, as_json: Json = False) -> None:
    """Follow a job until it has ended, then print its result."""
    from geomill.cli.watching import watch

    with gateway_or_database() as client:
        client.jobs.get(job_id, outputs=False)  # raises if there is none
        if absent := missing_roles(client):
            typer.echo(f"No {' and no '.join(absent)} is running, so the job waits.", err=True)
        job = watch(client, job_id, quiet=as_json)
    print_outcome(job, as_json=as_json)


@app.command()
def cancel(
    job_id: JobArgument,
    reason: Annotated[str, typer.Option(help="Reason; stored with the job.")] = "cancelled",
    as_json: Json = False,
) -> None:
    """Cancel a job that waits, runs or is paused."""
    _apply(lambda client: client.jobs.cancel(job_id, reason[:500]), as_json=as_json)


@app.command()
def pause(job_id: JobArgument, as_json: Json = False) -> None:
    """Pause a job. Running tasks go on; no new ones start."""
    _apply(lambda client: client.jobs.pause(job_id), as_json=as_json)


@app.command()
def resume(job_id: JobArgument, as_json: Json = False) -> None:
    """Resume a paused job."""
    _apply(lambda client: client.jobs.resume(job_id), as_json=as_json)


@app.command()
def retry(
    job_id: JobArgument,
    from_node: Annotated[
        str | None, typer.Option("--from", metavar="NODE", help="Run this node and all after it again, too.")
    ] = None,
    only_failed: Annotated[
        bool, typer.Option("--only-failed", help="Run only what did not complete. This is the default.")
    ] = False,
    inputs: Annotated[
        list[str] | None,
        typer.Option("--input", "-i", metavar="NAME=VALUE", help="A changed input: a new job repeats this one."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Retry a failed or cancelled job: run the nodes again that failed or never ran."""
    if (from_node is not None) + only_failed + bool(inputs) > 1:
        raise InputError("--from, --only-failed and --input exclude each other", remedy="give one of them")

    def operation(client: Client) -> ActionAccepted:
        changed = None
        if inputs:
            changed = typed_inputs(client.workflows.get(client.jobs.get(job_id, outputs=False).workflow_id), inputs)
        return client.jobs.retry(job_id, from_node=from_node, input_params=changed)

    _apply(operation, as_json=as_json)


@app.command()
def release(job_id: JobArgument, as_json: Json = False) -> None:
    """Release a parked job after its cause is fixed."""
    _apply(lambda client: client.jobs.release(job_id), as_json=as_json)


def _apply(operation: Callable[[Client], ActionAccepted], *, as_json: bool) -> None:
    with gateway_or_database() as client:
        accepted = operation(client)
    if as_json:
        print_json({"job_id": accepted.job_id, "action": accepted.action})
    else:
        typer.echo(f"requested: {accepted.action} {accepted.job_id}")
