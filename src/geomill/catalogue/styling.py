"""Styles in the catalogue: `renders` of a raster's item, and links to the styles of a vector."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from geomill.domain.assets.style import AUTOMATIC, DEFAULT, RasterStyle, StyleBook, rgba

Document = dict[str, Any]

MOST_COLORS = 64
"""A render with more colours would be longer than the rest of the item, so they are left out."""


def with_styles(item: Document, name: str, styles: StyleBook) -> Document:
    """Return the item with the styles of its asset. `name` is that of the asset in addresses."""
    renders = renders_of(item["properties"].get("renders"), styles)
    properties = {**item["properties"], **({"renders": renders} if renders else {})}
    return {**item, "properties": properties, "links": [*item["links"], *style_links(name, styles)]}


def renders_of(workflow_renders: Any, styles: StyleBook) -> Document | None:
    """Return the renders of an item. Its `default` is the default style; that of the workflow is then `automatic`.
    None if the workflow made no renders, because only those name the files to draw."""
    if not isinstance(workflow_renders, dict):
        return None
    automatic = workflow_renders.get(DEFAULT)
    files = {"assets": automatic["assets"]} if isinstance(automatic, dict) and "assets" in automatic else {}
    renders = {name: {**files, **_render(style)} for name, style in styles.styles.items() if _is_raster(style)}
    if not isinstance(styles.chosen, RasterStyle):
        return {**workflow_renders, **renders}
    computed = {AUTOMATIC: automatic} if automatic else {}
    return {**workflow_renders, **renders, **computed, DEFAULT: {**files, **_render(styles.chosen)}}


def style_links(name: str, styles: StyleBook) -> list[Document]:
    """Return links to the styles of a vector, for MapLibre."""
    place = f"../vector/collections/{name}/tiles/WebMercatorQuad/style.json"
    return [
        {"rel": "style", "type": "application/json", "title": style.title or key, "href": f"{place}?style={key}"}
        for key, style in styles.styles.items()
        if not _is_raster(style)
    ]


def _is_raster(style: object) -> bool:
    return isinstance(style, RasterStyle)


def _render(style: Any) -> Document:
    """Return a style as an object of STAC's render extension."""
    fields = ("title", "expression", "rescale", "colormap_name", "nodata", "resampling")
    document: Mapping[str, Any] = style.model_dump(mode="json", include=set(fields), exclude_none=True)
    render = {**document, **({"bidx": list(style.bands)} if style.bands else {})}
    if style.colormap and len(style.colormap) <= MOST_COLORS:
        render["colormap"] = {str(value): list(rgba(color)) for value, color in style.colormap.items()}
    if style.ramp:
        render["rescale"] = [[style.ramp[0].value, style.ramp[-1].value]]
    values = [entry for entry in style.classes or () if entry.value is not None and float(entry.value).is_integer()]
    if values and len(values) == len(style.classes) <= MOST_COLORS:
        render["colormap"] = {str(int(entry.value)): list(rgba(entry.color)) for entry in values}
    return render
