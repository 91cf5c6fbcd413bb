"""Finds dates that do not exist in a file of text. GDAL takes them for the days that follow, without a word."""

from __future__ import annotations

import re
from calendar import isleap
from pathlib import Path

import pyarrow as pa

from geomill.vector.facts import Remark

_SUSPICIOUS = re.compile(rb"(?<![0-9])([0-9]{4})([-/])(?:02\2(?:29|3[01])|(?:0[469]|11)\2(?:31))(?![0-9])")
_DAYS = ((b"02", b"29"), (b"02", b"30"), (b"02", b"31"), (b"04", b"31"), (b"06", b"31"), (b"09", b"31"), (b"11", b"31"))
_ENDINGS = {mark: [mark.join((b"", *day)) for day in _DAYS] for mark in (b"-", b"/")}
"""Each suspicious date ends with one of these. Looking for them first is much faster than the expression."""
_READ_AT_ONCE = 4 * 1024 * 1024
_LONGEST = 10
_MOST_BYTES = 64 * 1024 * 1024
"""The bytes that a look into the beginning of a file reads."""


def impossible_dates(path: Path, schema: pa.Schema, *, beginning: bool) -> list[Remark]:
    """Return a remark if the file has such a date and the layer has a column of dates or times."""
    if not any(pa.types.is_date(kind) or pa.types.is_timestamp(kind) for kind in schema.types):
        return []
    date = _first(path, _MOST_BYTES if beginning else None)
    if date is None:
        return []
    message = (
        f"the file has dates that do not exist, such as {date}: columns of dates have the day that follows instead"
    )
    return [Remark(code="impossible_dates", message=message)]


def _first(path: Path, most: int | None) -> str | None:
    tail, done = b"", 0
    with path.open("rb") as file:
        while (most is None or done < most) and (data := file.read(_READ_AT_ONCE)):
            done += len(data)
            text = tail + data
            for match in _SUSPICIOUS.finditer(text) if _is_suspicious(text) else ():
                date = match[0].decode()
                if not (date.endswith(("02-29", "02/29")) and isleap(int(match[1]))):
                    return date
            tail = data[-_LONGEST:]
    return None


def _is_suspicious(text: bytes) -> bool:
    return any(ending in text for mark, endings in _ENDINGS.items() if mark in text for ending in endings)
