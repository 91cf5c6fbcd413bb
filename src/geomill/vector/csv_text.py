"""Rewrites a CSV file in the way that GDAL reads: UTF-8, decimal points, dates of ISO 8601."""

from __future__ import annotations

import codecs
import csv
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from itertools import islice
from pathlib import Path

from geomill.datasets.refusals import refused
from geomill.vector.csv_profile import CsvProfile, iso_date, line_text, point_number, without_srid, wrong_encoding

LONGEST_FIELD = 256 * 1024 * 1024
Convert = Callable[[str], str | None]


def rewrite(path: Path, name: str, profile: CsvProfile, target: Path, most: int | None = None) -> CsvProfile:
    """Write the file anew, or only its `most` first rows. A column in which some value is no number or date after all
    stays as it is: the profile that is returned leaves it out."""
    csv.field_size_limit(LONGEST_FIELD)
    while True:
        try:
            misfits = _write(path, profile, target, most)
        except UnicodeDecodeError as error:
            raise wrong_encoding(name, profile.encoding) from error
        except csv.Error as error:
            raise refused("unreadable", f"'{name}' has a row that cannot be read: {error}") from error
        if not misfits:
            return profile
        dates = {number: order for number, order in profile.dates.items() if number not in misfits}
        profile = replace(profile, decimal_commas=profile.decimal_commas - misfits, dates=dates)


def _write(path: Path, profile: CsvProfile, target: Path, most: int | None) -> set[int]:
    """Write the rows. Returns the columns with a value that could not be converted."""
    converters: dict[int, Convert] = dict.fromkeys(profile.decimal_commas, point_number)
    converters |= dict.fromkeys(profile.padded_numbers, str.strip)
    converters |= {number: partial(iso_date, order=order) for number, order in profile.dates.items()}
    if profile.ewkt is not None:
        converters[profile.ewkt] = without_srid
    misfits: set[int] = set()
    target.unlink(missing_ok=True)
    with target.open("x", encoding="utf-8", newline="") as file:  # never through a link to the original
        lines = _lines(path, profile)
        if not converters and not profile.padded and most is None:
            file.writelines(lines)
            return misfits
        writer = csv.writer(file, delimiter=profile.separator, lineterminator="\n")
        rows = csv.reader(lines, delimiter=profile.separator)
        for number, row in enumerate(islice(rows, None if most is None else most + 1)):
            if number:
                misfits |= _convert(row, converters)
            writer.writerow(row if number else profile.columns)
    return misfits


def _convert(row: list[str], converters: dict[int, Convert]) -> set[int]:
    misfits: set[int] = set()
    for number, convert in converters.items():
        if number < len(row) and not row[number].strip():
            row[number] = ""
        elif number < len(row):
            value = convert(row[number])
            if value is None:
                misfits.add(number)
            else:
                row[number] = value
    return misfits


def _lines(path: Path, profile: CsvProfile) -> Iterator[str]:
    if profile.detected or profile.encoding == "utf-8":
        with path.open("rb") as file:
            for number, line in enumerate(file):
                yield line_text(line if number else line.removeprefix(codecs.BOM_UTF8))
        return
    with path.open(encoding=profile.encoding, newline="") as text:
        for number, words in enumerate(text):
            yield words if number else words.removeprefix("\ufeff")
