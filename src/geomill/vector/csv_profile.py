"""Finds out how a CSV file is written: its encoding, separator, decimal commas and dates.

GDAL reads UTF-8, numbers with a decimal point and dates in the order of ISO 8601. A file that has others is rewritten
for it: see `csv_text`. A column counts as numbers or dates only if all of its values in the sample do.
"""

from __future__ import annotations

import codecs
import csv
import io
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from pathlib import Path

from geomill.datasets.refusals import refused
from geomill.vector.attributes import FALLBACK_ENCODING
from geomill.vector.facts import DateOrder

SEPARATORS = {",": "COMMA", ";": "SEMICOLON", "\t": "TAB", "|": "PIPE"}
"""The separators, with GDAL's names."""
SAMPLE_BYTES = 1024 * 1024
MOST_ROWS = 1_000
COMMON_ENCODINGS = ["utf-8", "cp1252", "iso-8859-1", "iso-8859-2", "cp1250", "cp1251", "shift_jis", "gb18030"]
_NUMBER = re.compile(r"[+-]?(\d{1,3}(\.\d{3})+|\d+)(,\d+)?([eE][+-]?\d+)?")
SRID = re.compile(r"\s*SRID\s*=\s*([0-9]{1,6})\s*;", re.IGNORECASE)
"""The beginning of EWKT, as PostGIS writes it."""
_DATE = re.compile(r"(\d{1,2})([./-])(\d{1,2})\2(\d{4})( \d{1,2}:\d{2}(:\d{2})?)?")


@dataclass(frozen=True)
class CsvProfile:
    encoding: str
    detected: bool
    """Whether the encoding was guessed, because the bytes are not UTF-8 and the submitter named none."""
    separator: str
    columns: list[str]
    rows: list[list[str]] = field(repr=False)
    """A sample."""
    decimal_commas: frozenset[int] = frozenset()
    """The numbers of the columns whose numbers have a decimal comma."""
    dates: dict[int, DateOrder] = field(default_factory=dict)
    unclear_dates: list[int] = field(default_factory=list)
    ewkt: int | None = None
    """The number of the column whose WKT begins with an SRID."""
    padded_numbers: frozenset[int] = frozenset()
    """The numbers of the columns whose numbers have spaces around them, which GDAL drops."""
    padded: bool = False
    """Whether names of columns have spaces around them, with which GDAL does not find them."""

    @property
    def plain(self) -> bool:
        """Whether GDAL can read the file as it is."""
        return (
            self.encoding == "utf-8"
            and not self.decimal_commas
            and not self.dates
            and self.ewkt is None
            and not (self.padded or self.padded_numbers)
        )

    def values(self, column: int) -> list[str]:
        """Return the values of a column in the sample that are not empty."""
        return [row[column].strip() for row in self.rows if column < len(row) and row[column].strip()]

    def names(self, numbers: Sequence[int] | frozenset[int] | dict[int, DateOrder]) -> str:
        return ", ".join(f"'{self.columns[number]}'" for number in sorted(numbers))[:200]


def profile(path: Path, name: str, encoding: str | None, date_order: DateOrder | None) -> CsvProfile:
    """Read the beginning of a file and return how it is written."""
    with path.open("rb") as file:
        head = file.read(SAMPLE_BYTES)
    text, used, detected = _decoded(head, name, encoding)
    separator = max(SEPARATORS, key=lambda mark: len(_header(text, mark)))
    header, rows = _header(text, separator), list(_rows(text, separator, complete=len(head) < SAMPLE_BYTES))
    columns = [column.strip() for column in header]
    sample = CsvProfile(used, detected, separator, columns, rows, padded=columns != header)
    commas = frozenset(number for number in range(len(columns)) if _has_decimal_commas(sample.values(number)))
    orders = {number: order for number in range(len(columns)) if (order := _dates_of(sample.values(number)))}
    unclear = [number for number, order in orders.items() if len(order) > 1 and date_order is None]
    dates = {
        number: date_order if date_order in order else order[0]
        for number, order in orders.items()
        if number not in unclear
    }
    padded = frozenset(number for number in range(len(columns)) if _has_padded_numbers(sample, number)) - commas
    return replace(sample, decimal_commas=commas, padded_numbers=padded, dates=dates, unclear_dates=unclear)


