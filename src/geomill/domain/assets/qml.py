"""Converts styles of QGIS (QML) as far as geomill has the same: renderers by value, range, ramp and bands."""

from __future__ import annotations

import re
from typing import Any
from xml.etree.ElementTree import Element

from geomill.domain.assets.foreign_xml import NotConvertible, number, opacity_of, read_xml

Document = dict[str, Any]
_ENDS = {"inf": float("inf"), "-inf": float("-inf")}
"""Values of QGIS for the last step upwards and downwards."""
_QUOTED = re.compile(r'"[^"]+"')


def from_qml(text: str) -> tuple[Document, list[str]]:
    """Return a style and warnings. Raises `NotConvertible`, or `InputError` if it is not XML."""
    root = read_xml(text, "qml")
    raster, vector = root.find(".//rasterrenderer"), root.find(".//renderer-v2")
    if raster is not None:
        style, warnings = _raster(raster)
        return {**style, **opacity_of(raster.get("opacity"))}, warnings
    if vector is not None:
        style, warnings = _vector(vector)
        return {**style, **opacity_of(root.findtext("layerOpacity"))}, warnings
    raise NotConvertible("the QML has no renderer of a raster or vector layer")


def _raster(renderer: Element) -> tuple[Document, list[str]]:
    kind = renderer.get("type", "")
    if kind == "singlebandpseudocolor":
        return _pseudocolor(renderer)
    if kind == "paletted":
        classes = [_class(entry) for entry in renderer.iter("paletteEntry")]
        return {"kind": "raster", "bidx": [_band(renderer, "band")], "classes": classes}, []
    if kind == "multibandcolor":
        bands = [_band(renderer, f"{name}Band") for name in ("red", "green", "blue")]
        ranges = [_range(renderer.find(f"{name}ContrastEnhancement")) for name in ("red", "green", "blue")]
        rescale = {"rescale": ranges} if all(ranges) else {}
        return {"kind": "raster", "bidx": bands, **rescale}, []
    if kind == "singlebandgray":
        low_high = _range(renderer.find("contrastEnhancement"))
        return {
            "kind": "raster",
            "bidx": [_band(renderer, "grayBand")],
            **({"rescale": [low_high]} if low_high else {}),
        }, []
    raise NotConvertible(f"the renderer '{kind[:60]}' of QGIS has no counterpart")


def _pseudocolor(renderer: Element) -> tuple[Document, list[str]]:
    shader = renderer.find(".//colorrampshader")
    entries = [_class(item) for item in shader.iter("item")] if shader is not None else []
    if shader is None or not entries:
        raise NotConvertible("the QML has no colours")
    base = {"kind": "raster", "bidx": [_band(renderer, "band")]}
    kind = shader.get("colorRampType", "INTERPOLATED").upper()
    if kind == "EXACT":
        return {**base, "classes": entries}, []
    if kind == "DISCRETE":
        return {**base, "classes": _steps(entries)}, []
    stops = {entry["value"]: entry for entry in entries if entry["value"] not in (float("inf"), float("-inf"))}
    if len(stops) < 2:
        raise NotConvertible("a ramp needs two values at least")
    return {**base, "ramp": [stops[value] for value in sorted(stops)]}, []


def _steps(entries: list[Document]) -> list[Document]:
    """Return ranges. An entry of QGIS is for all values up to its own."""
    steps, below = [], None
    for entry in sorted(entries, key=lambda entry: entry["value"]):
        high = None if entry["value"] == float("inf") else entry["value"]
        step = {name: value for name, value in entry.items() if name != "value"}
        steps.append(
            {
                **step,
                **({"minimum": below} if below is not None else {}),
                **({"maximum": high} if high is not None else {}),
            }
        )
        below = high
    return [step for step in steps if "minimum" in step or "maximum" in step]


def _class(entry: Element) -> Document:
    text = entry.get("value")
    value = _ENDS[text] if text in _ENDS else number(text)
    if value is None:
        raise NotConvertible(f"'{str(entry.get('value'))[:40]}' is not a number")
    opacity = number(entry.get("alpha"))
    color = str(entry.get("color", ""))[:7] + (f"{round(opacity):02x}" if opacity is not None and opacity < 255 else "")
    label = entry.get("label")
    return {"value": value, "color": color, **({"label": label[:200]} if label else {})}


