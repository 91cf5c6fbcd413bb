"""Styles as others draw them: legends, colormaps of TiTiler, layers of MapLibre. Pure functions."""

from __future__ import annotations

from typing import Any

from geomill.domain.assets.style import RasterStyle, StyleClass, VectorStyle, rgba

Rgba = tuple[int, int, int, int]
Colormap = dict[int, Rgba] | dict[float, Rgba] | list[tuple[tuple[float, float], Rgba]]
INFINITY = float("inf")
SOURCE = "asset"
"""The name of the source in MapLibre layers."""
TILE_LAYER = "default"
"""The name of the layer in vector tiles."""


def legend(style: RasterStyle | VectorStyle) -> list[tuple[str, str]]:
    """Return texts and colours. Empty if one colour, or the data itself, is all that is drawn."""
    if isinstance(style, RasterStyle) and style.ramp:
        return [(stop.label or f"{stop.value:g}", stop.color) for stop in style.ramp]
    return [(entry.text, entry.color) for entry in style.classes or ()]


def stretch(style: RasterStyle) -> tuple[tuple[float, float], ...]:
    """Return the ranges of values that become 0 to 255. Empty if the style does not say."""
    if style.ramp:
        return ((style.ramp[0].value, style.ramp[-1].value),)
    return tuple(style.rescale or ())


def colormap(style: RasterStyle) -> Colormap | None:
    """Return the colours as rio-tiler takes them, except for a named colormap."""
    if style.colormap:
        return {value: rgba(color) for value, color in style.colormap.items()}
    if style.ramp:
        return _steps([(stop.value, rgba(stop.color)) for stop in style.ramp])
    if not style.classes:
        return None
    if all(entry.value is not None for entry in style.classes):
        return {float(entry.value): rgba(entry.color) for entry in style.classes if entry.value is not None}
    return [(_interval(entry), rgba(entry.color)) for entry in style.classes]


def _interval(entry: StyleClass) -> tuple[float, float]:
    if entry.value is not None:
        value = float(entry.value)
        return value, value + max(abs(value) * 1e-9, 1e-9)
    low = -INFINITY if entry.minimum is None else entry.minimum
    return low, INFINITY if entry.maximum is None else entry.maximum


def _steps(stops: list[tuple[float, Rgba]]) -> dict[int, Rgba]:
    """Return 256 colours between the first and the last stop."""
    first, last = stops[0][0], stops[-1][0]
    steps, index = {}, 0
    for step in range(256):
        value = first + (last - first) * step / 255
        while index < len(stops) - 2 and value > stops[index + 1][0]:
            index += 1
        (low, below), (high, above) = stops[index], stops[index + 1]
        share = min(max((value - low) / (high - low), 0.0), 1.0)
        mixed = [round(a + (b - a) * share) for a, b in zip(below, above, strict=True)]
        steps[step] = (mixed[0], mixed[1], mixed[2], mixed[3])
    return steps


def maplibre_layers(style: VectorStyle, source: str = SOURCE, prefix: str = "") -> list[dict[str, Any]]:
    """Return layers for polygons, lines and points."""
    common = {"source": source, "source-layer": TILE_LAYER}
    paints: tuple[tuple[str, str, str, dict[str, Any]], ...] = (
        (
            "areas",
            "fill",
            "Polygon",
            {
                "fill-color": _color(style, style.fill_color),
                "fill-opacity": style.fill_opacity * style.opacity,
                "fill-outline-color": style.line_color,
            },
        ),
        (
            "lines",
            "line",
            "LineString",
            {
                "line-color": _color(style, style.line_color),
                "line-width": style.line_width,
                "line-opacity": style.line_opacity * style.opacity,
            },
        ),
        (
            "points",
            "circle",
            "Point",
            {
                "circle-color": _color(style, style.circle_color),
                "circle-radius": style.circle_radius,
                "circle-opacity": style.circle_opacity * style.opacity,
                "circle-stroke-color": "#ffffff",
                "circle-stroke-width": 1,
                "circle-stroke-opacity": style.circle_opacity * style.opacity,
            },
        ),
    )
    return [
        {"id": prefix + name, "type": kind, **common, "filter": ["==", ["geometry-type"], shape], "paint": paint}
        for name, kind, shape, paint in paints
    ]


def _color(style: VectorStyle, otherwise: str) -> Any:
    if not style.classes:
        return otherwise
    value = ["get", style.attribute]
    branches: list[Any] = []
    for entry in style.classes:
        branches += [_condition(entry, value), entry.color]
    return ["case", *branches, otherwise]


def _condition(entry: StyleClass, value: list[Any]) -> list[Any]:
    if entry.value is not None:
        return ["==", value, entry.value]
    number = ["to-number", value, 0]
    bounds: list[Any] = [["==", ["typeof", value], "number"]]
    bounds += [[">=", number, entry.minimum]] if entry.minimum is not None else []
    bounds += [["<", number, entry.maximum]] if entry.maximum is not None else []
    return ["all", *bounds]
