"""Prepares a CSV file for GDAL, and tells what was found out about it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from geomill.contract.inspection import KnownFrom
from geomill.vector.csv_places import places
from geomill.vector.csv_profile import COMMON_ENCODINGS, CsvProfile, profile
from geomill.vector.csv_text import rewrite
from geomill.vector.facts import DateOrder, LayerText, Reading, Remark


@dataclass(frozen=True, slots=True)
class CsvSource:
    path: Path
    """The file itself, or a copy of it that GDAL can read."""
    options: dict[str, str]
    """Options for GDAL."""
    crs: str | None
    text: LayerText
    remarks: list[Remark]


def csv_source(path: Path, name: str, reading: Reading, target: Path, most: int | None = None) -> CsvSource:
    """Return how GDAL can read the file, or its `most` first rows. `target` is the place of a copy, if one is
    necessary."""
    sample = profile(path, name, reading.encoding, reading.date_order)
    where = places(sample, name, reading)
    sample = replace(sample, ewkt=where.ewkt)
    if not sample.plain:
        sample, path = rewrite(path, name, sample, target, most), target
    known_from = KnownFrom.OPTION if reading.encoding else KnownFrom.DETECTED
    text = LayerText(encoding=sample.encoding, known_from=known_from)
    return CsvSource(path, where.options, where.crs, text, [*_remarks(sample), *where.remarks])


def _remarks(sample: CsvProfile) -> list[Remark]:
    remarks = []
    if sample.detected:
        remarks.append(encoding_detected(sample.encoding))
    if sample.decimal_commas:
        message = f"the numbers of {sample.names(sample.decimal_commas)} have decimal commas and were read as such"
        remarks.append(Remark(code="decimal_commas", message=message))
    if sample.dates:
        orders = {"dmy": "day, month, year", "mdy": "month, day, year"}
        told = "; ".join(
            f"{sample.names([number])} as {orders[order.value]}" for number, order in sorted(sample.dates.items())
        )
        remarks.append(Remark(code="dates", message=f"dates were read: {told}"))
    if longer := sum(len(row) > len(sample.columns) for row in sample.rows):
        message = (
            f"{longer:,} of the first {len(sample.rows):,} rows have more values than the first line has columns, and "
            "the values beyond are left out: name all columns, or put values with a separator in quotation marks"
        )
        remarks.append(Remark(code="values_left_out", message=message))
    if sample.unclear_dates:
        message = (
            f"the dates of {sample.names(sample.unclear_dates)} may begin with the day or with the month, so they stay "
            "text: give date_order as dmy or mdy"
        )
        remarks.append(
            Remark(code="unclear_dates", message=message, remedies={"date_order": [order.value for order in DateOrder]})
        )
    return remarks


def encoding_detected(encoding: str) -> Remark:
    return Remark(
        code="encoding_detected",
        message=f"the text is not UTF-8 and was read as {encoding}: give 'encoding' if letters are wrong",
        remedies={"encoding": COMMON_ENCODINGS},
    )
