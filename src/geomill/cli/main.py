"""`geomill`: the entry point. Every expected error ends as one line on standard error and an exit code."""

from __future__ import annotations

import logging
import sys
from pathlib import Path
from typing import Annotated

import typer

from geomill import __version__
from geomill.cli import (
    assets,
    catalogue,
    context,
    control,
    db,
    demo,
    doctor,
    gateway,
    jobs,
    keys,
    platforms,
    pruning,
    queues,
    roles,
    schedules,
    serve,
    stages,
    storage,
    up,
    workflows,
)
from geomill.errors import DestructiveMigration, GeomillError, InputError

app = typer.Typer(
    name="geomill",
    help="A geospatial publishing platform.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.add_typer(assets.app, name="assets")
app.add_typer(platforms.app, name="platforms")
app.add_typer(catalogue.app, name="catalogue")
app.add_typer(db.app, name="db")
app.add_typer(workflows.app, name="workflows")
app.add_typer(jobs.app, name="jobs")
app.add_typer(stages.app, name="stages")
app.add_typer(queues.app, name="queues")
app.add_typer(schedules.app, name="schedules")
app.add_typer(keys.app, name="keys")
app.add_typer(storage.app, name="storage")
app.command()(roles.orchestrator)
app.command()(roles.worker)
app.command()(gateway.gateway)
app.command()(serve.serve)
app.command()(up.up)
app.command()(demo.demo)
app.command()(doctor.doctor)
for _command in (control.watch_job, control.cancel, control.pause, control.resume, control.retry, pruning.prune):
    jobs.app.command(_command.__name__.removesuffix("_job"))(_command)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(__version__)
        raise typer.Exit


@app.callback()
def main(
    data: Annotated[
        Path | None, typer.Option("--data", metavar="DIR", help="Folder of the private database and all local data.")
    ] = None,
    workflow_folders: Annotated[
        list[Path] | None, typer.Option("--workflows", metavar="DIR", help="Folder of workflow files; may be repeated.")
    ] = None,
    url: Annotated[str | None, typer.Option("--url", metavar="URL", help="Gateway to call.")] = None,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Show log lines.")] = False,
    _version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    context.data_option.set(data)
    context.workflows_option.set(tuple(workflow_folders or ()))
    context.url_option.set(url)
    logging.basicConfig(
        level=logging.INFO if verbose else logging.ERROR, format="%(asctime)s %(levelname)s %(name)s %(message)s"
    )


def run() -> None:
    try:
        app()
    except GeomillError as error:
        _print_error(error)
        sys.exit(error.exit_code)
    except KeyboardInterrupt:
        sys.exit(130)


def _print_error(error: GeomillError) -> None:
    typer.echo(f"error: {error}", err=True)
    if isinstance(error, InputError):
        for problem in error.problems:
            typer.echo(f"  {problem}", err=True)
    if isinstance(error, DestructiveMigration):
        for statement in error.statements:
            typer.echo(f"  {statement}", err=True)
