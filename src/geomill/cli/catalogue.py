"""`geomill catalogue`: compares the catalogue with the assets, and rebuilds it."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

import typer

from geomill.catalogue import bulk
from geomill.cli.context import with_database
from geomill.cli.printing import Json

app = typer.Typer(no_args_is_help=True, help="The catalogue of what is published.")


@app.command()
def check(as_json: Json = False) -> None:
    """Compare the catalogue with the assets; exit code 1 if they differ."""
    comparison = with_database(bulk.check)
    if as_json:
        typer.echo(json.dumps(described(comparison), indent=2))
    else:
        typer.echo("\n".join(_lines(comparison)))
    if not comparison.sound:
        raise typer.Exit(1)


@app.command()
def rebuild(as_json: Json = False) -> None:
    """Write the catalogue again from the assets, all at once. Decisions and ends of jobs wait meanwhile."""
    count = with_database(bulk.rebuild)
    typer.echo(json.dumps({"items": count}) if as_json else f"{count} items")


def described(comparison: bulk.CatalogueCheck) -> dict[str, Any]:
    """The comparison as JSON. `wanted` is the former name of `expected`."""
    return {"sound": comparison.sound, **asdict(comparison), "wanted": comparison.expected}


def _lines(comparison: bulk.CatalogueCheck) -> list[str]:
    counts = {
        "missing": comparison.missing,
        "without an asset": comparison.strays,
        "different from the asset": comparison.different,
        "waiting for an orchestrator": comparison.pending,
        "collections with wrong counts": comparison.miscounted,
    }
    lines = [f"{problem}: {count}" for problem, count in counts.items() if count]
    lines += [f"{sentence}: run 'geomill db status'" for sentence in comparison.damage]
    return [f"{comparison.expected} items", *(lines or ["all of them agree with their assets"])]
