"""The viewer: a list of the assets that a caller may see, and a map of each. Pages load nothing from other hosts."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import quote, urlencode

from fastapi import FastAPI, Query, Request
from fastapi import Path as InPath
from fastapi.responses import FileResponse
from starlette.responses import JSONResponse, Response

from geomill import __version__
from geomill.domain.access.signed_link import PARAMETER
from geomill.domain.assets.asset import DataType
from geomill.domain.assets.drawing import legend, maplibre_layers
from geomill.domain.assets.served import Scene, Served
from geomill.domain.assets.style import AUTOMATIC, DEFAULT, DRAWING, RasterStyle, VectorStyle
from geomill.errors import NotFoundError
from geomill.raster.facts import RasterType
from geomill.raster.rendering import rendering
from geomill.serve import caching
from geomill.serve.access import TheSight
from geomill.serve.answers import prepare
from geomill.serve.directory import Directory
from geomill.serve.pages import TEMPLATES

MATRIX = "WebMercatorQuad"
FILES = Path(__file__).with_name("files")
MOST_AT_ONCE = 100
MOST_SCENES = 1_000
FARTHEST = 1_000_000_000
"""The maximum offset of a page. PostgreSQL fails on larger numbers."""


def create_viewer_app(directory: Directory) -> FastAPI:
    app = FastAPI(title="geomill viewer", version=__version__, openapi_url=None)
    app.state.directory = directory
    files = _files()

    @app.get("/")
    async def landing(
        request: Request,
        sight: TheSight,
        f: Literal["html", "json"] | None = None,
        limit: Annotated[int, Query(ge=1, le=MOST_AT_ONCE)] = MOST_AT_ONCE,
        offset: Annotated[int, Query(ge=0, le=FARTHEST)] = 0,
    ) -> Response:
        page = await directory.page(sight, limit=limit, offset=offset)
        root = _root(request)
        document = {
            "title": "geomill",
            "zone": "external" if directory.zone == "external" else "internal",
            "services": {name: f"{root}/{name}/" for name in ("stac", "raster", "vector")},
            "matched": page.matched,
            "assets": [_listed(asset, root) for asset in page.assets],
        }
        if offset + len(page.assets) < page.matched:
            document["next"] = f"{root}/viewer/?{urlencode({'limit': limit, 'offset': offset + limit})}"
        if f == "json" or (f is None and "text/html" not in request.headers.get("accept", "")):
            return JSONResponse(document)
        return TEMPLATES.TemplateResponse(request, "published.html", {"page": document, "root": root})

    @app.get("/files/{file}")
    async def get_file(file: Annotated[str, InPath(max_length=40)]) -> FileResponse:
        if file not in files:
            raise NotFoundError("the file does not exist")
        path, media_type = files[file]
        return FileResponse(path, media_type=media_type, headers={"Cache-Control": "public, max-age=86400"})

    @app.get("/{asset_id}")
    async def show(request: Request, sight: TheSight, asset_id: Annotated[str, InPath(max_length=256)]) -> Response:
        served = await (directory.raster if "." in asset_id else directory.asset)(asset_id, sight)
        caching.note(request, served)
        style = served.styles.find(request.query_params.get("style"))
        shown = {
            "root": _root(request),
            "asset": served,
            "layer": _layer(request, served, style),
            "legend": _legend(served, style),
            "links": _links(served, _root(request), _query(_ticket(request))),
            "styles": _styles(request, served),
        }
        return TEMPLATES.TemplateResponse(request, "viewer.html", shown)

    @app.get("/{asset_id}/scenes")
    async def scenes(
        request: Request,
        sight: TheSight,
        asset_id: Annotated[str, InPath(max_length=64)],
        limit: Annotated[int, Query(ge=1, le=MOST_SCENES)] = MOST_SCENES,
        offset: Annotated[int, Query(ge=0, le=FARTHEST)] = 0,
    ) -> Response:
        """Bounding boxes and names of the scenes of a series as GeoJSON, from top to bottom."""
        served = await directory.asset(asset_id, sight, DataType.RASTER)
        if not served.series:
            raise NotFoundError(f"the asset '{asset_id}' is not a series of rasters")
        caching.note(request, served)
        named_scenes = list((await directory.series(served)).scenes.items())
        address, ticket = f"{_root(request)}/viewer/{asset_id}", _ticket(request)
        document = {
            "type": "FeatureCollection",
            "numberMatched": len(named_scenes),
            "features": [
                _feature(name, scene, f"{address}.{name}{_query(ticket)}")
                for name, scene in named_scenes[offset : offset + limit]
            ],
        }
        if offset + limit < len(named_scenes):
            onwards = _query({"limit": limit, "offset": offset + limit, **ticket})
            document["links"] = [{"rel": "next", "href": f"{address}/scenes{onwards}"}]
        return JSONResponse(document, media_type="application/geo+json")

    prepare(app, {})
    return app


def _files() -> dict[str, tuple[Path, str]]:
    """Return the static files. Those of MapLibre come from its Python package, which is not imported."""
    package = find_spec("maplibre")
    assert package is not None
    assert package.origin is not None
    library = Path(package.origin).parent / "srcjs"
    return {
        "maplibre-gl.js": (library / "maplibre-gl.js", "text/javascript"),
        "maplibre-gl.css": (library / "maplibre-gl.css", "text/css"),
        "viewer.js": (FILES / "viewer.js", "text/javascript"),
        "page.css": (FILES / "page.css", "text/css"),
    }


def _root(request: Request) -> str:
    """Return the address at which the viewer's parent is mounted."""
    return str(request.base_url).rstrip("/").removesuffix("/viewer")


