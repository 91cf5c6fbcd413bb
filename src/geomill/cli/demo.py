"""`geomill demo`: publishes a generated raster and a generated vector layer on this machine, and links to the maps."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
import webbrowser
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from geomill.cli import context, folder
from geomill.cli.client import gateway
from geomill.cli.following import follow, submit_upload
from geomill.cli.gateway import listen
from geomill.cli.parcels import make_parcels
from geomill.cli.terrain import make_raster
from geomill.client import Client
from geomill.contract.assets import AssetStatus
from geomill.contract.sessions import NewSignInLink
from geomill.domain.objectname import ObjectName, Zone
from geomill.errors import ConflictError, UnavailableError

SEED = 7
RASTER_REFS = {"dataset_id": "demo", "resource_id": "island", "version_id": "v1"}
VECTOR_REFS = {"dataset_id": "demo", "resource_id": "parcels", "version_id": "v1"}
START_SECONDS = 120.0
RUN = "from geomill.cli.main import run; run()"
SHOWN = {
    "viewer": "map in the browser",
    "stac_item": "STAC item",
    "tiles": "tiles",
    "wmts": "WMTS",
    "features": "OGC API Features",
}


def demo(
    megabytes: Annotated[
        int, typer.Option("--size", min=1, max=20_000, help="Size of the raster in megabytes of pixels.")
    ] = 300,
    features: Annotated[
        int, typer.Option("--features", min=1, max=10_000_000, help="Number of polygons in the layer.")
    ] = 200_000,
    picture: Annotated[Path | None, typer.Option("--picture", help="File to write the preview to.")] = None,
    keep: Annotated[
        bool | None,
        typer.Option(
            "--keep/--leave", help="Keep running until Ctrl-C, or exit. Default: keep running on a terminal only."
        ),
    ] = None,
) -> None:
    """Generate a raster and a vector layer, publish and approve them, and print the links to view them."""
    data = context.settings().database.data
    data.mkdir(parents=True, exist_ok=True)
    raster, vector = _sources(data, megabytes, features)
    with _platform(data), gateway() as client:
        island = _publish_raster(client, raster)
        fields = _publish_vector(client, vector)
        _show(island, fields, picture or data / "preview.webp")
        _say("6. A reviewer approves both as public, and they are copied to the external zone")
        for status in (island, fields):
            _approve(client, status)
        _links(client, island, fields)
        if sys.stdout.isatty() if keep is None else keep:
            _console(client)
            _wait()
        else:
            typer.echo(f"   these links work while the platform runs: geomill --data {data} up")


def _sources(data: Path, megabytes: int, features: int) -> tuple[Path, Path]:
    pixels = max(int((megabytes * 1_000_000 / 3) ** 0.5) // 512, 1) * 512
    raster, vector = data / f"island-{pixels}.tif", data / f"parcels-{pixels}-{features}.gpkg"
    _say(f"1. A raster of {pixels} x {pixels} pixels, RGB, UTM, {pixels * pixels * 3 / 1e6:.0f} MB of pixels,")
    _say(f"   and a layer of {features:,} polygons with four attributes", after="")
    if not raster.exists():
        _draw(raster, pixels)
    if not vector.exists():
        make_parcels(vector, features, pixels, SEED)
    for source in (raster, vector):
        typer.echo(f"   {source} ({source.stat().st_size / 1e6:.0f} MB)")
    return raster, vector


def _say(text: str, after: str = "\n") -> None:
    typer.echo(typer.style(f"{after}{text}", bold=True))


def _draw(source: Path, pixels: int) -> None:
    columns = (TextColumn("   {task.description}"), BarColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bars:
        task = bars.add_task("drawing", total=pixels)
        make_raster(source, pixels, SEED, lambda done, total: bars.update(task, completed=done, total=total))


@contextmanager
def _platform(data: Path) -> Iterator[None]:
    """Use the platform that runs on the data folder, or run one for the duration of the block."""
    if folder.read_address(data):
        yield
        return
    _say(
        "2. The platform: PostgreSQL, orchestrator, worker, gateway and the external server, all private to this folder"
    )
    command = [sys.executable, "-P", "-c", RUN, "--data", str(data), "up", "--port", str(_port())]
    environ = {**os.environ, "GEOMILL_LOG_FORMAT": "json"}
    with (data / "up.log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, env=environ)  # noqa: S603  ourselves
        try:
            _await_ready(process, data)
            yield
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(60)


def _port() -> int:
    """Return the configured port, so that links work after a restart, or 0 for any port if it is in use."""
    settings = context.settings().gateway
    try:
        with listen(settings.gateway_host, settings.gateway_port):
            return settings.gateway_port
    except ConflictError:
        return 0


def _await_ready(process: subprocess.Popen[bytes], data: Path) -> None:
    deadline = time.monotonic() + START_SECONDS
    while process.poll() is None and time.monotonic() < deadline:
        if "geomill is ready" in (data / "up.log").read_text(errors="replace"):
            typer.echo(f"   {folder.read_address(data)}, its log is {data / 'up.log'}")
            return
        time.sleep(0.1)
    raise UnavailableError("the platform did not start", remedy=f"read {data / 'up.log'}")


def _publish_raster(client: Client, source: Path) -> AssetStatus:
    _say("3. Publish the raster: validate, lay a grid, warp and compress tiles in parallel, mosaic, statistics, STAC")
    return _publish(
        client, source, {"platform_refs": RASTER_REFS, "data_type": "raster", "workflow_id": "process_large_raster"}
    )


def _publish_vector(client: Client, source: Path) -> AssetStatus:
    _say("4. Publish the layer: validate, repair and load in parallel, index, swap the table in, STAC")
    return _publish(client, source, {"platform_refs": VECTOR_REFS, "data_type": "vector"})


def _publish(client: Client, source: Path, order: dict[str, Any]) -> AssetStatus:
    begun = time.monotonic()
    accepted = submit_upload(client, source, {**order, "overwrite": True}, quiet=False)
    typer.echo(f"   asset {accepted.asset_id}, revision {accepted.revision}")
    status = follow(client, accepted.request_id, quiet=False)
    if status.status != "completed":
        raise UnavailableError(f"the job ended as {status.status}: {status.error and status.error.message}")
    typer.echo(f"   completed in {time.monotonic() - begun:.1f} s")
    return status


def _show(island: AssetStatus, fields: AssetStatus, picture: Path) -> None:
    outputs = island.outputs
    _say("5. What came out")
    typer.echo(f"   {outputs['tile_count']} tiles of {outputs['tile_size']} pixels each way, one mosaic, one STAC item")
    typer.echo(f"   silver/{island.asset.blob_path}")
    for number, band in enumerate(outputs["statistics"], 1):
        extremes = f"{band['minimum']:g} to {band['maximum']:g}"
        typer.echo(f"   band {number}: {extremes}, mean {band['mean']:.1f}, standard deviation {band['stddev']:.1f}")
    preview = next(file for file in outputs["files"] if file["path"].endswith("preview.webp"))
    name = ObjectName(Zone(preview["zone"]), preview["container"], preview["path"])
    context.storage().sync.get_file(name, picture)
    typer.echo(f"   preview: {picture}")
    typer.echo(f"   the table geo.{fields.asset.table_name} with {fields.outputs['row_count']:,} rows")


def _approve(client: Client, status: AssetStatus) -> None:
    decision = client.assets.approve(status.asset_id, "public", expected_revision=status.revision)
    export_job = client.jobs.wait(decision.export_job_id) if decision.export_job_id else None
    outside = client.assets.status(status.asset_id).export
    outcome = export_job.status if export_job else "unchanged"
    place = f"{len(outside.files)} files outside, of revision {outside.external_revision}"
    typer.echo(f"   {status.asset.stac_item_id}: {outcome}, {place}")


def _links(client: Client, *published: AssetStatus) -> None:
    _say("7. Where they can be seen, by anybody, now that they are public")
    for status in published:
        typer.echo(f"   {status.asset.stac_item_id}")
        links = client.assets.links(status.asset_id).links
        for name, title in SHOWN.items():
            if name in links:
                typer.echo(f"     {title + ':':20}{links[name]}")


def _console(client: Client) -> None:
    """Print a link that signs in to the console once, and open it if somebody sits before a desktop."""
    link = client.session.create_link(NewSignInLink())
    _say("8. The console, signed in as the administrator; the link works once, for a quarter of an hour")
    typer.echo(f"   {link.url}")
    if sys.stdout.isatty() and (os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")):
        webbrowser.open(link.url)


def _wait() -> None:
    _say("The platform runs until you press Ctrl-C")
    with contextlib.suppress(KeyboardInterrupt):
        signal.pause()
