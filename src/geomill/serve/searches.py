"""Tiles of a search of the catalogue: the rasters that it finds, as one picture.

A search is registered without being stored: its id is the search itself, packed. Each tile runs it anew with the sight
of its caller, so it never shows more than the caller may see, and a revoked asset is gone from it.
"""

from __future__ import annotations

import asyncio
import base64
import json
import zlib
from typing import Annotated, Any

import rasterio
from fastapi import APIRouter, FastAPI, Path, Request
from morecantile import Tile
from pydantic import BaseModel, ConfigDict, Field
from rio_tiler.constants import WEB_MERCATOR_TMS
from rio_tiler.errors import TileOutsideBounds
from starlette.responses import Response
from titiler.core.resources.enums import ImageType

from geomill.domain.access.visibility import Sight
from geomill.domain.objectname import Zone
from geomill.errors import ConflictError, InputError, NotFoundError, Problem
from geomill.serve.access import TheSight
from geomill.serve.directory import Directory
from geomill.serve.filters import check_finite, checked
from geomill.serve.raster import limits
from geomill.serve.raster.dependencies import RasterShelf, chosen_style
from geomill.serve.raster.painting import render
from geomill.serve.raster.readers import RasterSource, open_reader
from geomill.serve.whole_days import whole_days
from geomill.serve.wms.canvas import Canvas, decoded, encoded, stacked
from geomill.sql import queries

MOST_RASTERS = 16
"""Rasters in a tile, in the order of the search. Below them nothing is drawn."""
SIDE = 256
LONGEST = 6_000
LARGEST_SEARCH = 40_000
SET = "WebMercatorQuad"
SearchId = Annotated[str, Path(max_length=LONGEST, pattern=r"^[A-Za-z0-9_-]+$")]


class SearchDefinition(BaseModel):
    """A search of items, as in the STAC API."""

    model_config = ConfigDict(extra="forbid")

    collections: Annotated[list[Annotated[str, Field(max_length=200)]], Field(max_length=100)] | None = None
    ids: Annotated[list[Annotated[str, Field(max_length=200)]], Field(max_length=100)] | None = None
    bbox: Annotated[list[float], Field(min_length=4, max_length=4)] | None = None
    datetime: Annotated[str, Field(max_length=100, pattern=r"^[0-9TZ:.+/-]+$")] | None = None
    filter: dict[str, Any] | None = Field(default=None, description="CQL2 as JSON")


def router(directory: Directory, stac_app: FastAPI) -> APIRouter:
    """Return the routes, for the raster application. The STAC application has the sessions for searches."""
    routes = APIRouter(prefix="/searches", tags=["Searches"])

    @routes.post("/register", summary="Register a search of the catalogue")
    async def register(request: Request, search: SearchDefinition) -> dict[str, Any]:
        """Nothing is stored. Everyone may use the id, and sees what they may see."""
        search_id = packed(search)
        return {"id": search_id, "links": _links(request, search_id)}

    @routes.get("/{search_id}/tiles/WebMercatorQuad/{z}/{x}/{y}.png", response_class=Response, name="search_tile")
    async def tile(request: Request, sight: TheSight, search_id: SearchId, z: int, x: int, y: int) -> Response:
        search = unpacked(search_id)
        request.path_params["tileMatrixSetId"] = SET
        limits.check(request)
        place = Tile(x, y, z)
        sources = [source async for source in _found(request, directory, stac_app, search, place, sight)]
        shelf: RasterShelf = request.app.state.shelf
        picture = await asyncio.to_thread(_picture, sources, place, await shelf.environment())
        return Response(picture, media_type="image/png")

    @routes.get("/{search_id}/WebMercatorQuad/tilejson.json", name="search_tilejson")
    async def tilejson(request: Request, search_id: SearchId) -> dict[str, Any]:
        search = unpacked(search_id)
        tiles = next(link["href"] for link in _links(request, search_id) if link["rel"] == "tiles")
        bounds = search.bbox or [-180.0, -85.0511, 180.0, 85.0511]
        return {"tilejson": "3.0.0", "tiles": [tiles], "bounds": bounds, "minzoom": 0, "maxzoom": 24}

    return routes


