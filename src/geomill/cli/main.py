"""`geomill`: the entry point. Every expected error ends as one line on standard error and an exit code."""

from __future__ import annotations

import errno
import sys
from pathlib import Path
from typing import Annotated

import typer

from geomill import __version__
from geomill.cli.lazy import Later, LazyGroup
from geomill.errors import DestructiveMigration, GeomillError, InputError, UnavailableError
from geomill.remedies import Channel, worded


class _Commands(LazyGroup):
    later = (
        Later(
            "orchestrator",
            "Run an orchestrator: it claims jobs and drives their graphs. Any number may run at once.",
            "geomill.cli.roles",
            attribute="orchestrator",
        ),
        Later(
            "worker",
            "Run a worker: it leases tasks and runs handlers. Any number may run at once.",
            "geomill.cli.roles",
            attribute="worker",
        ),
        Later(
            "gateway",
            "Run the HTTP API, with tiles, features and catalogue. Any number may run behind a balancer.",
            "geomill.cli.gateway",
            attribute="gateway",
        ),
        Later(
            "serve",
            "Serve tiles, features and catalogue of one zone. Any number may run behind a balancer.",
            "geomill.cli.serve",
            attribute="serve",
        ),
        Later(
            "up",
            "Run everything on this machine: database, orchestrators, workers and gateway, until Ctrl-C or SIGTERM.",
            "geomill.cli.up",
            attribute="up",
        ),
        Later(
            "demo",
            "Generate a raster and a vector layer, publish and approve them, and print the links to view them.",
            "geomill.cli.demo",
            attribute="demo",
        ),
        Later(
            "doctor",
            "Check this machine, the database and the platform. The exit code is 1 if a check fails.",
            "geomill.cli.doctor",
            attribute="doctor",
        ),
        Later("console", "Sign in to the console in a browser.", "geomill.cli.console"),
        Later("assets", "Publish data, follow its progress and review it.", "geomill.cli.assets"),
        Later(
            "inspect",
            "Show what is in a file and all problems. The exit code is 1 if a job would fail.",
            "geomill.cli.inspect",
            attribute="inspect",
        ),
        Later("uploads", "Upload files into bronze, list and remove uploads.", "geomill.cli.uploads"),
        Later("platforms", "Register partner applications and set what they may do.", "geomill.cli.platforms"),
        Later("catalogue", "The catalogue of what is published.", "geomill.cli.catalogue"),
        Later("backup", "Back up the whole platform, and verify a backup.", "geomill.cli.backup"),
        Later(
            "restore",
            "Restore a backup into an empty platform. The exit code is 1 if the result differs from the backup.",
            "geomill.cli.restore",
            attribute="restore",
        ),
        Later("db", "Show and migrate the database schema.", "geomill.cli.db"),
        Later("workflows", "List, show and check workflows.", "geomill.cli.workflows"),
        Later(
            "jobs",
            "Submit, follow and control jobs.",
            "geomill.cli.jobs",
            "geomill.cli.control",
            "geomill.cli.pruning",
        ),
        Later("stages", "Submit and follow jobs in stages.", "geomill.cli.stages"),
        Later("queues", "Inspect the queues, and send dead letters again.", "geomill.cli.queues"),
        Later("styles", "Give assets named styles, for tiles, maps and previews.", "geomill.cli.styles"),
        Later("callbacks", "Look at callbacks, and send them again.", "geomill.cli.callbacks"),
        Later(
            "instances",
            "List orchestrators and workers with what each has done since its start.",
            "geomill.cli.processes",
            attribute="instances",
        ),
        Later("handlers", "List and show handlers.", "geomill.cli.processes", attribute="handlers"),
        Later(
            "circuits",
            "Handlers whose tasks are held back after failures.",
            "geomill.cli.processes",
            attribute="circuits",
        ),
        Later("schedules", "Start workflows at set times.", "geomill.cli.schedules"),
        Later("keys", "Create, list and revoke keys for the HTTP API.", "geomill.cli.keys"),
        Later(
            "settings",
            "List the settings in effect. Secrets are masked.",
            "geomill.cli.administration",
            attribute="settings",
        ),
        Later(
            "audit",
            "List the changes that operators have made, the newest first.",
            "geomill.cli.administration",
            attribute="audit",
        ),
        Later(
            "storage",
            "List, upload and download objects in the zones.",
            "geomill.cli.storage",
            "geomill.cli.cleanup",
        ),
    )


app = typer.Typer(
    name="geomill",
    cls=_Commands,
    help="A platform that publishes geospatial data: rasters, vector layers and their catalogue.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # drawing boxes takes twice as long as the rest of --help
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(requested: bool) -> None:
    if requested:
        typer.echo(__version__)
        raise typer.Exit


@app.callback()
def main(
    data: Annotated[
        Path | None, typer.Option("--data", metavar="DIR", help="Folder for the private database and all local data.")
    ] = None,
    workflow_folders: Annotated[
        list[Path] | None, typer.Option("--workflows", metavar="DIR", help="Folder of workflow files; may be repeated.")
    ] = None,
    url: Annotated[str | None, typer.Option("--url", metavar="URL", help="URL of the gateway to call.")] = None,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Show log lines.")] = False,
    _version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    import logging

    from geomill.cli import context

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
    except Exception as error:
        expected = _missing_part(error) or _full_disk(error) or _temporary_database_error(error)
        if expected is None:
            raise
        _print_error(expected)
        sys.exit(expected.exit_code)


def _missing_part(error: Exception) -> GeomillError | None:
    """Return an error if the command needs a library of the server that is not installed. Otherwise return None."""
    library = (error.name or "").partition(".")[0] if isinstance(error, ModuleNotFoundError) else ""
    if not library or library == "geomill":
        return None
    return UnavailableError(
        f"this command needs the server's part of geomill, and '{library}' is not installed",
        remedy="run pip install 'geomill[server]'",
    )


def _full_disk(error: Exception) -> GeomillError | None:
    """Return an error if a disk is full: this machine's or the database's (SQLSTATE 53100). Otherwise return None."""
    remedy = "free some space and run the command again"
    if getattr(error, "sqlstate", None) == "53100":
        return UnavailableError("the disk of the database is full", remedy=remedy)
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
        file = f": {error.filename} cannot be written" if error.filename else ""
        return UnavailableError(f"the disk is full{file}", remedy=remedy)
    return None


def _temporary_database_error(error: Exception) -> GeomillError | None:
    """Return an error for a temporary database failure. Otherwise return None."""
    from geomill.errors import DatabaseUnreachable

    if "psycopg" not in sys.modules:
        return None
    from geomill.store.passing import passes

    if not passes(error):
        return None
    reason = str(error).strip().partition("\n")[0]
    return DatabaseUnreachable(f"the database did not complete the request: {reason}", remedy="try again in a moment")


def _print_error(error: GeomillError) -> None:
    typer.echo(f"error: {worded(str(error), Channel.SHELL)}", err=True)
    if isinstance(error, InputError):
        for problem in error.problems:
            typer.echo(f"  {problem}", err=True)
    if isinstance(error, DestructiveMigration):
        for statement in error.statements:
            typer.echo(f"  {statement}", err=True)
