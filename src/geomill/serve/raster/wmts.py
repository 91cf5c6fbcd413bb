"""WMTS capabilities of one raster, from which desktop GIS learn the address of the tiles."""

from __future__ import annotations

from typing import Annotated, Any
from urllib.parse import urlencode

import rasterio
from fastapi import APIRouter, Depends, Query, Request
from morecantile import TileMatrixSet
from morecantile import tms as grids
from rio_tiler.constants import WGS84_CRS
from starlette.responses import Response
from titiler.core.factory import TilerFactory
from titiler.core.resources.enums import ImageType
from titiler.core.utils import tms_limits

from geomill.domain.assets.served import Served
from geomill.domain.assets.style import AUTOMATIC, DEFAULT, DRAWING
from geomill.serve.pages import ENVIRONMENT
from geomill.serve.raster import dependencies
from geomill.serve.raster.readers import RasterSource, open_reader

SETS = ("WebMercatorQuad", "WorldCRS84Quad")
NOT_PASSED_ON = ("service", "request", "version", "tile_format")
"""Parameters of the capabilities, which are not passed on to the tiles."""


def router(tiler: TilerFactory) -> APIRouter:
    wmts = APIRouter()

    @wmts.get("/WMTSCapabilities.xml", response_class=Response, tags=["WMTS"])
    def capabilities(
        request: Request,
        env: Annotated[dict[str, Any], Depends(dependencies.environment)],
        tile_format: Annotated[ImageType, Query(description="Format of the tiles")] = ImageType.png,
        source: RasterSource = Depends(tiler.path_dependency),  # noqa: B008  not a global name
    ) -> Response:
        """Other parameters are passed on to the tiles: `?rescale=0,100` makes a layer with that stretch."""
        with rasterio.Env(**env):
            sets = [_set(source, name) for name in SETS]
        document = ENVIRONMENT.get_template("wmts.xml").render(
            url=str(request.url),
            title=source.served.title,
            metadata=source.served.metadata,
            media_type=tile_format.mediatype,
            sets=sets,
            layers=[
                {
                    "title": source.served.title,
                    "metadata": source.served.metadata,
                    "identifier": source.served.name,
                    "bounds": sets[0]["bounds"],
                    "styles": _styles(request, source.served),
                    "tiles": _template(request, tiler, tile_format),
                }
            ],
        )
        return Response(document, media_type="application/xml")

    return wmts


def _template(request: Request, tiler: TilerFactory, tile_format: ImageType) -> str:
    places = {"z": "{TileMatrix}", "x": "{TileCol}", "y": "{TileRow}", "tileMatrixSetId": "{TileMatrixSet}"}
    url = tiler.url_for(request, "tile", format=tile_format.value, **places)
    passed_on = [
        (name, value) for name, value in request.query_params.multi_items() if name.lower() not in NOT_PASSED_ON
    ]
    query = [urlencode(passed_on)] if passed_on else []
    query += ["style={Style}"] if _offers_styles(request) else []
    return f"{url}?{'&'.join(query)}" if query else url


def _offers_styles(request: Request) -> bool:
    """Whether a client may choose among styles. It may not if the address of the capabilities says how to draw."""
    return not any(name in request.query_params for name in ("style", *DRAWING))


def _styles(request: Request, served: Served) -> dict[str, str]:
    """Return titles by name, the default style first."""
    others = {name: style.title or name for name, style in served.styles.styles.items()}
    offered = _offers_styles(request) and others and not served.series
    return {DEFAULT: DEFAULT, **({**others, AUTOMATIC: AUTOMATIC} if offered else {})}


def crs_urn(grid: TileMatrixSet) -> str:
    epsg = grid.crs.to_epsg()
    return f"urn:ogc:def:crs:EPSG::{epsg}" if epsg else "urn:ogc:def:crs:OGC:1.3:CRS84"


def _set(source: RasterSource, name: str) -> dict[str, Any]:
    grid = grids.get(name)
    with open_reader(source, grid) as reader:
        bounds = reader.get_geographic_bounds(WGS84_CRS)
        zooms = (reader.minzoom, reader.maxzoom)
    limits = tms_limits(grid, bounds, zooms=zooms)
    matrices = [grid.matrix(zoom) for zoom in range(zooms[0], zooms[1] + 1)]
    return {
        "id": name,
        "bounds": bounds,
        "crs": crs_urn(grid),
        "limits": limits,
        "matrices": matrices,
    }
