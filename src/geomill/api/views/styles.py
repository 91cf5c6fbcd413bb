"""Views of styles."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from geomill.contract.styles import LegendEntry, StylesView, StyleView
from geomill.domain.assets.asset import Asset
from geomill.domain.assets.drawing import legend, maplibre_layers
from geomill.domain.assets.style import AUTOMATIC, AssetStyle, RasterStyle, StyleBook, VectorStyle
from geomill.raster.facts import RasterType
from geomill.raster.rendering import rendering


def styles_of(asset: Asset, own: Sequence[AssetStyle]) -> StylesView:
    """Return all styles of an asset: those of people, those that came with the data, and the computed one."""
    by_name = {style.name: style for style in own}
    book = book_of(asset, own)
    default = book.default or AUTOMATIC
    views = [
        style_view(name, style, by_name.get(name), is_default=name == default) for name, style in book.styles.items()
    ]
    computed = StyleView(
        name=AUTOMATIC,
        default=default == AUTOMATIC,
        origin="computed",
        title="By the data",
        legend=_computed_legend(asset.outputs or {}),
    )
    return StylesView(asset_id=asset.asset_id, default=default, styles=[*views, computed])


def _computed_legend(outputs: Mapping[str, Any]) -> list[LegendEntry]:
    """Return values and colours of a raster that is drawn by a ramp of colours."""
    name, statistics = outputs.get("raster_type"), outputs.get("statistics")
    if name not in list(RasterType) or not isinstance(statistics, list):
        return []
    house = rendering(RasterType(name), statistics, dtype="")
    colors = ("#{:02x}{:02x}{:02x}".format(*color) for _, color in house.legend)
    return [
        LegendEntry(text=f"{value:.4g}", color=color) for (value, _), color in zip(house.legend, colors, strict=True)
    ]


def book_of(asset: Asset, own: Sequence[AssetStyle]) -> StyleBook:
    own_styles: Mapping[str, Any] = {
        "default": next((style.name for style in own if style.is_default), None),
        "styles": {style.name: style.style for style in own},
    }
    return StyleBook.of((asset.outputs or {}).get("styles"), own_styles)


def style_view(
    name: str,
    style: RasterStyle | VectorStyle,
    asset_style: AssetStyle | None,
    *,
    is_default: bool,
    warnings: Sequence[str] = (),
) -> StyleView:
    return StyleView(
        name=name,
        default=is_default,
        origin="person" if asset_style else "source",
        title=style.title,
        style=style,
        legend=[LegendEntry(text=text, color=color) for text, color in legend(style)],
        maplibre=maplibre_layers(style) if isinstance(style, VectorStyle) else [],
        updated_by=asset_style.updated_by if asset_style else None,
        updated_at=asset_style.updated_at if asset_style else None,
        warnings=list(warnings),
    )
