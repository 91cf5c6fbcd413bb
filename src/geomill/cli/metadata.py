"""The description of data on the command line: a JSON file, and options for its common fields."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from geomill.errors import InputError

Title = Annotated[str | None, typer.Option("--title", help="Title of the data, for catalogue and maps.")]
Description = Annotated[str | None, typer.Option("--description", help="Description of the data.")]
License = Annotated[
    str | None, typer.Option("--license", help="SPDX licence such as CC-BY-4.0, or proprietary, or other.")
]
Keywords = Annotated[list[str] | None, typer.Option("--keyword", help="A keyword; may be repeated.")]
Attribution = Annotated[str | None, typer.Option("--attribution", help="Line that maps show beside the data.")]
MetadataFile = Annotated[
    Path | None,
    typer.Option("--metadata", metavar="FILE", help="JSON file with these and providers and temporal_extent."),
]


def metadata_of(file: Path | None, **options: Any) -> dict[str, Any] | None:
    """Return the metadata of a submission. Options win over the file. None if there is none."""
    fields = {**_from_file(file), **{name: value for name, value in options.items() if value}}
    return fields or None


def _from_file(file: Path | None) -> dict[str, Any]:
    if file is None:
        return {}
    try:
        fields = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InputError(f"--metadata: {file} cannot be read as JSON: {error}", remedy="give a JSON file") from error
    if not isinstance(fields, dict):
        raise InputError(f"--metadata: {file} has no JSON object", remedy='write {"title": "…"}')
    return fields
