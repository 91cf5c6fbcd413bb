"""Vectors in WMS: features of the table, drawn by GDAL's rasterizer in the colours of the style."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import shapely
from numpy.typing import NDArray
from rasterio.features import rasterize
from rasterio.transform import from_bounds
from rasterio.warp import transform_bounds

from geomill.domain.assets.style import StyleClass, VectorStyle, rgba
from geomill.serve.vector.collections import AssetLayer
from geomill.serve.wms.canvas import Canvas, blank, stacked
from geomill.serve.wms.parameters import MapRequest
from geomill.store.quoting import identifier

MOST_FEATURES = 20_000
"""Features of a layer in a picture. Of more, some of everywhere are drawn."""
REACH = 4
"""Pixels around a point within which features are found."""
EVERYWHERE = (-180.0, -90.0, 180.0, 90.0)
Shapes = NDArray[Any]


async def read(conn: Any, layer: AssetLayer, shown: MapRequest, style: VectorStyle) -> tuple[Shapes, list[Any]]:
    """Return geometries in the reference system of the picture, and the values by which they are classified."""
    column = layer.geometry_column
    if column is None:
        return np.array([]), []
    margin = max(style.line_width, style.circle_radius) + 1
    where = layer.cql_where(bbox=_degrees(shown, margin))
    pixel = (shown.bounds[2] - shown.bounds[0]) / shown.width
    shape = f"ST_Transform(CAST({identifier(column.name)} AS geometry), {shown.crs.to_epsg()})"
    has_attribute = style.attribute is not None and layer.get_column(style.attribute) is not None
    value = identifier(style.attribute) if has_attribute and style.attribute else "NULL"
    scattered = layer.model_copy(update={"scattered": layer.id_column is not None})
    statement = (
        f"SELECT ST_AsBinary(ST_Simplify({shape}, {pixel / 2!r}, true)), {value} {layer._from(None, [])}"  # noqa: SLF001
        f" {layer._where_clause(where)} {scattered._sortby(None)} LIMIT {MOST_FEATURES}"  # noqa: SLF001
    )
    rows = await conn.fetch(statement)
    return shapely.from_wkb([row[0] for row in rows]), [row[1] for row in rows]


def _degrees(shown: MapRequest, margin: float) -> list[float]:
    """Return the box of the picture and some pixels around it, in degrees."""
    wide = (shown.bounds[2] - shown.bounds[0]) / shown.width * margin
    high = (shown.bounds[3] - shown.bounds[1]) / shown.height * margin
    west, south, east, north = shown.bounds
    box = (west - wide, south - high, east + wide, north + high)
    degrees = transform_bounds(shown.crs, "EPSG:4326", *box, densify_pts=21) if shown.crs.to_epsg() != 4326 else box
    if not all(np.isfinite(degrees)):
        return list(EVERYWHERE)
    low, high_latitude = max(degrees[1], -90.0), min(degrees[3], 90.0)
    crosses = degrees[0] > degrees[2]
    return [-180.0 if crosses else max(degrees[0], -180.0), low, 180.0 if crosses else min(degrees[2], 180.0),
            high_latitude]  # fmt: skip


def draw(shapes: Shapes, values: Sequence[Any], style: VectorStyle, shown: MapRequest) -> Canvas:
    """Draw areas, their outlines, lines and points, one on top of the other."""
    if not len(shapes):
        return blank(shown.width, shown.height)
    classes = np.array([class_of(value, style.classes) for value in values])
    kinds = shapely.get_dimensions(shapes)
    pixel = (shown.bounds[2] - shown.bounds[0]) / shown.width
    lines = np.where(kinds == 2, shapely.boundary(shapes), shapes)
    wide = shapely.buffer(lines, style.line_width * pixel / 2, quad_segs=2) if style.line_width > 1.5 else lines
    round_points = shapely.buffer(shapes, style.circle_radius * pixel, quad_segs=4)
    faded_outline = _faded(rgba(style.line_color), style.line_opacity * style.opacity)
    layers = (
        (shapes, kinds == 2, _palette(style, style.fill_color, style.fill_opacity * style.opacity), False),
        (wide, kinds == 2, np.array([faded_outline] * (len(style.classes) + 1)), True),
        (wide, kinds == 1, _palette(style, style.line_color, style.line_opacity * style.opacity), True),
        (round_points, kinds == 0, _palette(style, style.circle_color, style.circle_opacity * style.opacity), False),
    )
    drawn = [_burnt(part[chosen], classes[chosen], colors, shown, touched=touched)
             for part, chosen, colors, touched in layers if chosen.any()]  # fmt: skip
    return stacked(drawn, shown.width, shown.height)


def class_of(value: Any, classes: Sequence[StyleClass]) -> int:
    """Return the number of the first class that a value belongs to; their count if there is none."""
    for number, entry in enumerate(classes):
        if entry.value is not None:
            if _equal(value, entry.value):
                return number
        elif isinstance(value, int | float) and not isinstance(value, bool):
            low = entry.minimum is None or value >= entry.minimum
            if low and (entry.maximum is None or value < entry.maximum):
                return number
    return len(classes)


def _equal(value: Any, expected: Any) -> bool:
    """Compare as MapLibre does: true is not 1. A class of a text also finds values that read like it."""
    if value is None or isinstance(value, bool) != isinstance(expected, bool):
        return False
    return bool(value == expected) or (isinstance(expected, str) and str(value) == expected)


def _palette(style: VectorStyle, otherwise: str, opacity: float) -> NDArray[np.uint8]:
    colors = [entry.color for entry in style.classes] + [otherwise]
    return np.array([_faded(rgba(color), opacity) for color in colors], dtype=np.uint8)


def _faded(color: tuple[int, int, int, int], opacity: float) -> tuple[int, int, int, int]:
    return (*color[:3], round(color[3] * opacity))


def _burnt(shapes: Shapes, classes: NDArray[Any], palette: NDArray[Any], shown: MapRequest, *, touched: bool) -> Canvas:
    """Return the shapes in the colours of their classes."""
    sound = [(shape, number + 1) for shape, number in zip(shapes, classes, strict=True) if not shape.is_empty]
    if not sound:
        return blank(shown.width, shown.height)
    place = from_bounds(*shown.bounds, shown.width, shown.height)
    size = (shown.height, shown.width)
    numbers = rasterize(sound, size, transform=place, all_touched=touched, dtype="uint16")
    colors = np.concatenate([np.zeros((1, 4), dtype=np.uint8), palette.astype(np.uint8)])
    canvas: Canvas = np.moveaxis(colors[numbers], -1, 0).copy()
    return canvas


def around(shown: MapRequest, column: int, row: int) -> list[float]:
    """Return the box around a pixel, in degrees, within which features are found."""
    west, south, east, north = shown.bounds
    wide, high = (east - west) / shown.width, (north - south) / shown.height
    x, y = west + (column + 0.5) * wide, north - (row + 0.5) * high
    part = MapRequest(
        shown.layers, shown.styles, shown.crs, (x - wide * REACH, y - high * REACH, x + wide * REACH, y + high * REACH),
        1, 1, shown.transparent, shown.background,
    )  # fmt: skip
    return _degrees(part, 0)
