"""`geomill catalogue`: whether the catalogue says what the assets are, and making it anew."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Annotated

import typer

from geomill.catalogue import bulk
from geomill.cli.context import with_database

app = typer.Typer(no_args_is_help=True, help="The catalogue of what is published.")

Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]


@app.command()
def check(as_json: Json = False) -> None:
    """Compare the catalogue with the assets; exit code 1 if they differ."""
    found = with_database(bulk.check)
    if as_json:
        typer.echo(json.dumps({"sound": found.sound, **asdict(found)}, indent=2))
    else:
        typer.echo("\n".join(_lines(found)))
    if not found.sound:
        raise typer.Exit(1)


@app.command()
def rebuild(as_json: Json = False) -> None:
    """Make the catalogue anew from the assets, all at once. Decisions and ends of jobs wait meanwhile."""
    count = with_database(bulk.rebuild)
    typer.echo(json.dumps({"items": count}) if as_json else f"{count} items")


def _lines(found: bulk.CatalogueCheck) -> list[str]:
    wrong = {
        "missing": found.missing,
        "of no asset": found.strays,
        "not as the asset says": found.different,
        "waiting for an orchestrator": found.pending,
        "collections that count wrongly": found.miscounted,
    }
    lines = [f"{what}: {count}" for what, count in wrong.items() if count]
    lines += [f"{sentence}: run 'geomill db status'" for sentence in found.damage]
    return [f"{found.wanted} items", *(lines or ["all of them as their assets say"])]
