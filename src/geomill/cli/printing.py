"""Prints answers of the gateway: tables for people, JSON for programs.

On a terminal long texts are wrapped at words. Elsewhere, as in a pipe, each row is one line, so that `grep` finds it.
No text is cut.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Annotated, Any

import typer

Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
LONGEST_TEXT = 400
PADDING = 2
"""Blanks between two columns."""


def print_json(value: Any) -> None:
    """Print models, or lists of them, as JSON."""
    from pydantic_core import to_jsonable_python

    typer.echo(json.dumps(to_jsonable_python(value), indent=2, ensure_ascii=False))


def print_table(columns: Sequence[str], rows: Iterable[Sequence[object]], *, empty: str) -> None:
    """Print a table, or the sentence `empty` if it has no rows."""
    cells = [[_cell(value) for value in row] for row in rows]
    if not cells:
        typer.echo(empty)
    elif sys.stdout.isatty():
        _print_wrapped(columns, cells)
    else:
        _print_lines([columns, *cells])


def _print_wrapped(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a table that fits the terminal. If the longest words do not fit, the terminal breaks the lines, because an
    id that is cut is of no use."""
    from rich.console import Console
    from rich.table import Column, Table
    from rich.text import Text

    by_column = list(zip(columns, *rows, strict=True))
    words = [max(len(word) for cell in cells for word in cell.split() or [""]) for cells in by_column]
    heads = [
        Column(cells[0], min_width=longest, no_wrap=not any(" " in cell for cell in cells))
        for cells, longest in zip(by_column, words, strict=True)
    ]
    table = Table(*heads, box=None, pad_edge=False)
    for row in rows:
        table.add_row(*map(Text, row))
    needed = sum(words) + PADDING * len(words)
    Console(width=max(Console().width, needed)).print(table)


def _print_lines(rows: Sequence[Sequence[str]]) -> None:
    lines = [[" ".join(cell.split()) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    for line in lines:
        typer.echo((" " * PADDING).join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip())


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
