"""`geomill uploads`: files on their way into bronze, and files that arrived over HTTP."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from geomill.cli.client import gateway_or_database
from geomill.cli.printing import Json, print_json, print_table, size
from geomill.client.files import UploadProgress
from geomill.contract.uploads import UploadFromUrl, UploadView
from geomill.domain.assets.upload import UploadStatus

app = typer.Typer(no_args_is_help=True, help="Upload files into bronze, list and remove uploads.")

UploadId = Annotated[str, typer.Argument(metavar="UPLOAD", help="Id of the upload.")]
Platform = Annotated[str | None, typer.Option("--platform", help="The platform of the file. Default: that of the key.")]
Folder = Annotated[
    str | None, typer.Option("--folder", help="Folder for files that belong together. Default: one of its own.")
]


@app.command()
def send(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The local file.")],
    platform_id: Platform = None,
    folder: Folder = None,
    as_json: Json = False,
) -> None:
    """Upload a file. Run it again after it broke off, and it continues."""
    with gateway_or_database() as client, upload_bar(file.name, quiet=as_json) as progress:
        upload = client.upload(file, platform_id=platform_id, folder=folder, progress=progress)
    _print(upload, as_json=as_json)


@app.command("from-url")
def from_url(
    url: Annotated[str, typer.Argument(metavar="URL", help="A URL that an administrator has allowed.")],
    platform_id: Platform = None,
    folder: Folder = None,
    file_name: Annotated[str | None, typer.Option("--name", help="Name of the file. Default: from the URL.")] = None,
    sha256: Annotated[str | None, typer.Option("--sha256", help="The checksum that the file must have.")] = None,
    wait: Annotated[bool, typer.Option("--wait", help="Show progress until the file is there.")] = False,
    as_json: Json = False,
) -> None:
    """Have an orchestrator fetch a file."""
    order = UploadFromUrl(url=url, platform_id=platform_id, folder=folder, file_name=file_name, sha256=sha256)
    with gateway_or_database() as client:
        upload = client.uploads.from_url(order)
        if wait:
            with upload_bar(upload.file_name.rpartition("/")[2], quiet=as_json) as progress:
                upload = client.uploads.wait(upload.upload_id, progress=progress)
    _print(upload, as_json=as_json)
    if upload.status is UploadStatus.FAILED:
        raise typer.Exit(1)


@app.command("list")
def list_uploads(
    platform_id: Annotated[str | None, typer.Option("--platform", help="Only uploads of this platform.")] = None,
    status: Annotated[UploadStatus | None, typer.Option(help="Only uploads in this state.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=1000, help="Number of uploads to list.")] = 20,
    as_json: Json = False,
) -> None:
    """List uploads, the newest first."""
    with gateway_or_database() as client:
        uploads = client.uploads.page(platform_id=platform_id, status=status, limit=limit).uploads
    if as_json:
        print_json(uploads)
        return
    rows = [
        (u.upload_id, u.platform_id, u.status.value, size(u.received_bytes), size(u.length), u.updated_at, u.file_name)
        for u in uploads
    ]
    columns = ("upload", "platform", "status", "received", "size", "changed", "file")
    print_table(columns, rows, empty="There are no uploads.")


@app.command()
def show(upload_id: UploadId, as_json: Json = False) -> None:
    """Show an upload."""
    with gateway_or_database() as client:
        _print(client.uploads.get(upload_id), as_json=as_json)


@app.command()
def remove(
    upload_ids: Annotated[list[str], typer.Argument(metavar="UPLOAD…", help="Ids of the uploads.")],
) -> None:
    """Remove uploads and their files. A file that a request under way needs stays."""
    with gateway_or_database() as client:
        for upload_id in upload_ids:
            client.uploads.remove(upload_id)
            typer.echo(f"removed {upload_id}")


@contextmanager
def upload_bar(title: str, *, quiet: bool) -> Iterator[UploadProgress]:
    """Show the progress of an upload, with speed and remaining time."""
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn, TransferSpeedColumn

    columns = (BarColumn(), DownloadColumn(), TransferSpeedColumn(), TimeRemainingColumn())
    title_column = TextColumn("{task.description}", markup=False)
    with Progress(title_column, *columns, console=Console(stderr=True), disable=quiet, transient=True) as bars:
        task = bars.add_task(f"upload {title}", total=None)
        yield lambda done, total: bars.update(task, completed=done, total=total or None)


def _print(upload: UploadView, *, as_json: bool) -> None:
    if as_json:
        print_json(upload)
        return
    of = "" if upload.length is None else f" of {upload.length:,}"
    lines = [
        f"{upload.upload_id}  {upload.status.value}, {upload.received_bytes:,}{of} bytes",
        f"  container {upload.container_name}",
        f"  file {upload.file_name}",
    ]
    lines += [f"  sha256 {upload.sha256}"] if upload.sha256 else []
    lines += [f"  error: {upload.error}"] if upload.error else []
    typer.echo("\n".join(lines))
