"""Progress bars for an upload to bronze and for the job of an asset."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn

from geomill.cli.companions import companions
from geomill.cli.shapefiles import as_one_file
from geomill.cli.uploads import upload_bar
from geomill.client import Client
from geomill.client.files import look_at
from geomill.contract.assets import AssetStatus
from geomill.contract.submissions import SubmissionAccepted
from geomill.contract.uploads import UploadView
from geomill.domain.assets.platform import DDH
from geomill.errors import (
    ConflictError,
    Forbidden,
    GeomillError,
    InputError,
    NotFoundError,
    TooManyRequests,
    Unauthenticated,
)

REPEATED = "repeated"
"""The operation of a submission whose idempotency key already has a request. That request has its own source."""
REFUSALS = (InputError, NotFoundError, ConflictError, Unauthenticated, Forbidden, TooManyRequests)
"""Errors after which no job reads the upload. After any other error the submission may have been accepted."""


def submit_upload(
    client: Client, file: Path, order: dict[str, Any], *, quiet: bool, dry_run: bool = False
) -> SubmissionAccepted:
    """Upload a file with its companions to bronze and submit it. Uploads are removed again if no job will read them."""
    with as_one_file(file) as source:
        return _submit_upload(client, source, order, quiet=quiet, dry_run=dry_run)


def _submit_upload(
    client: Client, file: Path, order: dict[str, Any], *, quiet: bool, dry_run: bool
) -> SubmissionAccepted:
    platform_id = order.get("platform_id", DDH)
    client.platforms.get(platform_id)  # fails before the upload, if there is no gateway or no such platform
    files = [*companions(file), file]
    keyed = order.get("idempotency_key") is not None
    folder = _folder_of(files) if keyed or len(files) > 1 else None
    new: list[UploadView] = []
    try:
        for path in files:
            upload = _sent(client, path, platform_id, folder, new, quiet=quiet)
        place = {"container_name": upload.container_name, "file_name": upload.file_name}
        accepted = client.assets.submit({**order, **place}, dry_run=dry_run)
    except REFUSALS:
        _discard(client, new)
        raise
    if dry_run or accepted.operation == REPEATED:
        _discard(client, new)
    return accepted


def _folder_of(files: Sequence[Path]) -> str:
    """Return a name that follows from the contents, so that the same files have the same names each time."""
    digests = [look_at(path).sha256 for path in files]
    return digests[0] if len(digests) == 1 else sha256("".join(digests).encode()).hexdigest()


def _sent(
    client: Client, file: Path, platform_id: str, folder: str | None, new: list[UploadView], *, quiet: bool
) -> UploadView:
    """Upload a file, and add it to `new` if it was not there before."""
    named = {"platform_id": platform_id, "file_name": f"{folder}/{file.name}", "status": "complete"}
    is_new = folder is None or not client.uploads.page(**named).uploads
    with upload_bar(file.name, quiet=quiet) as progress:
        upload = client.upload(file, platform_id=platform_id, folder=folder, progress=progress)
    if is_new:
        new.append(upload)
    return upload


def _discard(client: Client, uploads: Sequence[UploadView]) -> None:
    for upload in uploads:
        try:
            client.uploads.remove(upload.upload_id)
        except ConflictError:  # a request under way needs the file
            continue
        except GeomillError as error:
            typer.echo(f"warning: the upload {upload.upload_id} could not be removed: {error}", err=True)


def follow(client: Client, any_id: str, *, quiet: bool) -> AssetStatus:
    """Show progress until the job has ended and return the final status."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f} %"),
        TextColumn("{task.fields[eta]}"),
    )
    with Progress(*columns, console=Console(stderr=True), disable=quiet, transient=True) as bars:
        task = bars.add_task("queued", total=1.0, eta="")

        def show(status: AssetStatus) -> None:
            seconds = status.progress.remaining_seconds
            eta = "" if seconds is None else f"{seconds:.0f} s to go"
            bars.update(task, completed=status.progress.fraction, description=status.status, eta=eta)

        return client.assets.wait(any_id, on_progress=show)
