"""`geomill storage`: list, upload and download objects in the zones."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, TextColumn, TimeRemainingColumn, TransferSpeedColumn
from rich.progress import Progress as Bar
from rich.table import Table

from geomill.cli import context
from geomill.cli.client import gateway_or_database
from geomill.cli.printing import Json, print_json, print_table, size
from geomill.domain.objectname import ObjectName, check_container, check_zone
from geomill.errors import ConflictError, InvalidName
from geomill.storage import ObjectInfo, Progress, Stored

app = typer.Typer(no_args_is_help=True, help="List, upload and download objects in the zones.")

Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace an existing file or object.")]


@app.command()
def ls(
    folder: Annotated[str, typer.Argument(metavar="ZONE/CONTAINER[/PATH]", help="A container, or a folder in it.")],
    as_json: Json = False,
) -> None:
    """List the objects in a container or in a folder of it, at any depth."""
    zone, container, prefix = _split(folder)
    objects = context.storage().sync.list(check_zone(zone), check_container(container), prefix)
    if as_json:
        typer.echo(json.dumps([_described(info) for info in objects], indent=2, ensure_ascii=False))
        return
    table = Table("size", "modified", "path", box=None)
    table.columns[0].justify = "right"
    for info in objects:
        table.add_row(f"{info.size:,}", info.modified.strftime("%Y-%m-%d %H:%M:%S"), info.name.path)
    Console(soft_wrap=True, highlight=False, markup=False).print(table)


@app.command()
def usage(
    by_asset: Annotated[bool, typer.Option("--assets", help="By asset, the newest first, instead of by zone.")] = False,
    by_platform: Annotated[bool, typer.Option("--platforms", help="By zone and platform.")] = False,
    platform_id: Annotated[str | None, typer.Option("--platform", help="Only assets of this platform.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=1000, help="Number of assets to list.")] = 20,
    as_json: Json = False,
) -> None:
    """Show how much space zones and tables take, or each platform, or each asset."""
    with gateway_or_database() as client:
        if by_asset or platform_id:
            assets = client.operations.asset_storage(platform_id=platform_id, limit=limit).assets
            rows = [
                (a.asset_id, a.platform_id, a.revisions, a.objects, size(a.bytes), size(a.table_bytes)) for a in assets
            ]
            columns = ("asset", "platform", "revisions", "files", "size", "tables")
            print_json(assets) if as_json else print_table(columns, rows, empty="There are no assets.")
            return
        storage = client.operations.storage()
    if as_json:
        print_json(storage)
        return
    if by_platform:
        owned = [(zone, platform) for zone in storage.zones for platform in zone.platforms]
        files = [(z.zone, p.platform_id, p.assets, p.objects, size(p.bytes)) for z, p in owned]
        print_table(("zone", "platform", "assets", "files", "size"), files, empty="There are no files.")
        return
    zones = [(z.zone, z.kind, z.assets, z.objects, size(z.bytes), size(z.free_bytes)) for z in storage.zones]
    tables = ("tables", "postgresql", storage.features.tables, "", size(storage.features.bytes), "")
    print_table(("zone", "kind", "assets", "files", "size", "free"), [*zones, tables], empty="")


@app.command()
def put(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The local file.")],
    target: Annotated[
        str,
        typer.Argument(
            metavar="ZONE/CONTAINER[/PATH]",
            help="Where to put it. If PATH is absent or ends in '/', FILE's name is added.",
        ),
    ],
    overwrite: Overwrite = False,
    as_json: Json = False,
) -> None:
    """Upload a file. The object appears once it is complete."""
    zone, container, path = _split(target)
    name = ObjectName(check_zone(zone), container, path + file.name if not path or path.endswith("/") else path)
    storage = context.storage().sync
    if not overwrite and storage.exists(name):
        raise ConflictError(f"there is already an object '{name}'", remedy="choose another name, or use --overwrite")
    with _bar(file.name) as progress:
        stored = storage.put_file(name, file, progress=progress)
    _print(stored, f"{stored.name}  {stored.size:,} bytes  sha256 {stored.sha256}", as_json=as_json)


@app.command()
def get(
    source: Annotated[str, typer.Argument(metavar="ZONE/CONTAINER/PATH", help="The object.")],
    target: Annotated[
        Path | None, typer.Argument(metavar="[FILE]", help="A file or a folder. Default: the current folder.")
    ] = None,
    overwrite: Overwrite = False,
    as_json: Json = False,
) -> None:
    """Download an object. An interrupted download continues when the command is run again."""
    name = ObjectName.parse(source)
    file = target or Path()
    file = file / name.name if file.is_dir() else file
    if not overwrite and file.exists():
        raise ConflictError(f"there is already a file {file}", remedy="choose another name, or use --overwrite")
    with _bar(name.name) as progress:
        stored = context.storage().sync.get_file(name, file, progress=progress)
    _print(stored, f"{file}  {stored.size:,} bytes  sha256 {stored.sha256}", as_json=as_json)


def _split(text: str) -> tuple[str, str, str]:
    zone, _, container_and_path = text.partition("/")
    container, _, path = container_and_path.partition("/")
    if not container:
        raise InvalidName(f"'{text}' names no container", remedy=f"write {zone or 'ZONE'}/CONTAINER")
    return zone, container, path


@contextmanager
def _bar(title: str) -> Iterator[Progress]:
    """Show a progress bar on a terminal, and nothing elsewhere."""
    columns = (BarColumn(), DownloadColumn(), TransferSpeedColumn(), TimeRemainingColumn())
    console = Console(stderr=True)
    with Bar(
        TextColumn("{task.description}", markup=False), *columns, console=console, disable=not console.is_terminal
    ) as bar:
        task = bar.add_task(title, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


def _print(stored: Stored, text: str, *, as_json: bool) -> None:
    document = {**_name(stored.name), "size": stored.size, "sha256": stored.sha256}
    typer.echo(json.dumps(document, indent=2, ensure_ascii=False) if as_json else text)


def _described(info: ObjectInfo) -> dict[str, Any]:
    return {**_name(info.name), "size": info.size, "etag": info.etag, "modified": info.modified.isoformat()}


def _name(name: ObjectName) -> dict[str, str]:
    return asdict(name)
