"""Options that several commands have, and the parser of NAME=VALUE (text) and NAME:=VALUE (JSON)."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Annotated, Any

import typer

from geomill.errors import InputError

PlatformOption = Annotated[str, typer.Option("--platform", help="The partner application to submit for.")]
ChosenWorkflow = Annotated[
    str | None, typer.Option("--workflow", help="Workflow to run. Default: chosen by the data type.")
]
ProcessingOptions = Annotated[
    list[str] | None,
    typer.Option("--option", metavar="NAME=VALUE", help="An input of the workflow; may be repeated."),
]


def text_pairs(arguments: Iterable[str], option: str) -> dict[str, Any]:
    """Parse pairs whose values are text unless marked with `:=`, so an identifier such as 007 stays text."""
    return {name: value for name, value, _ in _pairs(arguments, option)}


def json_pairs(arguments: Iterable[str], option: str) -> dict[str, Any]:
    """Parse pairs whose values are JSON if they parse as JSON, and text otherwise: `pixels=512`, `crs=EPSG:4326`."""
    return {name: value if marked else _guess(value) for name, value, marked in _pairs(arguments, option)}


def _pairs(arguments: Iterable[str], option: str) -> Iterable[tuple[str, Any, bool]]:
    for text in arguments:
        name, equals, value = text.partition("=")
        if not equals or not name.rstrip(":"):
            raise InputError(f"{option} '{text}' is not NAME=VALUE", remedy=f"write {option} name=value")
        if name.endswith(":"):
            yield name[:-1], _read(value, option, text), True
        else:
            yield name, value, False


def _read(value: str, option: str, text: str) -> Any:
    try:
        return json.loads(value)
    except ValueError as error:
        raise InputError(
            f"{option} '{text}': the value after := is not JSON", remedy="write valid JSON, or name=text"
        ) from error


def _guess(value: str) -> Any:
    try:
        return json.loads(value)
    except ValueError:
        return value
