"""`geomill styles`: named ways to draw an asset."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from geomill.cli.client import gateway
from geomill.cli.printing import Json, print_json, print_table
from geomill.contract.styles import StyleView
from geomill.errors import InputError

app = typer.Typer(no_args_is_help=True, help="Give assets named styles, for tiles, maps and previews.")

AnyId = Annotated[str, typer.Argument(metavar="ID", help="Id of an asset, a request or a job.")]
StyleName = Annotated[str, typer.Argument(metavar="NAME", help="Name of the style.")]


@app.command("list")
def list_styles(any_id: AnyId, as_json: Json = False) -> None:
    """List the styles of an asset."""
    with gateway() as client:
        view = client.styles.all(client.assets.status(any_id).asset_id)
    if as_json:
        print_json(view)
        return
    rows = [(s.name, "yes" if s.default else "", s.origin, s.title, s.updated_by) for s in view.styles]
    print_table(("style", "default", "origin", "title", "by"), rows, empty="The asset has no styles.")


@app.command()
def show(any_id: AnyId, name: StyleName) -> None:
    """Print a style as JSON, in the form that `put` takes."""
    with gateway() as client:
        view = client.styles.get(client.assets.status(any_id).asset_id, name)
    print_json(view.style.model_dump(mode="json", exclude_none=True) if view.style else {})


@app.command()
def put(
    any_id: AnyId,
    name: StyleName,
    file: Annotated[
        Path,
        typer.Argument(metavar="FILE", help="The style as JSON, or a file .qml or .sld.", exists=True, dir_okay=False),
    ],
    default: Annotated[bool, typer.Option("--default", help="Draw the asset with it when no style is named.")] = False,
    as_json: Json = False,
) -> None:
    """Add or replace a style of an asset."""
    form = file.suffix.lower().removeprefix(".")
    foreign = form in ("qml", "sld")
    style = file.read_text(encoding="utf-8", errors="replace") if foreign else _read(file)
    with gateway() as client:
        asset_id = client.assets.status(any_id).asset_id
        view = client.styles.put(asset_id, name, style, form=form if foreign else "style", default=default)
    _print(view, asset_id, as_json=as_json)


@app.command()
def delete(any_id: AnyId, name: StyleName) -> None:
    """Delete a style of an asset."""
    with gateway() as client:
        asset_id = client.assets.status(any_id).asset_id
        client.styles.delete(asset_id, name)
    typer.echo(f"style {name} of asset {asset_id} deleted")


def _read(file: Path) -> dict[str, Any]:
    try:
        style = json.loads(file.read_text(encoding="utf-8"))
    except ValueError as error:
        raise InputError(f"'{file}' is not JSON: {error}", remedy="write the style as a JSON object") from None
    if not isinstance(style, dict):
        raise InputError(f"'{file}' is not a JSON object", remedy='write {"kind": "raster", …}')
    return style


def _print(view: StyleView, asset_id: str, *, as_json: bool) -> None:
    if as_json:
        print_json(view)
        return
    typer.echo(f"style {view.name} of asset {asset_id} kept" + (" as the default" if view.default else ""))
    for warning in view.warnings:
        typer.echo(f"warning: {warning}", err=True)
