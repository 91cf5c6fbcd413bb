"""Converts styles of SLD and SE as far as geomill has the same: colour maps, channels, and rules about one property."""

from __future__ import annotations

from typing import Any
from xml.etree.ElementTree import Element

from geomill.domain.assets.foreign_xml import NotConvertible, number, opacity_of, read_xml, texts

Document = dict[str, Any]


def from_sld(text: str) -> tuple[Document, list[str]]:
    """Return a style and warnings. Raises `NotConvertible`, or `InputError` if it is not XML."""
    root = read_xml(text, "sld")
    raster = root.find(".//RasterSymbolizer")
    if raster is not None:
        return {**_raster(raster), **opacity_of(raster.findtext("Opacity"))}, []
    rules = list(root.iter("Rule"))
    if not rules:
        raise NotConvertible("the SLD has no rules")
    return _vector(rules)


def _raster(symbolizer: Element) -> Document:
    channels = [number(next(texts(channel, "SourceChannelName"), None)) for channel in _channels(symbolizer)]
    bands = [int(channel) for channel in channels if channel]
    base: Document = {"kind": "raster", **({"bidx": bands} if bands else {})}
    table = symbolizer.find(".//ColorMap")
    if table is None:
        return base
    entries = [_entry(entry) for entry in table.iter("ColorMapEntry")]
    kind = table.get("type", "ramp")
    if kind == "values":
        return {**base, "classes": entries}
    if kind == "intervals":
        return {**base, "classes": _intervals(entries)}
    if len(entries) < 2:
        raise NotConvertible("a ramp needs two values at least")
    return {**base, "ramp": sorted(entries, key=lambda entry: float(entry["value"]))}


def _channels(symbolizer: Element) -> list[Element]:
    names = ("RedChannel", "GreenChannel", "BlueChannel", "GrayChannel")
    channels = [symbolizer.find(f".//ChannelSelection/{name}") for name in names]
    return [channel for channel in channels if channel is not None]


def _entry(entry: Element) -> Document:
    value, opacity = number(entry.get("quantity")), number(entry.get("opacity"))
    if value is None:
        raise NotConvertible("a ColorMapEntry has no quantity")
    alpha = f"{round(255 * opacity):02x}" if opacity is not None and 0 <= opacity < 1 else ""
    label = entry.get("label")
    return {"value": value, "color": f"{entry.get('color', '')}{alpha}", **({"label": label[:200]} if label else {})}


def _intervals(entries: list[Document]) -> list[Document]:
    """Return ranges. An entry of SLD is for all values below its own."""
    classes, below = [], None
    for entry in sorted(entries, key=lambda entry: float(entry["value"])):
        step = {name: value for name, value in entry.items() if name != "value"}
        classes.append({**step, **({"minimum": below} if below is not None else {}), "maximum": entry["value"]})
        below = entry["value"]
    return classes


def _vector(rules: list[Element]) -> tuple[Document, list[str]]:
    style: Document = {"kind": "vector"}
    classes: list[Document] = []
    attribute, warnings = "", []
    for rule in rules:
        paint = _paint(rule)
        filters = rule.find("Filter")
        if filters is None:
            style |= paint
            continue
        name, condition = _condition(filters)
        if not name or (attribute and name != attribute):
            warnings.append(f"the rule '{next(texts(rule, 'Title'), next(texts(rule, 'Name'), '?'))[:60]}' is left out")
            continue
        attribute = name
        title = next(texts(rule, "Title"), "")
        color = paint.get("fill_color") or paint.get("line_color") or paint.get("circle_color")
        if color:
            classes.append({**condition, "color": color, **({"label": title[:200]} if title else {})})
            style = {**paint, **style}
    if classes:
        style |= {"attribute": attribute, "classes": classes}
    if len(style) == 1:
        raise NotConvertible("no rule of the SLD could be converted")
    return style, warnings


def _condition(filters: Element) -> tuple[str, Document]:
    """Return the property and the condition of a class; no property if the filter is of another kind."""
    names = set(texts(filters, "PropertyName")) | set(texts(filters, "ValueReference"))
    if len(names) != 1:
        return "", {}
    name = names.pop()
    bounds: Document = {}
    for element in filters.iter():
        literals = [number(text) for text in texts(element, "Literal")]
        if element.tag == "PropertyIsEqualTo":
            text = next(texts(element, "Literal"), "")
            plain = number(text)
            return name, {"value": text if plain is None else plain}
        if element.tag == "PropertyIsBetween" and len(literals) == 2:
            return name, {"minimum": literals[0], "maximum": literals[1]}
        if element.tag in ("PropertyIsGreaterThanOrEqualTo", "PropertyIsGreaterThan"):
            bounds["minimum"] = next(iter(literals), None)
        if element.tag in ("PropertyIsLessThan", "PropertyIsLessThanOrEqualTo"):
            bounds["maximum"] = next(iter(literals), None)
    return (name, bounds) if bounds and None not in bounds.values() else ("", {})


def _paint(rule: Element) -> Document:
    parameters: dict[str, str] = {}
    for element in [*rule.iter("CssParameter"), *rule.iter("SvgParameter")]:
        if element.get("name") and element.text:
            parameters.setdefault(str(element.get("name")), element.text.strip())
    paint: Document = {}
    if fill := parameters.get("fill"):
        opacity = number(parameters.get("fill-opacity"))
        paint |= {"fill_color": fill, "circle_color": fill, "fill_opacity": 1.0 if opacity is None else opacity}
    if stroke := parameters.get("stroke"):
        paint |= {"line_color": stroke, "line_width": number(parameters.get("stroke-width")) or 1.0}
    size = number(next(texts(rule, "Size"), None))
    return {**paint, **({"circle_radius": size / 2} if size and size <= 200 else {})}
