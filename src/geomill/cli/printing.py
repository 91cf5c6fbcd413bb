"""Prints answers of the gateway: tables for people, JSON for programs."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Annotated, Any

import typer

Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
LONGEST_TEXT = 400


def print_json(value: Any) -> None:
    """Print models, or lists of them, as JSON."""
    from pydantic_core import to_jsonable_python

    typer.echo(json.dumps(to_jsonable_python(value), indent=2, ensure_ascii=False))


def print_table(columns: Sequence[str], rows: Iterable[Sequence[object]], *, empty: str) -> None:
    """Print a table, or the sentence `empty` if it has no rows. The first column is never wrapped."""
    from rich.console import Console
    from rich.table import Column, Table
    from rich.text import Text

    first, *others = columns
    table = Table(Column(first, no_wrap=True), *others, box=None)
    for row in rows:
        table.add_row(*(Text(_cell(value)) for value in row))
    if table.row_count:
        Console().print(table)
    else:
        typer.echo(empty)


def _cell(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, datetime):
        return when(value)
    if isinstance(value, list | tuple):
        return ", ".join(map(str, value))
    return str(value)


def when(moment: datetime | None) -> str:
    return f"{moment:%Y-%m-%d %H:%M:%S}" if moment else ""


def age(seconds: float | None) -> str:
    if seconds is None:
        return ""
    for unit, length in (("d", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= length:
            return f"{seconds / length:.1f} {unit}"
    return f"{seconds:.0f} s"


def size(count: int | None) -> str:
    if count is None:
        return ""
    for unit, length in (("TB", 10**12), ("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if count >= length:
            return f"{count / length:.1f} {unit}"
    return f"{count} B"


def short(body: Any) -> str:
    text = json.dumps(body, ensure_ascii=False)
    return text if len(text) <= LONGEST_TEXT else text[: LONGEST_TEXT - 1] + "…"
