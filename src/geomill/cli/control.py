"""`geomill jobs watch | cancel | pause | resume | retry | release`: follow and control jobs."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated

import typer

from geomill.cli import context
from geomill.cli.client import gateway_or_database
from geomill.cli.inputs import typed_inputs
from geomill.cli.jobs import JobArgument, app, print_outcome
from geomill.cli.printing import Json, print_json
from geomill.contract.jobs import ActionAccepted
from geomill.errors import InputError

if TYPE_CHECKING:
    from geomill.client import Client
    from geomill.domain.engine.job import Job
    from geomill.domain.engine.message import JobQueueMessage
    from geomill.domain.engine.workflow import Workflow
    from geomill.store.pool import Pool


@app.command("watch")
def watch_job(job_id: JobArgument, as_json: Json = False) -> None:
    """Follow a job until it has ended, then print its result."""
    from geomill.cli.local import missing_roles
    from geomill.cli.watching import watch
    from geomill.store.pool import open_pool

    async def work(url: str) -> Job:
        async with open_pool(url, size=2) as pool:
            workflow, message = await _workflow_and_message(pool, job_id)
            if absent := await missing_roles(pool):
                typer.echo(f"No {' and no '.join(sorted(absent))} is running, so the job waits.", err=True)
            return await watch(pool, workflow, message, quiet=as_json)

    with context.ready_database() as url:
        job = asyncio.run(work(url))
    print_outcome(job, as_json=as_json)


async def _workflow_and_message(pool: Pool, job_id: str) -> tuple[Workflow, JobQueueMessage]:
    """Return the job's workflow and message. A job that has not started yet gets the current workflow."""
    from geomill.domain.engine.message import JobQueueMessage
    from geomill.store import definitions
    from geomill.store import jobs as job_store

    job_queue = context.settings().queue.job_queue_name
    async with pool.connection() as conn:
        message = await job_store.waiting(conn, job_queue, job_id)
        if message is None:
            job = await job_store.get(conn, job_id)
            message = JobQueueMessage(job_id=job_id, workflow_id=job.workflow_id)
            if job.definition_hash:
                return await definitions.get(conn, job.definition_hash), message
    return context.workflow_registry(context.handlers()).get(message.workflow_id), message


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
