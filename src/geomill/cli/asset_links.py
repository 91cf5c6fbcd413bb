"""`geomill assets links | open | download`: where an asset is served, and its data as a file."""

from __future__ import annotations

import webbrowser
from pathlib import Path
from typing import Annotated

import typer

from geomill.cli.client import gateway
from geomill.cli.printing import Json, print_json
from geomill.contract.assets import LinksView
from geomill.contract.extracts import ExtractView
from geomill.errors import NotFoundError

AnyId = Annotated[str, typer.Argument(metavar="ID", help="Id of an asset, a request or a job.")]
Seconds = Annotated[int | None, typer.Option(min=1, help="How long signed links are valid.")]
SUFFIXES = {"shp": "zip"}


def links(any_id: AnyId, seconds: Seconds = None, as_json: Json = False) -> None:
    """Print the links to an asset. Those to an asset that is not public are signed, and open it to who has them."""
    with gateway() as client:
        view = client.assets.links(client.assets.status(any_id).asset_id, seconds=seconds)
    if as_json:
        print_json(view)
        return
    typer.echo("\n".join(f"{name}  {link}" for name, link in _require(view).items()))
    if view.expires_at:
        typer.echo(f"These links expire at {view.expires_at.isoformat()}.", err=True)


def open_viewer(any_id: AnyId) -> None:
    """Open the map of an asset in a browser, and print its address."""
    with gateway() as client:
        viewer = _require(client.assets.links(client.assets.status(any_id).asset_id))["viewer"]
    typer.echo(viewer)
    webbrowser.open(viewer)


def download(
    any_id: AnyId,
    file: Annotated[Path | None, typer.Argument(metavar="FILE", help="Where to write it.", dir_okay=False)] = None,
    file_format: Annotated[
        str | None, typer.Option("--format", help="Format of features: gpkg, parquet, fgb, shp, geojson or csv.")
    ] = None,
    condition: Annotated[str | None, typer.Option("--filter", help="Only features of this CQL2 filter.")] = None,
    bbox: Annotated[str | None, typer.Option(help="Only this part: west,south,east,north in degrees.")] = None,
) -> None:
    """Download an asset: a raster as its file or cut by a box, features in a format of your choice. A file that is too
    large for an answer is written by a job, which is waited for."""
    with gateway() as client:
        asset_id = client.assets.status(any_id).asset_id
        target = file or Path(f"{asset_id}.{_suffix(_require(client.assets.links(asset_id)), file_format)}")
        size = client.assets.download(
            asset_id, target, file_format=file_format, condition=condition, bbox=bbox, on_extract=_Waiting()
        )
    typer.echo(f"{target}  {size:,} bytes")


class _Waiting:
    """Says on standard error that a job writes the file, once."""

    def __init__(self) -> None:
        self._statuses: set[str] = set()

    def __call__(self, extract: ExtractView) -> None:
        if not self._statuses:
            until = extract.expires_at.isoformat(timespec="minutes")
            typer.echo(f"The file is large, so a job writes it. It is kept until {until}: {extract.href}", err=True)
        if extract.status.value not in self._statuses:
            typer.echo(extract.status.value, err=True)
        self._statuses.add(extract.status.value)


def _suffix(named: dict[str, str], file_format: str | None) -> str:
    if "features" not in named:
        return "tif"
    return SUFFIXES.get(file_format or "gpkg", file_format or "gpkg")


def _require(view: LinksView) -> dict[str, str]:
    if not view.links:
        raise NotFoundError(f"the asset {view.asset_id} is not served", remedy="see 'geomill assets status'")
    return view.links
