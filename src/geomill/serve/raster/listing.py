"""WMTS capabilities of all rasters that the caller may see, in one document."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from morecantile import tms as grids
from starlette.responses import Response
from titiler.core.resources.enums import ImageType

from geomill.domain.assets.asset import DataType
from geomill.domain.assets.served import Served
from geomill.domain.assets.style import DEFAULT
from geomill.serve.access import TheSight
from geomill.serve.pages import ENVIRONMENT
from geomill.serve.raster.dependencies import RasterShelf
from geomill.serve.raster.wmts import SETS, crs_urn

MOST_LISTED = 500
FARTHEST = 1_000_000_000
WORLD = (-180.0, -90.0, 180.0, 90.0)
router = APIRouter(tags=["WMTS"])


@router.get("/WMTSCapabilities.xml", response_class=Response, name="all_capabilities")
async def capabilities(
    request: Request,
    sight: TheSight,
    tile_format: Annotated[ImageType, Query(description="Format of the tiles")] = ImageType.png,
    limit: Annotated[int, Query(ge=1, le=MOST_LISTED)] = MOST_LISTED,
    offset: Annotated[int, Query(ge=0, le=FARTHEST)] = 0,
) -> Response:
    """The newest rasters first. The abstract says how many are left out, and how to get them. Tiles of an asset that is
    not public need the caller's credential."""
    shelf: RasterShelf = request.app.state.shelf
    page = await shelf.directory.page(sight, DataType.RASTER, limit=limit, offset=offset)
    left_out = page.matched - offset - len(page.assets)
    more = f" {left_out} of them are left out here: add offset={offset + limit} for the next ones." if left_out else ""
    document = ENVIRONMENT.get_template("wmts.xml").render(
        url=str(request.url),
        title="geomill",
        metadata={},
        abstract=f"{page.matched} rasters.{more}",
        media_type=tile_format.mediatype,
        sets=[_set(name) for name in SETS],
        layers=[_layer(request, served, tile_format) for served in page.assets if served.blob_path],
    )
    return Response(document, media_type="application/xml")


def _layer(request: Request, served: Served, tile_format: ImageType) -> dict[str, Any]:
    west, south, east, north = served.bbox or WORLD
    base = f"{str(request.base_url).rstrip('/')}/assets/{served.asset_id}/tiles"
    return {
        "title": served.title,
        "metadata": served.metadata,
        "identifier": served.asset_id,
        "bounds": (west, south, east, north) if west <= east else (-180.0, south, 180.0, north),
        "styles": {DEFAULT: DEFAULT},
        "tiles": f"{base}/{{TileMatrixSet}}/{{TileMatrix}}/{{TileCol}}/{{TileRow}}.{tile_format.value}?style={{Style}}",
    }


def _set(name: str) -> dict[str, Any]:
    grid = grids.get(name)
    return {"id": name, "crs": crs_urn(grid), "limits": [], "matrices": grid.tileMatrices}
