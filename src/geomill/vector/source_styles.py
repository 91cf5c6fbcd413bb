"""Styles that come with a layer: in its GeoPackage, in its ZIP file, or beside its file."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from geomill.datasets.source import Source
from geomill.datasets.source_styles import (
    LARGEST_FILE,
    Candidate,
    ForeignStyle,
    SourceStyles,
    UnreadStyle,
    chosen_style,
    styles_beside,
    too_large,
)
from geomill.domain.assets.foreign_style import StyleLanguage
from geomill.domain.assets.foreign_xml import NotConvertible, number
from geomill.domain.assets.style import RasterStyle, VectorStyle
from geomill.sdk import HandlerContext, HandlerError
from geomill.vector.archives import files_beside_data
from geomill.vector.facts import Format, LayerColumn, LayerFacts
from geomill.vector.geopackage import check_layer, reading
from geomill.vector.workspace import is_archive, local_data, original_data

STYLE_TABLE = "layer_styles"
LARGEST_ROW = 4 * LARGEST_FILE
"""In bytes. A row has the style in both languages, and perhaps a form."""
_DEFAULT_ROW = """SELECT rowid FROM layer_styles WHERE lower(f_table_name) = lower(?)
ORDER BY useAsDefault DESC, update_time DESC LIMIT 1"""
_STYLES_OF_ROW = """SELECT CAST(styleName AS TEXT), CAST(styleQML AS BLOB), CAST(styleSLD AS BLOB)
FROM layer_styles WHERE rowid = ?"""
_NUMBERS = ("smallint", "integer", "bigint", "real", "double precision")
_TRUTHS = {"true": True, "false": False, "1": True, "0": False}


def read_styles(
    ctx: HandlerContext[Any], source: Source, layer: str | None, facts: LayerFacts
) -> tuple[SourceStyles, list[str]]:
    """Return the style that came with the layer, and warnings. `layer` is the one that the submitter chose."""
    return chosen_style(_candidates(ctx, source, layer, facts), partial(fit, facts.columns))


def _candidates(ctx: HandlerContext[Any], source: Source, layer: str | None, facts: LayerFacts) -> Iterator[Candidate]:
    if facts.format is Format.GEOPACKAGE and facts.layer:
        yield from stored_styles(local_data(ctx, source, layer)[0], facts.layer)
    if is_archive(original := original_data(ctx, source)):
        yield from packed_styles(original, source.file_name, layer)
    yield from styles_beside(ctx.storage, source.name)


def stored_styles(path: Path, layer: str) -> list[Candidate]:
    """Return the default style of a layer from the table `layer_styles` of a GeoPackage, as QGIS writes it."""
    origin = f"in the table {STYLE_TABLE}"
    try:
        with reading(path) as database:
            tables = "SELECT 1 FROM sqlite_master WHERE lower(name) = ? AND type = 'table'"
            if not database.execute(tables, [STYLE_TABLE]).fetchone():
                return []
        check_layer(path, path.name, STYLE_TABLE)
        with reading(path) as database:
            # A longer row is an error of SQLite, before it takes memory.
            database.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, LARGEST_ROW)
            return _stored(database, layer, origin)
    except HandlerError:
        return [UnreadStyle(origin, "the table is not a plain table")]
    except (sqlite3.Error, UnicodeDecodeError) as error:
        return [UnreadStyle(origin, f"the table cannot be read: {str(error)[:200]}")]


def _stored(database: sqlite3.Connection, layer: str, origin: str) -> list[Candidate]:
    row_id = database.execute(_DEFAULT_ROW, [layer]).fetchone()
    if row_id is None:
        return []
    title, *texts = database.execute(_STYLES_OF_ROW, row_id).fetchone()
    return [
        too_large(f"{origin} ({language.value})", len(text))
        if len(text) > LARGEST_FILE
        else ForeignStyle(language, f"{origin} ({language.value})", text, title or "")
        for language, text in zip(StyleLanguage, texts, strict=True)
        if text
    ]


def packed_styles(archive: Path, name: str, layer: str | None) -> Iterator[Candidate]:
    """Yield the styles that lie in a ZIP file beside the data, under the same name."""
    for language in StyleLanguage:
        for path, size, read in files_beside_data(archive, name, layer, f".{language.value}"):
            origin = f"'{path.name[:120]}' in the ZIP file"
            if size > LARGEST_FILE:
                yield too_large(origin, size)
                continue
            try:
                yield ForeignStyle(language, origin, read(), path.stem)
            except HandlerError:
                yield UnreadStyle(origin, "it is damaged")


def fit(columns: Sequence[LayerColumn], style: RasterStyle | VectorStyle) -> tuple[VectorStyle, list[str]]:
    """Return the style with the names and types of the columns in the table. Raises `NotConvertible`."""
    if not isinstance(style, VectorStyle):
        raise NotConvertible("it is the style of a raster")
    if style.attribute is None:
        return style, []
    column = _column(columns, style.attribute)
    if column is None:
        plain = style.model_copy(update={"attribute": None, "classes": []})
        return plain, [f"the layer has no column '{style.attribute}', so the classes are left out"]
    classes = [entry.model_copy(update={"value": _typed(entry.value, column.type)}) for entry in style.classes]
    return style.model_copy(update={"attribute": column.name, "classes": classes}), []


def _column(columns: Sequence[LayerColumn], name: str) -> LayerColumn | None:
    for column in columns:
        if column.source == name:
            return column
    return next((column for column in columns if column.source.lower() == name.lower()), None)


def _typed(value: float | bool | str | None, column_type: str) -> float | bool | str | None:
    """Return the value of a class in the type of its column. Style files often write numbers as texts."""
    if value is None:
        return None
    text = f"{value:.15g}" if isinstance(value, float) else str(value)
    if column_type in _NUMBERS:
        parsed = number(text)
        return value if parsed is None else parsed
    return _TRUTHS.get(text.lower(), value) if column_type == "boolean" else text
