"""NAME=VALUE on the command line: text as it is, NAME:=VALUE as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from geomill.errors import InputError


def text_pairs(given: Iterable[str], option: str) -> dict[str, Any]:
    """A value is text, unless it is marked as JSON: an identifier that looks like a number is still text."""
    return {name: value for name, value, _ in _pairs(given, option)}


def json_pairs(given: Iterable[str], option: str) -> dict[str, Any]:
    """A value is JSON where it can be read so, and text where not: `pixels=512`, `crs=EPSG:4326`."""
    return {name: value if marked else _guess(value) for name, value, marked in _pairs(given, option)}


def _pairs(given: Iterable[str], option: str) -> Iterable[tuple[str, Any, bool]]:
    for text in given:
        name, found, value = text.partition("=")
        if not found or not name.rstrip(":"):
            raise InputError(f"{option} '{text}' is not NAME=VALUE", remedy=f"write {option} name=value")
        if name.endswith(":"):
            yield name[:-1], _read(value, option, text), True
        else:
            yield name, value, False


def _read(value: str, option: str, text: str) -> Any:
    try:
        return json.loads(value)
    except ValueError as error:
        raise InputError(f"{option} '{text}': what follows := is not JSON", remedy="write it as name=text") from error


def _guess(value: str) -> Any:
    try:
        return json.loads(value)
    except ValueError:
        return value