def _band(renderer: Element, name: str) -> int:
    band = number(renderer.get(name))
    if band is None or band < 1:
        raise NotConvertible(f"the renderer has no {name}")
    return int(band)


def _range(enhancement: Element | None) -> list[float] | None:
    if enhancement is None:
        return None
    low, high = number(enhancement.findtext("minValue")), number(enhancement.findtext("maxValue"))
    return [low, high] if low is not None and high is not None and low < high else None


def _vector(renderer: Element) -> tuple[Document, list[str]]:
    symbols = {str(symbol.get("name")): symbol for symbol in renderer.findall("symbols/symbol")}
    kind = renderer.get("type", "")
    warnings = (
        ["only the first layer of each symbol is used"]
        if any(len(symbol.findall("layer")) > 1 for symbol in symbols.values())
        else []
    )
    if kind == "singleSymbol" and symbols:
        return {"kind": "vector", **_paint(next(iter(symbols.values())))}, warnings
    if kind not in ("categorizedSymbol", "graduatedSymbol") or not symbols:
        raise NotConvertible(f"the renderer '{kind[:60]}' of QGIS has no counterpart")
    attribute = _column(str(renderer.get("attr", "")))
    classes, other = [], ""
    for entry in [*renderer.findall("categories/category"), *renderer.findall("ranges/range")]:
        symbol = symbols.get(str(entry.get("symbol")))
        if symbol is None or entry.get("render") == "false":
            continue
        paint = _paint(symbol)
        if entry.get("value") == "":
            other = paint["fill_color"]
            continue
        classes.append({**_condition(entry), "color": paint["fill_color"]})
    style = {"kind": "vector", **_paint(next(iter(symbols.values()))), "attribute": attribute, "classes": classes}
    return {**style, **({"fill_color": other, "line_color": other, "circle_color": other} if other else {})}, warnings


def _column(attribute: str) -> str:
    """Return the column that the classes are about. QGIS quotes names, and allows expressions."""
    name = attribute[1:-1] if _QUOTED.fullmatch(attribute) else attribute
    if name == attribute and not name.replace("_", "a").isalnum():
        raise NotConvertible(f"the classes are about the expression '{attribute[:60]}', not about a column")
    return name


def _condition(entry: Element) -> Document:
    label = {"label": str(entry.get("label"))[:200]} if entry.get("label") else {}
    low, high = number(entry.get("lower")), number(entry.get("upper"))
    if low is not None and high is not None:
        return {"minimum": low, "maximum": high if high > low else low + 1e-9, **label}
    text = str(entry.get("value"))
    typed = number(text) if entry.get("type") in ("integer", "long", "double", "uint") else None
    return {"value": text if typed is None else typed, **label}


def _paint(symbol: Element) -> Document:
    layer = symbol.find("layer")
    values: dict[str, str] = {}
    for part in layer.iter() if layer is not None else ():
        name, value = (part.get("k"), part.get("v")) if part.tag == "prop" else (part.get("name"), part.get("value"))
        if name and value is not None:
            values.setdefault(name, value)
    opacity = number(symbol.get("alpha")) if symbol.get("alpha") else 1.0
    kind = symbol.get("type")
    main = _color(values.get("line_color" if kind == "line" else "color", "")) or "#808080"
    outline = _color(values.get("outline_color", "")) or main
    width = number(values.get("line_width" if kind == "line" else "outline_width", "")) or 0.4
    size = number(values.get("size", "")) or 2.0
    return {
        "fill_color": main,
        "fill_opacity": opacity,
        "line_color": main if kind == "line" else outline,
        "line_width": round(width * MILLIMETRE, 2),
        "line_opacity": opacity,
        "circle_color": main,
        "circle_radius": round(size * MILLIMETRE / 2, 2),
        "circle_opacity": opacity,
    }


MILLIMETRE = 96 / 25.4
"""Pixels of a screen in a millimetre, in which QGIS has widths."""


def _color(text: str) -> str:
    """Return a colour of `r,g,b,a` and perhaps more behind it."""
    parts = [number(part) for part in text.split(",")[:4]]
    if len(parts) < 3 or any(part is None or not 0 <= part <= 255 for part in parts):
        return "" if not text else "#808080"
    whole = [round(part) for part in parts if part is not None]
    return "#" + "".join(f"{part:02x}" for part in (whole if len(whole) == 4 and whole[3] < 255 else whole[:3]))
