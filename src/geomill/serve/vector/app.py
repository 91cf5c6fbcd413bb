"""OGC API Features and Tiles by TiPG, for the assets that the caller may see."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from threading import Lock
from typing import Any

import asyncpg
import orjson
from fastapi import FastAPI, Request
from starlette.responses import Response
from tipg import factory
from tipg.collections import mvt_settings
from tipg.errors import (
    InvalidBBox,
    InvalidDatetime,
    InvalidDatetimeColumnName,
    InvalidGeometryColumnName,
    InvalidLimit,
    InvalidPropertyName,
    MissingDatetimeColumn,
    MissingGeometryColumn,
    NoPrimaryKey,
    NotFound,
)
from tipg.factory import Endpoints

from geomill import __version__
from geomill.downloads.csv_rows import csv_rows
from geomill.serve.answers import Answer, prepare
from geomill.serve.directory import Directory
from geomill.serve.downloads.extracts import Extracts
from geomill.serve.pages import TEMPLATES
from geomill.serve.quick import on_the_loop
from geomill.serve.sessions import NETWORK_SETTINGS, token_password, watch_network
from geomill.serve.tilejson import complete_tilejson, tilejson_fields
from geomill.serve.vector import downloads, style_json
from geomill.serve.vector.collections import MOST_IN_A_TILE, AssetLayer, collection, collections
from geomill.serve.vector.crs import box_in_degrees
from geomill.serve.vector.documents import Features
from geomill.serve.vector.filters import checked_filter
from geomill.serve.whole_days import WholeDays

QUICK = ("ids_query", "datetime_query", "properties_query", "sortby_query", "TileParams", "OutputType",
         "ItemsOutputType", "QueryablesOutputType")  # fmt: skip
_ALONE = Lock()
CONNECTIONS = 8
STATEMENT_SECONDS = 30
INVALID = (422, "invalid_input")
UNFIT = (422, "invalid_input", "the request does not fit the data: a value, geometry or column has the wrong type")
AWAY = (503, "database_unreachable", "the database does not answer; try again in a moment")
STATUSES: dict[type[Exception], Answer] = {
    NotFound: (404, "not_found"),
    InvalidBBox: INVALID,
    InvalidDatetime: INVALID,
    InvalidLimit: INVALID,
    InvalidPropertyName: INVALID,
    InvalidGeometryColumnName: INVALID,
    InvalidDatetimeColumnName: INVALID,
    MissingDatetimeColumn: INVALID,
    MissingGeometryColumn: INVALID,
    NoPrimaryKey: INVALID,
    ValueError: INVALID,
    OverflowError: UNFIT,
    asyncpg.DataError: UNFIT,
    asyncpg.UndefinedFunctionError: UNFIT,
    asyncpg.UndefinedColumnError: UNFIT,
    asyncpg.DatatypeMismatchError: UNFIT,
    asyncpg.CannotCoerceError: UNFIT,
    asyncpg.PostgresSyntaxError: UNFIT,
    asyncpg.AmbiguousFunctionError: UNFIT,
    asyncpg.IndeterminateDatatypeError: UNFIT,
    asyncpg.StatementTooComplexError: UNFIT,
    asyncpg.InternalServerError: UNFIT,  # from PostGIS, about the caller's geometry
    asyncpg.QueryCanceledError: (503, "too_slow", "the query took too long; narrow it or use a smaller limit"),
    asyncpg.UndefinedTableError: (404, "not_found", "the table no longer exists"),
    asyncpg.InterfaceError: AWAY,
    asyncpg.PostgresConnectionError: AWAY,
    OSError: AWAY,
}


def create_vector_app(directory: Directory, url: str, extracts: Extracts) -> FastAPI:
    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        async with asyncpg.create_pool(
            url,
            password=token_password(url),
            min_size=0,
            max_size=CONNECTIONS,
            init=_initialise,
            server_settings={
                "application_name": "geomill vectors",
                "default_transaction_read_only": "on",
                "statement_timeout": f"{STATEMENT_SECONDS}s",
                "jit": "off",
                **NETWORK_SETTINGS,
            },
        ) as pool:
            app.state.pool = pool
            yield

    app = FastAPI(
        title="geomill features",
        version=__version__,
        openapi_url="/api",
        docs_url=None,
        redoc_url=None,
        lifespan=lifespan,
    )
    app.state.directory = directory
    mvt_settings.max_features_per_tile = MOST_IN_A_TILE
    factory.create_csv_rows = csv_rows  # type: ignore[assignment]  # TiPG's routes look it up at run time
    app.include_router(downloads.router(url, extracts))
    if extracts.office:
        app.include_router(extracts.router(), prefix="/collections/{name}")
    app.include_router(style_json.router)
    endpoints = _endpoints()
    complete_tilejson(endpoints.ogc_tiles.router, _titled)
    app.include_router(endpoints.router)
    app.add_api_route("/api.html", _described, name="swagger_ui_html", include_in_schema=False)
    app.add_middleware(WholeDays)
    prepare(app, STATUSES)
    return app


def _titled(parameters: Mapping[str, Any]) -> dict[str, Any]:
    layer: AssetLayer = parameters["collection"]
    return tilejson_fields(layer.title or layer.id, layer.metadata)


def _endpoints() -> Endpoints:
    """Create TiPG's routes with dependencies of geomill.

    TiPG binds dependencies by module name when it creates the routes, so the names are replaced meanwhile. FastAPI's
    overrides are not used because they resolve all dependencies anew at each request, which takes longer than a query.
    """
    others: dict[str, Any] = {name: on_the_loop(getattr(factory, name)) for name in QUICK}
    others["filter_query"] = checked_filter
    others["bbox_query"] = box_in_degrees
    others["OGCFeaturesFactory"] = Features
    own = {name: getattr(factory, name) for name in others}
    with _ALONE:
        vars(factory).update(others)
        try:
            return factory.Endpoints(
                title="geomill features",
                collection_dependency=collection,  # type: ignore[arg-type]  # it may be async
                collections_dependency=collections,  # type: ignore[arg-type]
                templates=TEMPLATES,
                with_tiles_viewer=False,
            )
        finally:
            vars(factory).update(own)


async def _described(request: Request) -> Response:
    """Show the API documentation. TiPG links to this route by name."""
    paths = [
        {"path": path, "summary": operation.get("summary"), "description": operation.get("description")}
        for path, operations in request.app.openapi()["paths"].items()
        for operation in operations.values()
    ]
    shown = {"response": {"paths": paths}, "template": {"title": "API", "api_root": str(request.base_url).rstrip("/")}}
    return TEMPLATES.TemplateResponse(request, "document.html", {**shown, "crumbs": []})


async def _initialise(conn: Any) -> None:
    watch_network(conn)
    for name in ("json", "jsonb"):
        await conn.set_type_codec(name, encoder=orjson.dumps, decoder=orjson.loads, schema="pg_catalog")
