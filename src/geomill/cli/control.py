"""`geomill jobs watch | cancel | pause | resume | retry | release`: follow and control jobs."""

from __future__ import annotations

import asyncio
import getpass
import json
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Annotated

import typer

from geomill.cli import context
from geomill.cli.jobs import Json, app, print_outcome
from geomill.cli.local import missing_roles
from geomill.domain.engine.job import Job
from geomill.domain.engine.message import JobQueueMessage
from geomill.store import jobs as job_store
from geomill.store.pool import Connection, Pool, open_pool

if TYPE_CHECKING:
    from geomill.domain.engine.workflow import Workflow

JobArgument = Annotated[str, typer.Argument(metavar="JOB", help="Id of the job.")]


@app.command("watch")
def watch_job(job_id: JobArgument, as_json: Json = False) -> None:
    """Follow a job until it has ended, then print its result."""
    from geomill.cli.watching import watch

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
    from geomill.store import definitions

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
    from geomill.engine import control

    job_queue = context.settings().queue.job_queue_name
    _apply(job_id, "cancel", lambda conn: control.cancel(conn, job_queue, job_id, reason[:500]), as_json=as_json)


@app.command()
def pause(job_id: JobArgument, as_json: Json = False) -> None:
    """Pause a job. Running tasks go on; no new ones start."""
    from geomill.engine import control

    _apply(job_id, "pause", lambda conn: control.pause(conn, job_id), as_json=as_json)


@app.command()
def resume(job_id: JobArgument, as_json: Json = False) -> None:
    """Resume a paused job."""
    from geomill.engine import control

    _apply(job_id, "resume", lambda conn: control.resume(conn, job_id), as_json=as_json)


@app.command()
def retry(job_id: JobArgument, as_json: Json = False) -> None:
    """Retry a failed or cancelled job: run the nodes again that failed or never ran."""
    from geomill.engine import control

    _apply(job_id, "retry", lambda conn: control.retry(conn, job_id), as_json=as_json)


@app.command()
def release(job_id: JobArgument, as_json: Json = False) -> None:
    """Release a parked job after its cause is fixed."""
    from geomill.engine import control

    _apply(job_id, "release", lambda conn: control.release(conn, job_id, _user()), as_json=as_json)


def _user() -> str:
    """Return the name of the user for the job's history."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # an account without a name
        return "command line"


def _apply(job_id: str, action: str, operation: Callable[[Connection], Awaitable[object]], *, as_json: bool) -> None:
    async def work(url: str) -> None:
        async with open_pool(url, size=1) as pool, pool.connection() as conn:
            await operation(conn)

    with context.ready_database() as url:
        asyncio.run(work(url))
    typer.echo(json.dumps({"job_id": job_id, "action": action}) if as_json else f"requested: {action} {job_id}")
