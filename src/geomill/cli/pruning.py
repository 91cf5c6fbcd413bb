"""`geomill jobs prune`: delete the details of old jobs by hand."""

from __future__ import annotations

import asyncio
import json
import re
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Annotated, Any

import typer

from geomill.cli import context
from geomill.cli.jobs import app
from geomill.cli.printing import Json
from geomill.errors import InputError

if TYPE_CHECKING:
    from geomill.engine.maintenance.retention import Pruned, Retention, RetentionOptions

UNITS = {"m": "minutes", "h": "hours", "d": "days", "w": "weeks"}


@app.command()
def prune(
    older_than: Annotated[
        str | None,
        typer.Option(
            metavar="AGE", help="Minimum time since the end of a job, such as 90d or 12h. Default: from the settings."
        ),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print how many there are and delete nothing.")] = False,
    as_json: Json = False,
) -> None:
    """Delete nodes, results, logs, events and large outputs of old jobs. The jobs themselves stay."""
    from geomill.engine.maintenance.retention import Pruned, Retention
    from geomill.store import retention
    from geomill.store.pool import open_pool

    options = _options(older_than)

    async def work(url: str) -> tuple[int, Pruned]:
        async with open_pool(url, size=2) as pool:
            async with pool.connection() as conn:
                due = await retention.due(conn, options.details or timedelta())
            if dry_run:
                return due, Pruned()
            return due, await _prune(Retention(pool, context.storage(), options), due, quiet=as_json)

    with context.ready_database() as url:
        due, pruned = asyncio.run(work(url))
    document = {"due": due, **_described(pruned)}
    typer.echo(json.dumps(document) if as_json else _readable(due, pruned, dry_run=dry_run))
    if pruned.failed:
        job_id, error = next(iter(pruned.failed.items()))
        typer.echo(f"error: {len(pruned.failed)} of them could not be deleted; {job_id}: {error}", err=True)
        raise typer.Exit(1)


def _options(older_than: str | None) -> RetentionOptions:
    from geomill.engine.maintenance.retention import RetentionOptions

    options = RetentionOptions.of(context.settings().retention)
    if older_than is not None:
        return replace(options, details=_age(older_than))
    if options.details is None:
        raise InputError(
            "GEOMILL_KEEP_DETAILS_DAYS is 0: details are kept forever", remedy="set an age with --older-than"
        )
    return options


def _age(text: str) -> timedelta:
    match = re.fullmatch(r"(\d{1,6})([mhdw])", text.strip())
    if match is None:
        raise InputError(f"--older-than '{text}' is not an age", remedy="write a number and m, h, d or w, such as 90d")
    return timedelta(**{UNITS[match[2]]: int(match[1])})


async def _prune(duty: Retention, due: int, *, quiet: bool) -> Pruned:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    from geomill.engine.maintenance.retention import Pruned

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    done = Pruned(more=True)
    with Progress(*columns, console=Console(stderr=True), disable=quiet, transient=True) as bars:
        bar = bars.add_task("jobs", total=due)
        while done.more and not done.failed:
            done.add(await duty.run_once())
            bars.update(bar, completed=done.jobs)
    return done


def _described(pruned: Pruned) -> dict[str, Any]:
    return {
        "jobs": pruned.jobs,
        "objects": pruned.objects,
        "rows": dict(pruned.rows),
        "dead_letters": pruned.dead_letters,
        "job_rows": pruned.job_rows,
        "failed": {job_id: str(error) for job_id, error in pruned.failed.items()},
    }


def _readable(due: int, pruned: Pruned, *, dry_run: bool) -> str:
    if dry_run:
        return f"{due:,} jobs have details older than that"
    summary = f"deleted the details of {pruned.jobs:,} jobs: {pruned.rows.total():,} rows, {pruned.objects:,} objects"
    return summary + (f"; and {pruned.dead_letters:,} dead letters" if pruned.dead_letters else "")
