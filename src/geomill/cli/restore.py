"""`geomill restore`: restores a platform from a backup, into a new data folder or an empty database server."""

from __future__ import annotations

import asyncio
import json
from dataclasses import asdict
from typing import Annotated, Any

import typer

from geomill.backup.manifest import Manifest
from geomill.backup.restoration import (
    RestoredDatabases,
    RestoredObjects,
    open_single,
    require_empty_target,
    require_fit,
    restore_databases,
    restore_keys,
    restore_objects,
)
from geomill.backup.verification import read_manifest
from geomill.catalogue import bulk
from geomill.cli import context
from geomill.cli.backup import Json, Sha256, bar, listed
from geomill.cli.catalogue import described
from geomill.cli.db import migrate_url, plan_json, status_url
from geomill.storage.depot import open_depot
from geomill.store.migrate import MigrationStatus


def restore(
    source: Annotated[str, typer.Argument(metavar="FROM", help="The folder or URL of the backup.")],
    digest: Sha256 = None,
    cancel_jobs: Annotated[
        bool, typer.Option("--cancel-jobs", help="Cancel the jobs that were running; by default they go on.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Restore a backup into an empty platform. The exit code is 1 if the result differs from the backup."""
    settings = context.settings()
    storage = context.storage().sync
    depot = open_depot(source, storage.recipe)
    manifest = read_manifest(depot, digest)
    with context.database_url() as url, bar(hidden=as_json) as meter:
        outside_url = context.external_database_url()
        require_fit(manifest, has_outside=outside_url is not None)
        asyncio.run(require_empty_target(url, outside_url))
        keys = restore_keys(depot, manifest, settings.database.data)
        objects = restore_objects(depot, manifest, storage, meter)
        asyncio.run(migrate_url(url))
        context.make_external_ready()
        databases = asyncio.run(
            restore_databases(
                depot,
                manifest,
                url,
                outside_url,
                meter,
                job_queue=settings.queue.job_queue_name,
                cancel_jobs=cancel_jobs,
                etags=objects.etags,
            )
        )
        check, status = asyncio.run(_check_result(url))
    sound = not (objects.missing or objects.different) and check.sound and status.up_to_date
    if as_json:
        typer.echo(json.dumps(_document(sound, keys, objects, databases, check, status), indent=2, ensure_ascii=False))
    else:
        typer.echo("\n".join(_lines(manifest, objects, databases, check, status)))
    if not sound:
        raise typer.Exit(1)


async def _check_result(url: str) -> tuple[bulk.CatalogueCheck, MigrationStatus]:
    async with open_single(url) as conn:
        check = await bulk.check(conn)
    return check, await status_url(url)


def _document(
    sound: bool,
    keys: list[str],
    objects: RestoredObjects,
    databases: RestoredDatabases,
    check: bulk.CatalogueCheck,
    status: MigrationStatus,
) -> dict[str, Any]:
    return {
        "sound": sound,
        "keys": keys,
        "objects": {name: value for name, value in asdict(objects).items() if name != "etags"},
        "items": asdict(databases.inside),
        "items_outside": asdict(databases.outside) if databases.outside else None,
        "jobs": asdict(databases.resumed),
        "catalogue": described(check),
        "database": plan_json(status.plan),
    }


def _lines(
    manifest: Manifest,
    objects: RestoredObjects,
    databases: RestoredDatabases,
    check: bulk.CatalogueCheck,
    status: MigrationStatus,
) -> list[str]:
    items, resumed = databases.inside, databases.resumed
    rows = sum(part.rows for part in (*manifest.inside.tables, *manifest.inside.features))
    lines = [
        f"{rows:,} rows, {len(manifest.inside.features):,} tables of features",
        f"{objects.written:,} objects written, {objects.unchanged:,} already present",
        f"{check.expected:,} items of assets, {items.lacking:,} others; {items.different:,} differ from the backup",
        f"{resumed.jobs - resumed.cancelled:,} jobs go on, {resumed.cancelled:,} are cancelled",
        *listed("schedule whose missed firings are not made up for", list(resumed.postponed)),
        *listed("missing object", objects.missing),
        *listed("existing object with other content, left unchanged", objects.different),
    ]
    lines.append(
        "the catalogue agrees with the assets"
        if check.sound
        else "the catalogue differs from the assets: run 'geomill catalogue check'"
    )
    lines.append(
        "the database is up to date" if status.up_to_date else "the database is not up to date: run 'geomill db status'"
    )
    return lines
