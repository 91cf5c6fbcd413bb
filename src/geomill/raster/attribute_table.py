"""Reads the attribute table of a classified raster: the name and colour of each value.

GDAL stores it beside the raster in `NAME.tif.aux.xml`. GDAL itself is not allowed to read that file here, because it
can override other properties of a raster. This module extracts only the table.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any
from xml.etree import ElementTree

from geomill.errors import NotFoundError
from geomill.raster.facts import RasterClass
from geomill.sdk import ObjectName, Storage

LARGEST = 1024 * 1024
MOST_CLASSES = 1_000
NAME, LOWEST, HIGHEST, VALUE, RED, GREEN, BLUE = 2, 3, 4, 5, 6, 7, 8
"""GDAL's numbers for the usage of a column."""


def read_classes(storage: Storage, name: ObjectName) -> tuple[list[RasterClass], list[str]]:
    """Return the classes of the first band, and warnings. There are no classes if the file or the table is missing."""
    beside = ObjectName(name.zone, name.container, f"{name.path}.aux.xml")
    try:
        size = storage.sync.stat(beside).size
    except NotFoundError:
        return [], []
    if size > LARGEST:
        return [], [f"the attribute table beside the raster has {size:,} bytes, more than {LARGEST:,}: it was not read"]
    return parse_classes(storage.sync.read(beside))


def parse_classes(text: bytes) -> tuple[list[RasterClass], list[str]]:
    if b"<!DOCTYPE" in text or b"<!ENTITY" in text:
        return [], ["the .aux.xml file beside the raster declares entities: it was not read"]
    try:
        table = ElementTree.fromstring(text).find("./PAMRasterBand[@band='1']/GDALRasterAttributeTable")  # noqa: S314  above
    except ElementTree.ParseError as error:
        return [], [f"the .aux.xml file beside the raster is not XML: {error}"]
    if table is None:
        return [], []
    classes = [parsed for row in table.iterfind("Row") if (parsed := _class(row, _uses(table))) is not None]
    if len(classes) > MOST_CLASSES:
        return [], [f"the attribute table has {len(classes):,} classes, more than {MOST_CLASSES:,}: it was ignored"]
    return sorted(classes, key=lambda parsed: parsed.value), []


def _uses(table: ElementTree.Element) -> dict[int, int]:
    """Return the column of each usage."""
    columns = enumerate(table.iterfind("FieldDefn"))
    uses = {_whole(column.findtext("Usage")): index for index, column in columns}
    return {use: index for use, index in uses.items() if use is not None}


def _class(row: ElementTree.Element, uses: dict[int, int]) -> RasterClass | None:
    """Return the class of a row, or None if the row describes a range of values."""
    cells = [cell.text or "" for cell in row.iterfind("F")]

    def of(use: int) -> Any:
        return cells[uses[use]] if use in uses and uses[use] < len(cells) else None

    value = _whole(of(VALUE) if VALUE in uses else of(LOWEST) if of(LOWEST) == of(HIGHEST) else None)
    name = of(NAME)
    if value is None or not name:
        return None
    return RasterClass(value=value, name=name.strip()[:200], color=_color(of(use) for use in (RED, GREEN, BLUE)))


def _color(parts: Iterable[str | None]) -> tuple[int, int, int] | None:
    numbers = [_whole(part) for part in parts]
    red, green, blue = numbers
    if red is None or green is None or blue is None or not all(0 <= part <= 255 for part in (red, green, blue)):
        return None
    return red, green, blue


def _whole(text: str | None) -> int | None:
    try:
        number = float(text or "")
    except ValueError:
        return None
    return int(number) if number.is_integer() and abs(number) < 2**53 else None
