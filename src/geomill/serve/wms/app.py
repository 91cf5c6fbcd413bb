"""The WMS of a zone: `/wms/` for all that the caller may see, `/wms/{asset_id}` for one asset and signed links."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Annotated, Any

from fastapi import FastAPI, Path, Request
from starlette.responses import Response

from geomill import __version__
from geomill.domain.access.signed_link import PARAMETER
from geomill.domain.assets.asset import DataType
from geomill.errors import ConflictError, InputError, NotFoundError
from geomill.serve import caching
from geomill.serve.access import TheSight
from geomill.serve.answers import prepare
from geomill.serve.directory import Directory
from geomill.serve.pages import ENVIRONMENT
from geomill.serve.raster.app import STATUSES as PIXEL_STATUSES
from geomill.serve.vector.app import STATUSES as FEATURE_STATUSES
from geomill.serve.wms import rasters, vectors
from geomill.serve.wms.canvas import Canvas, encoded, stacked
from geomill.serve.wms.errors import ServiceException, respond
from geomill.serve.wms.layers import MOST_LISTED, LayerFinder, WmsLayer, legend_of, style_of, vector_style
from geomill.serve.wms.legends import legend_picture
from geomill.serve.wms.parameters import INFO, LARGEST_SIDE, PICTURES, MapRequest, Query, map_request

AT_ONCE = 8
"""Requests that are worked on at once in a process. The others wait."""
MOST_FOUND = 50
FARTHEST = 1_000_000_000


def create_wms_app(directory: Directory, raster_app: FastAPI, vector_app: FastAPI) -> FastAPI:
    """Build the application. It reads through the raster and the vector application."""
    app = FastAPI(title="geomill WMS", version=__version__, openapi_url=None)
    free = asyncio.Semaphore(AT_ONCE)

    async def answer(request: Request, finder: LayerFinder) -> Response:
        version = "1.3.0"
        try:
            query = Query(request)
            version = query.version
            async with free:
                return await _operation(query)(Visit(request, query, finder))
        except ServiceException as error:
            return respond(error, version)
        except (NotFoundError, InputError, ConflictError) as error:
            return respond(ServiceException(str(error)), version)

    @app.get("/")
    async def wms(request: Request, sight: TheSight) -> Response:
        return await answer(request, LayerFinder(directory, raster_app, vector_app, sight))

    @app.get("/{asset_id}")
    async def wms_of_asset(
        request: Request, sight: TheSight, asset_id: Annotated[str, Path(max_length=256)]
    ) -> Response:
        return await answer(request, LayerFinder(directory, raster_app, vector_app, sight, asset_id))

    prepare(app, {**FEATURE_STATUSES, **PIXEL_STATUSES})
    return app


@dataclass(frozen=True, slots=True)
class Visit:
    """One request with what it needs."""

    request: Request
    query: Query
    finder: LayerFinder

    def note(self, layers: list[WmsLayer]) -> None:
        """Let caches keep the answer, if it is about one asset."""
        if len(layers) == 1:
            caching.note(self.request, layers[0].served)


Operation = Callable[[Visit], Awaitable[Response]]


async def capabilities(visit: Visit) -> Response:
    query, request = visit.query, visit.request
    limit = query.whole("LIMIT", MOST_LISTED) if query.get("LIMIT") else MOST_LISTED
    offset = query.whole("OFFSET", FARTHEST, 0) if query.get("OFFSET") else 0
    layers, matched = await visit.finder.listed(limit, offset)
    if visit.finder.only is not None:
        visit.note(layers[:1])
    ticket = request.query_params.get(PARAMETER)
    document = ENVIRONMENT.get_template(f"wms_{query.version}.xml").render(
        url=str(request.url.replace(query="")) + (f"?{PARAMETER}={ticket}&" if ticket else "?"),
        layers=layers,
        matched=matched,
        left_out=max(matched - offset - limit, 0),
        following=offset + limit,
        largest=LARGEST_SIDE,
        license=layers[0].metadata.license if visit.finder.only is not None else None,
    )
    return Response(document, media_type="text/xml" if query.version == "1.3.0" else "application/vnd.ogc.wms_xml")


async def get_map(visit: Visit) -> Response:
    media_type = visit.query.choice("FORMAT", PICTURES, "image/png")
    shown = map_request(visit.query)
    layers = [await visit.finder.find(name) for name in shown.layers]
    for layer, style in zip(layers, shown.styles, strict=True):
        style_of(layer, style)
    visit.note(layers)
    canvases = [await _drawn(visit, *pair, shown) for pair in zip(layers, shown.styles, strict=True)]
    picture = await asyncio.to_thread(_encoded, canvases, media_type, shown)
    return Response(picture, media_type=media_type)


def _encoded(canvases: list[Canvas], media_type: str, shown: MapRequest) -> bytes:
    whole = stacked(canvases, shown.width, shown.height)
    return encoded(whole, PICTURES[media_type], shown.background, transparent=shown.transparent)


async def _drawn(visit: Visit, layer: WmsLayer, style: str, shown: MapRequest) -> Canvas:
    finder = visit.finder
    if layer.served.data_type is DataType.RASTER:
        source = await finder.raster(layer)
        return await asyncio.to_thread(rasters.draw, source, style, shown, await finder.shelf.environment())
    drawn_style = vector_style(layer, style)
    async with finder.vector_app.state.pool.acquire() as conn:
        shapes, values = await vectors.read(conn, await finder.collection(layer), shown, drawn_style)
    return await asyncio.to_thread(vectors.draw, shapes, values, drawn_style, shown)


async def feature_info(visit: Visit) -> Response:
    query, finder = visit.query, visit.finder
    media_type = query.choice("INFO_FORMAT", INFO, "application/json")
    shown = map_request(query, "QUERY_LAYERS")
    names = ("I", "J") if query.version == "1.3.0" else ("X", "Y")
    column, row = query.whole(names[0], shown.width - 1, 0), query.whole(names[1], shown.height - 1, 0)
    count = query.whole("FEATURE_COUNT", MOST_FOUND) if query.get("FEATURE_COUNT") else 1
    layers = [await finder.find(name) for name in shown.layers]
    visit.note(layers)
    features: list[dict[str, Any]] = []
    for layer in layers:
        if layer.served.data_type is DataType.VECTOR:
            features += await _found(finder, layer, vectors.around(shown, column, row), count)
        elif values := await _values(finder, layer, shown, column, row):
            features.append({"type": "Feature", "id": layer.name, "geometry": None, "properties": values})
    if media_type == "text/plain":
        return Response(_plain(features), media_type="text/plain; charset=utf-8")
    document = {"type": "FeatureCollection", "features": features}
    return Response(json.dumps(document, default=str, ensure_ascii=False), media_type=media_type)


async def _found(finder: LayerFinder, layer: WmsLayer, box: list[float], count: int) -> list[dict[str, Any]]:
    collection = await finder.collection(layer)
    async with finder.vector_app.state.pool.acquire() as conn:
        page = await collection.features(conn, bbox_filter=box, limit=count)
    return [{**feature, "id": f"{layer.name}.{feature['id']}"} for feature in page["items"]]


async def _values(finder: LayerFinder, layer: WmsLayer, shown: MapRequest, column: int, row: int) -> dict[str, Any]:
    west, south, east, north = shown.bounds
    x = west + (column + 0.5) * (east - west) / shown.width
    y = north - (row + 0.5) * (north - south) / shown.height
    source = await finder.raster(layer)
    return await asyncio.to_thread(rasters.values_at, source, x, y, shown, await finder.shelf.environment())


def _plain(features: list[dict[str, Any]]) -> str:
    lines = []
    for feature in features:
        lines.append(str(feature["id"]))
        lines += [f"  {name} = {value}" for name, value in feature["properties"].items()]
    return "\n".join([*lines, ""])


async def legend_graphic(visit: Visit) -> Response:
    visit.query.choice("FORMAT", ("image/png",), "image/png")
    layer = await visit.finder.find(visit.query.require("LAYER"))
    visit.note([layer])
    entries = legend_of(layer, visit.query.get("STYLE"))
    return Response(await asyncio.to_thread(legend_picture, entries), media_type="image/png")


def _operation(query: Query) -> Operation:
    operation = OPERATIONS.get(query.get("REQUEST", "GetCapabilities").lower())
    if operation is None:
        raise ServiceException(f"the operations are {', '.join(NAMES)}", "OperationNotSupported", "REQUEST")
    return operation


NAMES = ("GetCapabilities", "GetMap", "GetFeatureInfo", "GetLegendGraphic")
OPERATIONS: dict[str, Operation] = {
    "getcapabilities": capabilities,
    "capabilities": capabilities,
    "getmap": get_map,
    "map": get_map,
    "getfeatureinfo": feature_info,
    "getlegendgraphic": legend_graphic,
}
