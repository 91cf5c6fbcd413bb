"""`geomill backup`: take a backup of the whole platform, and look whether one is sound."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TaskID, TextColumn, TimeRemainingColumn
from typer.core import TyperGroup

from geomill.backup.creation import BackupSource, create
from geomill.backup.manifest import Manifest
from geomill.backup.metering import ProgressMeter
from geomill.backup.verification import read_manifest, verify
from geomill.backup.zones import Objects
from geomill.cli import context
from geomill.storage.depot import Depot, open_depot

SHOWN = 20
"""Lines of a list; --json has all of them."""


class _Backups(TyperGroup):
    """`geomill backup TO` is short for `geomill backup create TO`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if args and args[0] not in self.commands and args[0] not in ctx.help_option_names:
            args = ["create", *args]
        return super().parse_args(ctx, args)


app = typer.Typer(cls=_Backups, no_args_is_help=True, help="Take a backup of the whole platform, and verify one.")

Json = Annotated[bool, typer.Option("--json", help="Print JSON, and no progress.")]
Sha256 = Annotated[
    str | None, typer.Option("--sha256", metavar="HASH", help="What the backup printed: refuse any other.")
]


@app.command("create")
def create_backup(
    target: Annotated[
        str, typer.Argument(metavar="TO", help="An empty folder, az://account/container/path or s3://bucket/path.")
    ],
    objects: Annotated[
        Objects,
        typer.Option(help="Copy the objects of all zones, only list them, or copy those that lie in folders."),
    ] = Objects.AUTO,
    known_hashes: Annotated[
        bool,
        typer.Option(
            "--known-hashes", help="Do not read objects that are only listed: take the hashes that are known."
        ),
    ] = False,
    as_json: Json = False,
) -> None:
    """Back up databases, objects and keys while everything runs. Also: geomill backup TO."""
    depot = _depot(target)
    with context.ready_database() as url, bar(hidden=as_json) as meter:
        settings = context.settings()
        source = BackupSource(url, context.external_database_url(), context.storage().sync, settings.database.data)
        manifest = create(source, depot, objects, meter, known_hashes=known_hashes)
    _print(_described(manifest), _lines(manifest, depot), as_json=as_json)


@app.command("verify")
def verify_backup(
    source: Annotated[str, typer.Argument(metavar="FROM", help="Where the backup lies.")],
    digest: Sha256 = None,
    as_json: Json = False,
) -> None:
    """Read a whole backup and compare it with its manifest; exit code 1 if it is damaged. Needs no database."""
    depot = _depot(source)
    with bar(hidden=as_json) as meter:
        verdict = verify(depot, read_manifest(depot, digest), meter)
    found = {"sound": verdict.sound, "problems": verdict.problems, "extra": verdict.extra}
    lines = [*listed("wrong", verdict.problems), *listed("not part of the backup", verdict.extra)]
    state = "the backup is whole and unchanged" if verdict.sound else "the backup is damaged"
    _print(
        {**found, **_described(verdict.manifest)}, [*_lines(verdict.manifest, depot), *lines, state], as_json=as_json
    )
    if not verdict.sound:
        raise typer.Exit(1)


def _depot(text: str) -> Depot:
    return open_depot(text, context.storage().recipe)


def _described(manifest: Manifest) -> dict[str, Any]:
    return {
        "sha256": manifest.digest,
        "geomill_version": manifest.geomill_version,
        "taken_at": manifest.inside.taken_at.isoformat(),
        "seconds": round((manifest.finished_at - manifest.started_at).total_seconds(), 1),
        "rows": _rows(manifest),
        "feature_tables": len(manifest.inside.features),
        "objects": manifest.objects.objects,
        "objects_copied": manifest.objects.copied,
        "object_bytes": manifest.objects.object_bytes,
        "objects_missing": manifest.objects.missing,
        "left_out": _left_out(manifest),
        "keys": [key.name for key in manifest.keys],
    }


def _lines(manifest: Manifest, depot: Depot) -> list[str]:
    objects = manifest.objects
    lines = [
        f"backup of {manifest.inside.taken_at:%Y-%m-%d %H:%M:%S} UTC in {depot.place}",
        f"{_rows(manifest):,} rows, {len(manifest.inside.features):,} tables of features",
        f"{objects.objects:,} objects with {objects.object_bytes:,} bytes, {objects.copied:,} of them copied",
    ]
    if objects.missing:
        lines.append(f"{objects.missing:,} objects that assets refer to were not in their zones")
    lines += listed("left out", _left_out(manifest))
    return [*lines, f"sha256 {manifest.digest}"]


def _rows(manifest: Manifest) -> int:
    return sum(part.rows for part in (*manifest.inside.tables, *manifest.inside.features))


def _left_out(manifest: Manifest) -> list[str]:
    return [*manifest.inside.left_out, *(manifest.outside.left_out if manifest.outside else [])]


def listed(title: str, names: list[str]) -> list[str]:
    more = [f"{title}: {len(names) - SHOWN:,} more, see --json"] if len(names) > SHOWN else []
    return [*(f"{title}: {name}" for name in names[:SHOWN]), *more]


def _print(document: dict[str, Any], lines: list[str], *, as_json: bool) -> None:
    typer.echo(json.dumps(document, indent=2, ensure_ascii=False) if as_json else "\n".join(lines))


class _Bar:
    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._phase: TaskID | None = None

    def begin(self, title: str, total: int) -> None:
        self._finish()
        self._phase = self._progress.add_task(title, total=total)

    def advance(self, amount: int) -> None:
        if self._phase is not None:
            self._progress.advance(self._phase, amount)

    def _finish(self) -> None:
        """What a phase was thought to be may have been too much."""
        if self._phase is not None:
            done = self._progress.tasks[self._progress.task_ids.index(self._phase)].completed
            self._progress.update(self._phase, total=max(done, 1), completed=max(done, 1))


@contextmanager
def bar(*, hidden: bool) -> Iterator[ProgressMeter]:
    """On a terminal; elsewhere, nothing is shown."""
    console = Console(stderr=True)
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), DownloadColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, disable=hidden or not console.is_terminal) as progress:
        yield _Bar(progress)
