"""`geomill callbacks`: calls to the `callback_url` of jobs, and why they failed."""

from __future__ import annotations

from typing import Annotated

import typer

from geomill.cli.client import gateway_or_database
from geomill.cli.printing import Json, print_json, print_table
from geomill.contract.callbacks import CallbackView
from geomill.domain.engine.callback import CallbackStatus

app = typer.Typer(no_args_is_help=True, help="Look at callbacks, and send them again.")

JobId = Annotated[str, typer.Argument(metavar="JOB", help="Id of the job.")]


@app.command("list")
def list_callbacks(
    status: Annotated[CallbackStatus | None, typer.Option(help="Only callbacks in this state.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=1000, help="Number of callbacks to list.")] = 20,
    as_json: Json = False,
) -> None:
    """List callbacks, the newest first."""
    with gateway_or_database() as client:
        callbacks = client.callbacks.page(status=status, limit=limit).callbacks
    if as_json:
        print_json(callbacks)
        return
    rows = [(c.job_id, c.url, c.status.value, c.attempts, c.next_attempt_at, c.reason) for c in callbacks]
    print_table(("job", "url", "status", "attempts", "next attempt", "reason"), rows, empty="There are no callbacks.")


@app.command()
def show(job_id: JobId, as_json: Json = False) -> None:
    """Show the callback of a job."""
    with gateway_or_database() as client:
        _print(client.callbacks.get(job_id), as_json=as_json)


@app.command()
def send(job_id: JobId, as_json: Json = False) -> None:
    """Send the callback of a job again."""
    with gateway_or_database() as client:
        _print(client.callbacks.send(job_id), as_json=as_json)


def _print(callback: CallbackView, *, as_json: bool) -> None:
    if as_json:
        print_json(callback)
        return
    reason = f": {callback.reason}" if callback.reason else ""
    typer.echo(
        f"{callback.job_id}  {callback.url}\n  {callback.status.value} after {callback.attempts} attempts{reason}"
    )