def packed(search: SearchDefinition) -> str:
    """Return the id of a search. Raises `InputError` if the search is too long, or its filter is not one."""
    if search.filter is not None:
        checked(search.filter)
    check_finite(search.bbox, field="bbox")
    text = json.dumps(search.model_dump(exclude_none=True), sort_keys=True, separators=(",", ":"))
    search_id = base64.urlsafe_b64encode(zlib.compress(text.encode(), 9)).rstrip(b"=").decode()
    if len(search_id) > LONGEST:
        problem = Problem("filter", f"is too long: the packed search may have {LONGEST} characters")
        raise InputError(f"the request is wrong: {problem}", problems=[problem])
    return search_id


def unpacked(search_id: str) -> SearchDefinition:
    unknown = NotFoundError("there is no such search", remedy="register it at /raster/searches/register")
    unpacker = zlib.decompressobj()
    try:
        text = unpacker.decompress(base64.urlsafe_b64decode(search_id + "=" * (-len(search_id) % 4)), LARGEST_SEARCH)
        search = SearchDefinition.model_validate_json(text)
    except (ValueError, zlib.error):
        raise unknown from None
    if unpacker.unconsumed_tail:
        raise unknown
    if search.filter is not None:
        checked(search.filter)
    check_finite(search.bbox, field="bbox")
    return search


def _links(request: Request, search_id: str) -> list[dict[str, str]]:
    start = f"{str(request.base_url).rstrip('/')}/searches/{search_id}"
    return [
        {"rel": "tilejson", "type": "application/json", "href": f"{start}/{SET}/tilejson.json"},
        {"rel": "tiles", "type": "image/png", "href": f"{start}/tiles/{SET}/{{z}}/{{x}}/{{y}}.png"},
    ]


async def _found(
    request: Request, directory: Directory, stac_app: FastAPI, search: SearchDefinition, place: Tile, sight: Sight
) -> Any:
    """Yield the rasters of the search in a tile, as this caller may see them."""
    box = _overlap(list(WEB_MERCATOR_TMS.bounds(place)), search.bbox)
    if box is None:
        return
    if search.datetime is not None:
        search = search.model_copy(update={"datetime": whole_days(search.datetime)})
    document = {**search.model_dump(exclude_none=True), "bbox": box, "limit": MOST_RASTERS, "uncounted": True}
    if search.filter is not None:
        document["filter-lang"] = "cql2-json"
    everything = sight.everything or directory.zone is Zone.EXTERNAL
    async with stac_app.state.readpool.acquire() as conn:
        page = await conn.fetchval(
            queries("stac").search, json.dumps(document), everything, sight.platform_id, sight.asset_id, None, False
        )
    shelf: RasterShelf = request.app.state.shelf
    for item in (page or {}).get("features", ()):
        asset_id = (item.get("properties") or {}).get("geomill:asset_id")
        scene = str(item["id"]).partition(".")[2]
        try:
            served = await directory.raster(f"{asset_id}.{scene}" if scene else str(asset_id), sight)
            if not served.series:
                yield shelf.source(served)
        except NotFoundError:
            continue  # a vector, or an asset that was revoked a moment ago


def _overlap(tile: list[float], bbox: list[float] | None) -> list[float] | None:
    if bbox is None:
        return tile
    box = [max(tile[0], bbox[0]), max(tile[1], bbox[1]), min(tile[2], bbox[2]), min(tile[3], bbox[3])]
    return box if box[0] < box[2] and box[1] < box[3] else None


def _picture(sources: list[RasterSource], place: Tile, env: dict[str, Any]) -> bytes:
    """Draw the rasters, the first one on top."""
    with rasterio.Env(**env):
        drawn = [canvas for source in sources if (canvas := _drawn(source, place)) is not None]
    return encoded(stacked(reversed(drawn), SIDE, SIDE), "PNG", (255, 255, 255), transparent=True)


def _drawn(source: RasterSource, place: Tile) -> Canvas | None:
    chosen = chosen_style(source.served, None, drawn=False)
    with open_reader(source, house=True, chosen=chosen) as reader:
        try:
            image = reader.tile(place.x, place.y, place.z, tilesize=SIDE)
        except (TileOutsideBounds, ConflictError):
            return None
        colormap = getattr(reader, "colormap", None)
    return decoded(render(image, output_format=ImageType.png, colormap=colormap)[0])
