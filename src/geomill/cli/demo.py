"""`geomill demo`: the main job, on this machine: a raster comes in, and leaves as a mosaic of COGs that can be seen."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from geomill.cli import context, folder
from geomill.cli.client import Client, gateway
from geomill.cli.following import ENDED, follow, upload
from geomill.cli.terrain import make_raster
from geomill.domain.objectname import ObjectName, Zone
from geomill.errors import UnavailableError

SEED = 7
REFS = {"dataset_id": "demo", "resource_id": "island", "version_id": "v1"}
START_SECONDS = 120.0
RUN = "from geomill.cli.main import run; run()"


def demo(
    megabytes: Annotated[int, typer.Option("--size", min=1, max=20_000, help="Megabytes of pixels.")] = 300,
    picture: Annotated[Path | None, typer.Option("--picture", help="File for the preview.")] = None,
) -> None:
    """Make a raster, publish it as a mosaic of COGs, and show the result."""
    data = context.settings().database.data
    data.mkdir(parents=True, exist_ok=True)
    pixels = max(int((megabytes * 1_000_000 / 3) ** 0.5) // 512, 1) * 512
    source = data / f"island-{pixels}.tif"
    _say(f"1. A raster: {pixels} x {pixels} pixels, RGB, UTM, {pixels * pixels * 3 / 1e6:.0f} MB of pixels")
    if not source.exists():
        _make(source, pixels)
    typer.echo(f"   {source} ({source.stat().st_size / 1e6:.0f} MB compressed)")
    with _platform(data), gateway() as client:
        status = _publish(client, source)
        _show(client, status, picture or data / "preview.webp")


def _say(text: str) -> None:
    typer.echo(typer.style(f"\n{text}", bold=True))


def _make(source: Path, pixels: int) -> None:
    columns = (TextColumn("   {task.description}"), BarColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bars:
        task = bars.add_task("drawing", total=pixels)
        make_raster(source, pixels, SEED, lambda done, total: bars.update(task, completed=done, total=total))


@contextmanager
def _platform(data: Path) -> Iterator[None]:
    """The one that runs on the data folder, or one for as long as this takes."""
    if folder.read_address(data):
        yield
        return
    _say("2. The platform: PostgreSQL, an orchestrator, a worker and the gateway, all private to this folder")
    command = [sys.executable, "-c", RUN, "--data", str(data), "up", "--port", "0"]
    environ = {**os.environ, "GEOMILL_LOG_FORMAT": "json"}
    with (data / "up.log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, env=environ)  # noqa: S603  ourselves
        try:
            _await_ready(process, data)
            yield
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(60)


def _await_ready(process: subprocess.Popen[bytes], data: Path) -> None:
    deadline = time.monotonic() + START_SECONDS
    while process.poll() is None and time.monotonic() < deadline:
        if "geomill is ready" in (data / "up.log").read_text(errors="replace"):
            typer.echo(f"   {folder.read_address(data)}, its log is {data / 'up.log'}")
            return
        time.sleep(0.1)
    raise UnavailableError("the platform did not start", remedy=f"see {data / 'up.log'}")


def _publish(client: Client, source: Path) -> dict[str, Any]:
    _say("3. Publish it: validate, lay a grid, warp and compress tiles in parallel, mosaic, statistics, preview, STAC")
    container, path = upload(source, quiet=False)
    begun = time.monotonic()
    accepted = client.post(
        "/api/platform/submit",
        {
            "platform_refs": REFS,
            "data_type": "raster",
            "workflow_id": "process_large_raster",
            "container_name": container,
            "file_name": path,
            "overwrite": True,
        },
    )
    typer.echo(f"   asset {accepted['asset_id']}, revision {accepted['revision']}")
    status = follow(client, accepted["request_id"], quiet=False)
    if status["status"] != "completed":
        raise UnavailableError(f"the work ended as {status['status']}: {(status['error'] or {}).get('message')}")
    typer.echo(f"   completed in {time.monotonic() - begun:.1f} s")
    return status


def _show(client: Client, status: dict[str, Any], picture: Path) -> None:
    outputs = status["outputs"]
    _say("4. What came out")
    typer.echo(f"   {outputs['tile_count']} tiles of {outputs['tile_size']} pixels each way, one mosaic, one STAC item")
    typer.echo(f"   silver/{status['asset']['blob_path']}")
    for number, band in enumerate(outputs["statistics"], 1):
        range_ = f"{band['minimum']:g} to {band['maximum']:g}"
        typer.echo(f"   band {number}: {range_}, mean {band['mean']:.1f}, standard deviation {band['stddev']:.1f}")
    preview = next(file for file in outputs["files"] if file["path"].endswith("preview.webp"))
    name = ObjectName(Zone(preview["zone"]), preview["container"], preview["path"])
    context.storage().sync.get_file(name, picture)
    typer.echo(f"   a picture of it: {picture}")
    _approve(client, status)


def _approve(client: Client, status: dict[str, Any]) -> None:
    _say("5. A reviewer approves it as public, and it is copied to the external zone")
    body = {"asset_id": status["asset_id"], "clearance_level": "public", "expected_revision": status["revision"]}
    job = client.post("/api/platform/approve", body)["export_job_id"]
    found = {"status": "queued"}
    while found["status"] not in ENDED:
        time.sleep(0.2)
        found = client.get(f"/api/v1/jobs/{job}", outputs=False)
    outside = client.get(f"/api/platform/status/{status['asset_id']}")["export"]
    typer.echo(
        f"   {found['status']}: {len(outside['files'])} files outside, of revision {outside['external_revision']}"
    )
