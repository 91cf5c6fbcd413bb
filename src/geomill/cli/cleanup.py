"""`geomill storage cleanup`: delete old files and tables now, or tell what would go."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Annotated

import typer

from geomill.cli import context
from geomill.cli.client import gateway_or_database
from geomill.cli.printing import Json, print_json, print_table, size
from geomill.cli.storage import app

if TYPE_CHECKING:
    from geomill.contract.operations import CleanupView


@app.command()
def cleanup(
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print what would go and delete nothing.")] = False,
    limit: Annotated[int, typer.Option(min=1, max=1000, help="With --dry-run: number of entries of a kind.")] = 100,
    as_json: Json = False,
) -> None:
    """Delete the data of old revisions and old uploads, as the settings say. Orchestrators do it by themselves."""
    if dry_run:
        with gateway_or_database() as client:
            view = client.operations.cleanup(limit=limit)
        print_json(view) if as_json else _print(view)
        return
    with context.ready_database() as url:
        revisions, uploads = asyncio.run(_clean(url))
    if as_json:
        print_json({"revisions": revisions, "uploads": uploads})
    else:
        typer.echo(f"deleted the data of {revisions} revisions and {uploads} uploads")


async def _clean(url: str) -> tuple[int, int]:
    from geomill.engine.maintenance.leftovers import LeftoverOptions, Leftovers
    from geomill.engine.maintenance.uploads import OldUploadOptions, OldUploads
    from geomill.store.pool import open_pool

    settings, storage = context.settings(), context.storage()
    async with open_pool(url, size=2) as pool:
        leftovers = Leftovers(pool, storage, LeftoverOptions.of(settings.retention))
        uploads = OldUploads(pool, storage, OldUploadOptions.of(settings.upload, settings.retention))
        return await _repeated(leftovers.run_once), await _repeated(uploads.run_once)


async def _repeated(run_once: Callable[[], Awaitable[int]]) -> int:
    total = 0
    while done := await run_once():
        total += done
    return total


def _print(view: CleanupView) -> None:
    rows = [("revision", f"{r.asset_id} r{r.revision}", r.reason, r.ended_at, size(r.bytes)) for r in view.revisions]
    rows += [("upload", u.file_name, u.status.value, u.updated_at, size(u.received_bytes)) for u in view.uploads]
    if view.jobs:
        rows.append(("jobs", f"details of {view.jobs:,} jobs", "ended", None, ""))
    print_table(("kind", "what", "why", "since", "size"), rows, empty="Nothing is old enough to be deleted.")
    if view.more:
        typer.echo("There is more; raise --limit to see it.")
