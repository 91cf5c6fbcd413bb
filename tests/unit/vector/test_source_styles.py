"""Styles of layers: from GeoPackages that may be hostile, from ZIP files, and with the columns of the table."""

from __future__ import annotations

import sqlite3
import zipfile
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from geomill.datasets.source_styles import ForeignStyle, UnreadStyle
from geomill.domain.assets.foreign_xml import NotConvertible
from geomill.domain.assets.style import RasterStyle, StyleClass, VectorStyle
from geomill.vector.facts import LayerColumn
from geomill.vector.source_styles import LARGEST_ROW, fit, packed_styles, stored_styles

COLUMNS = [
    LayerColumn(source="Land Use", name="land_use", type="text"),
    LayerColumn(source="Number", name="number_", type="bigint"),
    LayerColumn(source="open", name="open", type="boolean"),
]
TABLE = (
    "CREATE TABLE layer_styles (id INTEGER PRIMARY KEY, f_table_name TEXT, styleName TEXT, styleQML TEXT,"
    " styleSLD TEXT, useAsDefault BOOLEAN, update_time DATETIME{})"
)


def made(folder: Path, *statements: str) -> Path:
    path = folder / "a.gpkg"
    with closing(sqlite3.connect(path)) as database:
        for statement in statements:
            database.execute(statement)
        database.commit()
    return path


def row(layer: str, name: str, qml: str, default: int, time: str = "2026-01-01") -> str:
    columns = "f_table_name, styleName, styleQML, useAsDefault, update_time"
    return f"INSERT INTO layer_styles ({columns}) VALUES ('{layer}', '{name}', {qml}, {default}, '{time}')"


def test_the_default_row_of_the_layer_counts(tmp_path: Path) -> None:
    path = made(
        tmp_path, TABLE.format(""), row("parcels", "old", "'<a/>'", 0, "2027-01-01"),
        row("Parcels", "mine", "'<qgis/>'", 1), row("roads", "other", "'<b/>'", 1),
    )  # fmt: skip
    [style] = stored_styles(path, "parcels")
    assert isinstance(style, ForeignStyle)
    assert (style.data, style.title, style.language) == (b"<qgis/>", "mine", "qml")
    assert stored_styles(path, "rivers") == []


def test_a_geopackage_without_styles_has_none(tmp_path: Path) -> None:
    assert stored_styles(made(tmp_path, "CREATE TABLE parcels (id INTEGER)"), "parcels") == []


@pytest.mark.parametrize(
    "statements",
    [
        [TABLE.format(""), row("p", "large", f"zeroblob({LARGEST_ROW + 1})", 1)],
        [TABLE.format(""), row("p", "large", "zeroblob(2000000)", 1)],
        [TABLE.format(", more TEXT AS (hex(zeroblob(100000000)))"), row("p", "computed", "'<a/>'", 1)],
        ["CREATE TABLE layer_styles (f_table_name TEXT)"],
        [TABLE.format("").replace("id INTEGER", "id TEXT") + " WITHOUT ROWID"],
    ],
    ids=["row", "style", "computed", "columns", "rowid"],
)
def test_a_hostile_or_damaged_table_is_told(tmp_path: Path, statements: list[str]) -> None:
    [style] = stored_styles(made(tmp_path, *statements), "p")
    assert isinstance(style, UnreadStyle)


def test_a_style_in_a_zip_file_lies_beside_the_data(tmp_path: Path) -> None:
    path = tmp_path / "a.zip"
    with zipfile.ZipFile(path, "w") as archive:
        for name in ("x/a.shp", "x/a.shx", "x/a.dbf", "a.qml", "__MACOSX/x/a.qml"):
            archive.writestr(name, "other")
        archive.writestr("x/a.QML", "<qgis/>")
        archive.writestr("x/a.sld", b" " * 2_000_000)
    style, large = packed_styles(path, "a.zip", None)
    assert isinstance(style, ForeignStyle)
    assert (style.data, style.title) == (b"<qgis/>", "a")
    assert isinstance(large, UnreadStyle)


def test_a_damaged_style_in_a_zip_file_is_told(tmp_path: Path) -> None:
    path = tmp_path / "a.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("a.geojson", "{}")
        archive.writestr("a.qml", "<qgis/>")
    path.write_bytes(path.read_bytes().replace(b"<qgis/>", b"<qgiz/>"))
    [style] = packed_styles(path, "a.zip", None)
    assert style == UnreadStyle("'a.qml' in the ZIP file", "it is damaged")


@pytest.mark.parametrize(
    ("attribute", "value", "expected"),
    [
        ("Land Use", 7.0, ("land_use", "7")),
        ("land use", "wood", ("land_use", "wood")),
        ("Number", "7", ("number_", 7.0)),
        ("Number", "seven", ("number_", "seven")),
        ("open", "true", ("open", True)),
        ("open", 0.0, ("open", False)),
    ],
)
def test_classes_have_the_column_and_the_type_of_the_table(attribute: str, value: Any, expected: Any) -> None:
    style = VectorStyle(attribute=attribute, classes=[StyleClass(value=value, color="#00ff00")])
    fitted, warnings = fit(COLUMNS, style)
    assert (fitted.attribute, fitted.classes[0].value, warnings) == (*expected, [])


def test_classes_about_another_column_are_left_out() -> None:
    style = VectorStyle(fill_color="#123456", attribute="x", classes=[StyleClass(value=1, color="#00ff00")])
    fitted, [warning] = fit(COLUMNS, style)
    assert (fitted.fill_color, fitted.attribute, fitted.classes) == ("#123456", None, [])
    assert "no column 'x'" in warning
    with pytest.raises(NotConvertible):
        fit(COLUMNS, RasterStyle(bidx=[1]))
