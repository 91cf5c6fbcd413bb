"""Bars on the terminal: an upload to bronze, and the work on an asset."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import Any

import typer
from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn, TransferSpeedColumn

from geomill.cli import context
from geomill.cli.client import Client
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
"""In bronze, for what comes from the command line for the platform ddh."""
REPEATED = "repeated"
"""The operation of an order whose idempotency key has a request already, with a source of its own."""
ENDED = ("completed", "failed", "cancelled", "superseded")
FASTEST, SLOWEST = 0.1, 1.0


REFUSALS = (InputError, NotFoundError, ConflictError, Unauthenticated, Forbidden, TooManyRequests)
"""After these, nobody will read what was uploaded. After any other error the order may have been accepted."""


def submit_upload(
    client: Client, file: Path, order: dict[str, Any], *, quiet: bool, dry_run: bool = False
) -> dict[str, Any]:
    """Upload a file to bronze and submit it. What no order needs is deleted again."""
    client.get("/health/live")  # before anything is uploaded for nobody
    container, path = upload(file, quiet=quiet, platform_id=order.get("platform_id", DDH))
    place = {"container_name": container, "file_name": path}
    try:
        accepted: dict[str, Any] = client.post("/api/platform/submit", {**order, **place}, dry_run=dry_run)
    except REFUSALS:
        _discard(container, path)
        raise
    if dry_run or accepted["operation"] == REPEATED:
        _discard(container, path)
    return accepted


def _discard(container: str, path: str) -> None:
    try:
        asyncio.run(context.storage().delete(ObjectName(Zone.BRONZE, container, path)))
    except GeomillError as error:
        typer.echo(f"warning: the upload bronze/{container}/{path} could not be deleted: {error}", err=True)


def upload(file: Path, *, quiet: bool, platform_id: str = DDH) -> tuple[str, str]:
    """Into a container of the platform in bronze, under a name that nobody else has: container and path."""
    if not file.is_file():
        raise InputError(f"there is no file {file}", remedy="give the path of a file, or --container for one in bronze")
    container = CONTAINER if platform_id == DDH else own_container(platform_id)
    name = ObjectName(Zone.BRONZE, container, f"{new_id()}/{file.name}")
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        DownloadColumn(),
        TransferSpeedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), disable=quiet, transient=True) as bars:
        task = bars.add_task(f"upload {file.name}", total=file.stat().st_size)

        def told(done: int, total: int) -> None:
            bars.update(task, completed=done, total=total)

        asyncio.run(context.storage().put_file(name, file, progress=told))
    return name.container, name.path


def follow(client: Client, given: str, *, quiet: bool) -> dict[str, Any]:
    """The status, once the work has ended."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f} %"),
        TextColumn("{task.fields[eta]}"),
    )
    pause = FASTEST
    with Progress(*columns, console=Console(stderr=True), disable=quiet, transient=True) as bars:
        task = bars.add_task("queued", total=1.0, eta="")
        while True:
            found: dict[str, Any] = client.get(f"/api/platform/status/{given}")
            progress = found["progress"]
            seconds = progress["remaining_seconds"]
            eta = "" if seconds is None else f"{seconds:.0f} s to go"
            bars.update(task, completed=progress["fraction"], description=found["status"], eta=eta)
            if found["status"] in ENDED:
                return found
            time.sleep(pause)
            pause = min(pause * 1.2, SLOWEST)
