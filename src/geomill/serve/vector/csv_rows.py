"""Features as CSV. TiPG's own rows break off where there is no feature, and hold texts that a spreadsheet executes."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

_FORMULA = ("=", "+", "-", "@", "\t", "\r")
_NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?")


def csv_rows(features: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """Lines, the columns' names first; none if there is no feature."""
    writer = csv.writer(_Line())
    names: list[str] = []
    for feature in features:
        if not names:
            names = list(feature)
            yield writer.writerow([_harmless(name) for name in names])
        yield writer.writerow([_harmless(feature[name]) for name in names])


def _harmless(cell: Any) -> Any:
    """A text that a spreadsheet would take for a formula gets an apostrophe before it, as spreadsheets write it."""
    if isinstance(cell, str) and cell.startswith(_FORMULA) and not _NUMBER.fullmatch(cell):
        return f"'{cell}"
    return cell


class _Line:
    """Hands back what `csv` writes."""

    def write(self, line: str) -> str:
        return line
