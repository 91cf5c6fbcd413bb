"""Rasters in WMS: the same pixels and colours as in tiles."""

from __future__ import annotations

from typing import Any

import rasterio
from rasterio.warp import transform
from rio_tiler.errors import PointOutsideBounds, TileOutsideBounds
from titiler.core.resources.enums import ImageType

from geomill.serve.raster.dependencies import chosen_style
from geomill.serve.raster.painting import render
from geomill.serve.raster.readers import RasterSource, open_reader
from geomill.serve.wms.canvas import Canvas, blank, decoded
from geomill.serve.wms.parameters import MapRequest


def draw(source: RasterSource, style: str, shown: MapRequest, env: dict[str, Any]) -> Canvas:
    chosen = chosen_style(source.served, style or None, drawn=False)
    options = {"bounds_crs": shown.crs, "dst_crs": shown.crs, "width": shown.width, "height": shown.height}
    with rasterio.Env(**env), open_reader(source, house=True, chosen=chosen) as reader:
        try:
            image = reader.part(shown.bounds, **options)
        except TileOutsideBounds:
            return blank(shown.width, shown.height)
        colormap = getattr(reader, "colormap", None)
    picture, _ = render(image, output_format=ImageType.png, colormap=colormap)
    return decoded(picture)


def values_at(source: RasterSource, x: float, y: float, shown: MapRequest, env: dict[str, Any]) -> dict[str, Any]:
    """Return the values of the bands by name. Empty outside of the data."""
    with rasterio.Env(**env), open_reader(source, values=True) as reader:
        (lon,), (lat,) = transform(shown.crs, reader.crs, [x], [y])
        try:
            point = reader.point(lon, lat, coord_crs=reader.crs)
        except PointOutsideBounds:
            return {}
    names = [text or name for text, name in zip(point.band_descriptions, point.band_names, strict=True)]
    return dict(zip(names, point.array.tolist(), strict=True))
