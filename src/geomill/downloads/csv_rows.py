"""Features as CSV. TiPG's own rows fail if there is no feature, and contain texts that a spreadsheet would execute."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

_FORMULA = ("=", "+", "-", "@", "\t", "\r")
_NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?")


def csv_rows(data: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """Yield the header and the lines of some features. Yields nothing if there is none. The parameter has the name of
    TiPG's, whose function this one replaces."""
    writer = csv.writer(_Line())
    names: list[str] = []
    for feature in data:
        if not names:
            names = list(feature)
            yield writer.writerow([_harmless(name) for name in names])
        yield writer.writerow([_harmless(feature[name]) for name in names])


def _harmless(cell: Any) -> Any:
    """Put an apostrophe before a text that a spreadsheet would take for a formula."""
    if isinstance(cell, dict | list):
        return json.dumps(cell, ensure_ascii=False)
    if isinstance(cell, str) and cell.startswith(_FORMULA) and not _NUMBER.fullmatch(cell):
        return f"'{cell}"
    return cell


class _Line:
    """Returns what `csv` writes."""

    def write(self, line: str) -> str:
        return line
