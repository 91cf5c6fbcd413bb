from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from geomill.raster.attribute_table import MOST_CLASSES, parse_classes
from geomill.raster.facts import RasterClass

COLUMNS = ((5, "Value"), (2, "Class"), (6, "R"), (7, "G"), (8, "B"), (1, "Count"))


def table(*rows: tuple[object, ...], columns: tuple[tuple[int, str], ...] = COLUMNS) -> bytes:
    heads = "".join(
        f"<FieldDefn><Name>{name}</Name><Type>0</Type><Usage>{use}</Usage></FieldDefn>" for use, name in columns
    )
    body = "".join("<Row>" + "".join(f"<F>{cell}</F>" for cell in row) + "</Row>" for row in rows)
    inner = f"<GDALRasterAttributeTable>{heads}{body}</GDALRasterAttributeTable>"
    return f"<PAMDataset><PAMRasterBand band='1'>{inner}</PAMRasterBand></PAMDataset>".encode()


def test_classes_have_a_value_a_name_and_a_colour() -> None:
    classes, warnings = parse_classes(table((2, "forest", 0, 128, 0, 17), (1, "open water", 0, 0, 255, 9)))
    assert warnings == []
    assert classes == [
        RasterClass(value=1, name="open water", color=(0, 0, 255)),
        RasterClass(value=2, name="forest", color=(0, 128, 0)),
    ]


def test_what_is_no_class_is_left_out() -> None:
    rows = ((1.5, "half", 0, 0, 0, 0), ("x", "no number", 0, 0, 0, 0), (3, "", 0, 0, 0, 0), (4, "good", 300, 0, 0, 0))
    assert parse_classes(table(*rows))[0] == [RasterClass(value=4, name="good")]


def test_a_range_counts_only_if_it_is_one_value() -> None:
    columns = ((3, "Min"), (4, "Max"), (2, "Class"))
    assert parse_classes(table((1, 1, "one"), (2, 5, "some"), columns=columns))[0] == [RasterClass(value=1, name="one")]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (b"not xml", "not XML"),
        (b'<!DOCTYPE x [<!ENTITY a "b">]><PAMDataset/>', "entities"),
        (table(*((n, f"c{n}", 0, 0, 0, 0) for n in range(MOST_CLASSES + 1))), "classes"),
    ],
)
def test_what_is_not_taken_is_told(text: bytes, why: str) -> None:
    classes, warnings = parse_classes(text)
    assert classes == []
    assert why in warnings[0]


def test_a_file_without_a_table_says_nothing() -> None:
    assert parse_classes(b"<PAMDataset><SRS>EPSG:4326</SRS></PAMDataset>") == ([], [])


@given(st.binary(max_size=200))
def test_nothing_breaks_it(text: bytes) -> None:
    parse_classes(text)
