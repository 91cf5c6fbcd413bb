"""The layers of WMS: assets that the caller may see, with their styles and legends."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from fastapi import FastAPI

from geomill.domain.access.visibility import Sight
from geomill.domain.assets.asset import DataType
from geomill.domain.assets.drawing import legend
from geomill.domain.assets.metadata import DatasetMetadata
from geomill.domain.assets.served import Served
from geomill.domain.assets.style import AUTOMATIC, DEFAULT, RasterStyle, VectorStyle
from geomill.errors import NotFoundError
from geomill.raster.facts import RasterType
from geomill.raster.rendering import rendering
from geomill.serve.directory import Directory
from geomill.serve.raster.dependencies import RasterShelf
from geomill.serve.raster.readers import RasterSource
from geomill.serve.vector.collections import AssetLayer, as_collection
from geomill.serve.wms.errors import ServiceException

MOST_LISTED = 200
WORLD = [-180.0, -90.0, 180.0, 90.0]


@dataclass(frozen=True, slots=True)
class WmsLayer:
    """A layer that a request names. `part` is the table of a split vector layer."""

    served: Served
    part: str = ""

    @property
    def name(self) -> str:
        return f"{self.served.asset_id}.{self.part}" if self.part else self.served.name

    @property
    def title(self) -> str:
        return f"{self.served.title}, {self.part}" if self.part else self.served.title

    @property
    def metadata(self) -> DatasetMetadata:
        return self.served.metadata

    @property
    def box(self) -> list[float]:
        """West, south, east and north; the whole width if the layer crosses the antimeridian."""
        west, south, east, north = self.served.bbox or WORLD
        return [west, south, east, north] if west <= east else [-180.0, south, 180.0, north]

    @property
    def styles(self) -> dict[str, str]:
        """Titles by name, the default first."""
        own = {name: style.title or name for name, style in self.served.styles.styles.items()}
        more = {**own, AUTOMATIC: AUTOMATIC} if own and not self.served.series else {}
        return {DEFAULT: DEFAULT, **more}


@dataclass(frozen=True, slots=True)
class LayerFinder:
    """Finds layers by name, as one caller may see them. `only` is the one asset of the address, if it names one."""

    directory: Directory
    raster_app: FastAPI
    vector_app: FastAPI
    sight: Sight
    only: str | None = None

    @property
    def shelf(self) -> RasterShelf:
        shelf: RasterShelf = self.raster_app.state.shelf
        return shelf

    async def find(self, name: str) -> WmsLayer:
        asset_id, _, part = name.partition(".")
        status = 404 if name == self.only else 400
        unknown = ServiceException(f"there is no layer '{name[:100]}'", "LayerNotDefined", "LAYERS", status)
        if self.only is not None and asset_id != self.only.partition(".")[0]:
            raise unknown
        try:
            served = await self.directory.asset(asset_id, self.sight)
            if served.data_type is DataType.RASTER:
                return WmsLayer(await self.directory.raster(name, self.sight))
        except NotFoundError:
            raise unknown from None
        if part not in served.layers:
            raise unknown
        return WmsLayer(served, part)

    async def listed(self, limit: int, offset: int) -> tuple[list[WmsLayer], int]:
        """Return layers for the capabilities, and how many assets there are."""
        if self.only is not None:
            layer = await self.find(self.only)
            parts = [layer] if layer.served.data_type is DataType.RASTER else _parts(layer.served)
            return parts, 1
        page = await self.directory.page(self.sight, limit=limit, offset=offset)
        return [layer for served in page.assets for layer in _parts(served)], page.matched

    async def raster(self, layer: WmsLayer) -> RasterSource:
        try:
            source = self.shelf.source(layer.served)
        except NotFoundError as error:
            raise ServiceException(str(error), "LayerNotDefined", "LAYERS") from None
        return replace(source, series=await self.directory.series(layer.served)) if layer.served.series else source

    async def collection(self, layer: WmsLayer) -> AssetLayer:
        table = (await self.directory.tables([layer.served])).get((layer.served.asset_id, layer.part))
        if table is None:
            raise ServiceException(f"there is no layer '{layer.name}'", "LayerNotDefined", "LAYERS")
        return as_collection(layer.served, layer.part, table)


def _parts(served: Served) -> list[WmsLayer]:
    if served.data_type is DataType.RASTER:
        return [WmsLayer(served)] if served.blob_path else []
    return [WmsLayer(served, part) for part in served.layers]


def style_of(layer: WmsLayer, name: str) -> RasterStyle | VectorStyle | None:
    try:
        return layer.served.styles.find(name)
    except NotFoundError as error:
        raise ServiceException(str(error), "StyleNotDefined", "STYLES") from None


def vector_style(layer: WmsLayer, name: str) -> VectorStyle:
    style = style_of(layer, name)
    return style if isinstance(style, VectorStyle) else VectorStyle()


def legend_of(layer: WmsLayer, name: str) -> list[tuple[str, str]]:
    """Return texts and colours. A layer in one colour has one entry, and natural colours have none."""
    style = style_of(layer, name)
    if style is not None and (entries := legend(style)):
        return entries
    if layer.served.data_type is DataType.VECTOR:
        return [(layer.title, vector_style(layer, name).fill_color)]
    return _computed(layer.served) if style is None else [(style.title or name, "#ffffff00")]


def _computed(served: Served) -> list[tuple[str, str]]:
    if served.raster_type not in list(RasterType):
        return []
    house: Any = rendering(RasterType(served.raster_type), served.statistics, dtype="")
    return [(f"{value:.4g}", "#{:02x}{:02x}{:02x}".format(*color)) for value, color in house.legend]
