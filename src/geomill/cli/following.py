"""Progress bars for an upload to bronze and for the job of an asset."""

from __future__ import annotations

import asyncio
import hashlib
from pathlib import Path
from typing import Any

import typer
from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn, TransferSpeedColumn

from geomill.cli import context
from geomill.client import Client
from geomill.contract.assets import AssetStatus
from geomill.contract.submissions import SubmissionAccepted
from geomill.domain.assets.platform import DDH, own_container
from geomill.domain.ids import new_id
from geomill.domain.objectname import ObjectName, Zone
from geomill.errors import (
    ConflictError,
    Forbidden,
    GeomillError,
    InputError,
    NotFoundError,
    TooManyRequests,
    Unauthenticated,
)

CONTAINER = "uploads"
"""The container in bronze for uploads from the command line for the platform ddh."""
REPEATED = "repeated"
"""The operation of a submission whose idempotency key already has a request. That request has its own source."""
REFUSALS = (InputError, NotFoundError, ConflictError, Unauthenticated, Forbidden, TooManyRequests)
"""Errors after which no job reads the upload. After any other error the submission may have been accepted."""


def submit_upload(
    client: Client, file: Path, order: dict[str, Any], *, quiet: bool, dry_run: bool = False
) -> SubmissionAccepted:
    """Upload a file to bronze and submit it. The upload is deleted again if no job will read it."""
    client.connection.send("GET", "/health/live")  # fails before the upload if there is no gateway
    name = upload_name(file, order.get("platform_id", DDH), repeatable=order.get("idempotency_key") is not None)
    is_new = not asyncio.run(context.storage().exists(name))
    if is_new:
        _upload(file, name, quiet=quiet)
    place = {"container_name": name.container, "file_name": name.path}
    try:
        accepted = client.assets.submit({**order, **place}, dry_run=dry_run)
    except REFUSALS:
        if is_new:
            _discard(name)
        raise
    if is_new and (dry_run or accepted.operation == REPEATED):
        _discard(name)
    return accepted


def _discard(name: ObjectName) -> None:
    try:
        asyncio.run(context.storage().delete(name))
    except GeomillError as error:
        typer.echo(f"warning: the upload {name} could not be deleted: {error}", err=True)


def upload_name(file: Path, platform_id: str, *, repeatable: bool) -> ObjectName:
    """Return the name of an upload in the platform's container in bronze. A repeatable submission names the same file
    each time, so its name comes from its content. Every other upload has a name of its own."""
    if not file.is_file():
        raise InputError(
            f"there is no file {file}", remedy="give the path of a local file, or use --container for a file in bronze"
        )
    container = CONTAINER if platform_id == DDH else own_container(platform_id)
    return ObjectName(Zone.BRONZE, container, f"{_content_hash(file) if repeatable else new_id()}/{file.name}")


def _content_hash(file: Path) -> str:
    with file.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()


def _upload(file: Path, name: ObjectName, *, quiet: bool) -> None:
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        DownloadColumn(),
        TransferSpeedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), disable=quiet, transient=True) as bars:
        task = bars.add_task(f"upload {file.name}", total=file.stat().st_size)

        def update_bar(done: int, total: int) -> None:
            bars.update(task, completed=done, total=total)

        asyncio.run(context.storage().put_file(name, file, progress=update_bar))


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
