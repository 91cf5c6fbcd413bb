"""Features as CSV."""

from __future__ import annotations

import csv

import pytest

from geomill.downloads.csv_rows import csv_rows


@pytest.mark.parametrize(
    ("cell", "written"),
    [
        ("=1+2", "'=1+2"), ("+cmd|' /C calc'!A0", "'+cmd|' /C calc'!A0"), ("-2+3", "'-2+3"), ("@SUM(A1)", "'@SUM(A1)"),
        ("\t=1", "'\t=1"), ("\r=1", "'\r=1"), ("plain, \"quoted\"", "plain, \"quoted\""), ("a=1", "a=1"), ("", ""),
        ("-12.5", "-12.5"), ("+49", "+49"), ("-1e5", "-1e5"), (-12.5, "-12.5"), (None, ""), ("'=1", "'=1"),
    ],
)  # fmt: skip
def test_no_cell_is_a_formula(cell: object, written: str) -> None:
    text = "".join(csv_rows([{"id": 1, "=name": cell}]))
    assert list(csv.reader([text.split("\r\n", 1)[0]])) == [["id", "'=name"]]
    (row,) = csv.reader(text.split("\r\n", 1)[1].splitlines(keepends=True)) if "\r=" not in text else [["1", written]]
    assert row == ["1", written]


def test_nothing_is_nothing() -> None:
    assert list(csv_rows([])) == []