def checked_encoding(name: str) -> str:
    """Return Python's name of an encoding. Raises a refusal if there is none."""
    try:
        "".encode(name)
        return codecs.lookup(name).name
    except (LookupError, ValueError, UnicodeError):
        raise refused(
            "bad_encoding",
            f"encoding '{name[:40]}' is unknown: give one such as {', '.join(COMMON_ENCODINGS[:4])}",
            encoding=COMMON_ENCODINGS,
        ) from None


def wrong_encoding(name: str, encoding: str) -> Exception:
    """Return the refusal of a text that does not have the named encoding."""
    return refused(
        "bad_encoding",
        f"the text of '{name}' is not {encoding}: give its 'encoding', or leave it out to have it detected",
        encoding=COMMON_ENCODINGS,
    )


def line_text(line: bytes) -> str:
    """Decode a line as UTF-8, or else as the encoding that is assumed for such text."""
    try:
        return line.decode()
    except UnicodeDecodeError:
        return line.decode(FALLBACK_ENCODING, errors="replace")


def _decoded(head: bytes, name: str, encoding: str | None) -> tuple[str, str, bool]:
    """Return the text, its encoding, and whether the encoding was guessed."""
    if encoding is not None:
        used = checked_encoding(encoding)
        try:
            return codecs.getincrementaldecoder(used)().decode(head).removeprefix("\ufeff"), used, False
        except UnicodeDecodeError as error:
            raise wrong_encoding(name, used) from error
    text = head.removeprefix(codecs.BOM_UTF8)
    header = text.partition(b"\n")[0]
    try:
        header.decode()
    except UnicodeDecodeError:
        return "".join(map(line_text, text.splitlines(keepends=True))), FALLBACK_ENCODING, True
    return "".join(map(line_text, text.splitlines(keepends=True))), "utf-8", False


def _header(text: str, separator: str) -> list[str]:
    return next(_parsed(text, separator), [])


def _rows(text: str, separator: str, *, complete: bool) -> Iterator[list[str]]:
    """Yield the rows after the header, without the last one if it may be cut off."""
    previous: list[str] | None = None
    for number, row in enumerate(_parsed(text, separator)):
        if previous is not None:
            yield previous
        previous = row if number else None
        if number > MOST_ROWS:
            return
    if previous is not None and complete:
        yield previous


def _parsed(text: str, separator: str) -> Iterator[list[str]]:
    """Yield rows up to the first that cannot be parsed. GDAL then says why."""
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator)
    while True:
        try:
            row = next(reader)
        except (StopIteration, csv.Error):
            return
        yield row


def _has_decimal_commas(values: list[str]) -> bool:
    return any("," in value for value in values) and all(_NUMBER.fullmatch(value) for value in values)


def _has_padded_numbers(sample: CsvProfile, column: int) -> bool:
    written = (row[column] for row in sample.rows if column < len(row))
    return any(value != value.strip() for value in written) and all(map(is_number, sample.values(column)))


def is_number(value: str) -> bool:
    try:
        float(value)
    except ValueError:
        return False
    return "_" not in value


def _dates_of(values: list[str]) -> tuple[DateOrder, ...]:
    """Return the orders in which all values are dates."""
    if not values or not all(_DATE.fullmatch(value) for value in values):
        return ()
    orders = tuple(order for order in DateOrder if all(iso_date(value, order) for value in values))
    dotted = all("." in value for value in values)
    return (DateOrder.DMY,) if dotted and DateOrder.DMY in orders else orders


def iso_date(value: str, order: DateOrder) -> str | None:
    """Return the date as ISO 8601, or None if it is none in this order."""
    match = _DATE.fullmatch(value.strip())
    if match is None:
        return None
    first, second, year = int(match[1]), int(match[3]), int(match[4])
    day, month = (first, second) if order is DateOrder.DMY else (second, first)
    try:
        text = date(year, month, day).isoformat()
    except ValueError:
        return None
    return f"{text}T{match[5].strip():0>5}" if match[5] else text


def point_number(value: str) -> str | None:
    """Return a number with a decimal point, or None if the value is no number."""
    text = value.strip()
    return text.replace(".", "").replace(",", ".") if _NUMBER.fullmatch(text) else None


def without_srid(value: str) -> str:
    """Return EWKT as WKT."""
    return SRID.sub("", value, count=1)
