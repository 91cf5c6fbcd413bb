"""`geomill storage`: look at the zones, put files in and get them out."""

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
from geomill.domain.objectname import ObjectName, check_container, check_zone
from geomill.errors import ConflictError, InvalidName
from geomill.storage import ObjectInfo, Progress, Stored

app = typer.Typer(no_args_is_help=True, help="See what lies in the zones, put files in and get them out.")

Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace what is there.")]


@app.command()
def ls(
    folder: Annotated[str, typer.Argument(metavar="ZONE/CONTAINER[/PATH]", help="A container, or a folder of it.")],
    as_json: Json = False,
) -> None:
    """What lies in a container, at any depth."""
    zone, container, prefix = _split(folder)
    found = context.storage().sync.list(check_zone(zone), check_container(container), prefix)
    if as_json:
        typer.echo(json.dumps([_described(info) for info in found], indent=2, ensure_ascii=False))
        return
    table = Table("size", "modified", "path", box=None)
    table.columns[0].justify = "right"
    for info in found:
        table.add_row(f"{info.size:,}", info.modified.strftime("%Y-%m-%d %H:%M:%S"), info.name.path)
    Console(soft_wrap=True, highlight=False, markup=False).print(table)


@app.command()
def put(
    file: Annotated[Path, typer.Argument(metavar="FILE")],
    target: Annotated[
        str,
        typer.Argument(metavar="ZONE/CONTAINER[/PATH]", help="Without a path, or with '/' at its end: FILE's name."),
    ],
    overwrite: Overwrite = False,
    as_json: Json = False,
) -> None:
    """Upload a file. It appears when it is whole."""
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
    source: Annotated[str, typer.Argument(metavar="ZONE/CONTAINER/PATH")],
    target: Annotated[
        Path | None, typer.Argument(metavar="[FILE]", help="A file or a folder; here when absent.")
    ] = None,
    overwrite: Overwrite = False,
    as_json: Json = False,
) -> None:
    """Download an object. A download that broke off is gone on with when it is asked for again."""
    name = ObjectName.parse(source)
    file = target or Path()
    file = file / name.name if file.is_dir() else file
    if not overwrite and file.exists():
        raise ConflictError(f"there is already a file {file}", remedy="choose another name, or use --overwrite")
    with _bar(name.name) as progress:
        stored = context.storage().sync.get_file(name, file, progress=progress)
    _print(stored, f"{file}  {stored.size:,} bytes  sha256 {stored.sha256}", as_json=as_json)


def _split(text: str) -> tuple[str, str, str]:
    zone, _, rest = text.partition("/")
    container, _, path = rest.partition("/")
    if not container:
        raise InvalidName(f"'{text}' names no container", remedy=f"write {zone or 'ZONE'}/CONTAINER")
    return zone, container, path


@contextmanager
def _bar(title: str) -> Iterator[Progress]:
    """On a terminal; elsewhere, nothing is shown."""
    columns = (BarColumn(), DownloadColumn(), TransferSpeedColumn(), TimeRemainingColumn())
    console = Console(stderr=True)
    with Bar(
        TextColumn("{task.description}", markup=False), *columns, console=console, disable=not console.is_terminal
    ) as bar:
        task = bar.add_task(title, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


def _print(stored: Stored, text: str, *, as_json: bool) -> None:
    found = {**_name(stored.name), "size": stored.size, "sha256": stored.sha256}
    typer.echo(json.dumps(found, indent=2, ensure_ascii=False) if as_json else text)


def _described(info: ObjectInfo) -> dict[str, Any]:
    return {**_name(info.name), "size": info.size, "etag": info.etag, "modified": info.modified.isoformat()}


def _name(name: ObjectName) -> dict[str, str]:
    return asdict(name)