def _ticket(request: Request) -> dict[str, Any]:
    return {PARAMETER: request.query_params[PARAMETER]} if PARAMETER in request.query_params else {}


def _query(parameters: dict[str, Any]) -> str:
    return f"?{urlencode(parameters, doseq=True)}" if parameters else ""


def _feature(name: str, scene: Scene, viewer: str) -> dict[str, Any]:
    west, south, east, north = scene.bbox or (-180, -90, 180, 90)
    east += 360 if east < west else 0  # so that the box continues across the antimeridian
    ring = [[west, south], [east, south], [east, north], [west, north], [west, south]]
    geometry = {"type": "Polygon", "coordinates": [ring]}
    return {"type": "Feature", "id": name, "geometry": geometry, "properties": {"name": name, "viewer": viewer}}


def _links(served: Served, root: str, query: str) -> list[dict[str, str]]:
    """Return links to other views of the asset."""
    links = []
    if served.scene:
        links.append({"title": "whole series", "href": f"{root}/viewer/{served.asset_id}{query}"})
    if served.stac_item_id and served.stac_collection_id:
        collection, item = quote(served.stac_collection_id, safe=""), quote(served.stac_item_id, safe="")
        links.append({"title": "in the catalogue", "href": f"{root}/stac/collections/{collection}/items/{item}"})
    return links


def _listed(served: Served, root: str) -> dict[str, Any]:
    return {
        "asset_id": served.asset_id,
        "title": served.title,
        "data_type": served.data_type.value,
        "revision": served.revision,
        "public": served.public,
        "viewer": f"{root}/viewer/{served.asset_id}",
    }


def _styles(request: Request, served: Served) -> list[dict[str, Any]]:
    """Return links to the same map in each style of the asset."""
    if not served.styles.styles or served.series:
        return []
    shown = request.query_params.get("style") or DEFAULT
    names = {**{name: style.title or name for name, style in served.styles.styles.items()}, AUTOMATIC: AUTOMATIC}
    current = (served.styles.default or AUTOMATIC) if shown == DEFAULT else shown
    return [
        {"title": title, "href": _query({"style": name, **_ticket(request)}), "current": name == current}
        for name, title in names.items()
    ]


def _drawing(request: Request) -> dict[str, Any]:
    """Return the parameters of the page that say how to draw, for the tiles."""
    query = request.query_params
    return {name: query.getlist(name) for name in ("style", *DRAWING) if name in query}


def _layer(request: Request, served: Served, style: RasterStyle | VectorStyle | None) -> dict[str, Any]:
    """Return the values that the page's script needs."""
    root, query = _root(request), _query(_ticket(request))
    if served.data_type is DataType.RASTER:
        drawing = _query({**_drawing(request), **_ticket(request)})
        url = f"{root}/raster/assets/{served.name}/{MATRIX}/tilejson.json{drawing}"
        point = f"{root}/raster/assets/{served.name}/point/"
        scenes = {"scenes": f"{root}/viewer/{served.asset_id}/scenes{query}"} if served.series else {}
        tiles = {"tilejson": url if served.blob_path else []}
        return {"kind": "raster", **tiles, "point": point, "query": query, "bbox": served.bbox, **scenes}
    names = [f"{served.asset_id}.{part}" if part else served.asset_id for part in served.layers]
    urls = [f"{root}/vector/collections/{name}/tiles/{MATRIX}/tilejson.json{query}" for name in names]
    layers = maplibre_layers(style if isinstance(style, VectorStyle) else VectorStyle())
    return {"kind": "vector", "tilejson": urls, "bbox": served.bbox, "layers": layers}


def _legend(served: Served, style: RasterStyle | VectorStyle | None) -> list[dict[str, Any]]:
    if style:
        return [{"value": text, "color": color} for text, color in legend(style)]
    if served.raster_type not in list(RasterType):
        return []
    house = rendering(RasterType(served.raster_type), served.statistics, dtype="")
    return [{"value": f"{value:.4g}", "color": "#{:02x}{:02x}{:02x}".format(*color)} for value, color in house.legend]
