"""Assembles the STAC API from stac-fastapi-pgstac and geomill's visibility rule."""

from __future__ import annotations

from typing import Literal

from fastapi import FastAPI
from stac_fastapi.extensions import (
    CollectionSearchFilterExtension,
    ItemCollectionFilterExtension,
    SearchFilterExtension,
)
from stac_fastapi.extensions.sort import SearchSortExtension
from stac_fastapi.pgstac.app import instantiate_api
from stac_fastapi.pgstac.config import Settings
from stac_fastapi.pgstac.models.extensions import Extensions
from starlette.types import ASGIApp, Receive, Scope, Send

from geomill import __version__
from geomill.serve.directory import Directory
from geomill.serve.stac import assets, docs, files, problems
from geomill.serve.stac.client import CatalogueClient, CatalogueFilters
from geomill.serve.stac.pages import StacPages
from geomill.serve.stac.requests import BoundedBody
from geomill.serve.stac.sessions import lifespan
from geomill.serve.whole_days import WholeDays
from geomill.storage import NO_STORAGE, Storage

TITLES = {"internal": "geomill: catalogue", "external": "geomill: public catalogue"}
ENABLED = ("sort", "fields", "filter", "pagination", "collection_search", "free_text")
"""Extensions. `query` is missing because the filter replaces it; nothing writes."""
SORT = [f"https://api.stacspec.org/v1.{minor}.0/item-search#sort" for minor in (1, 0)]
"""pystac-client recognises only the older name."""


def create_stac_app(
    *,
    database_url: str,
    zone: Literal["internal", "external"] = "internal",
    storage: Storage = NO_STORAGE,
    directory: Directory | None = None,
    connections: int = 4,
) -> FastAPI:
    """Build the application. `database_url` is the zone's own database. At most `connections` are opened, on demand.
    `directory` finds items by the ids of their assets."""
    settings = _settings(zone)
    filters = CatalogueFilters()
    extensions = Extensions(
        search_map={
            "filter": SearchFilterExtension(client=filters),
            "sort": SearchSortExtension(conformance_classes=SORT),
        },
        collection_search_map={"filter": CollectionSearchFilterExtension(client=filters)},
        item_collection_map={"filter": ItemCollectionFilterExtension(client=filters)},
        settings=settings,
    )
    api = instantiate_api(
        client=CatalogueClient,
        extensions=extensions,
        lifespan=lifespan(database_url, connections),
        settings=settings,
    )
    api.client.landing_page_id = settings.stac_fastapi_landing_id
    app: FastAPI = api.app
    app.user_middleware.clear()  # the parent handles compression, CORS and proxies
    app.add_middleware(BoundedBody)
    app.add_middleware(WholeDays)
    app.add_middleware(StacPages)
    app.add_middleware(_Mounted)
    app.state.zone = zone
    app.include_router(files.router(storage))
    if directory:
        app.include_router(assets.router(directory, api.client))
    app.include_router(docs.router)
    problems.install(app)
    return app


def _settings(zone: str) -> Settings:
    """Return settings with every value given, so that environment variables change nothing."""
    return Settings(
        _env_file=None,
        stac_fastapi_title=TITLES[zone],
        stac_fastapi_description="Published data as STAC items and collections",
        stac_fastapi_version=__version__,
        stac_fastapi_landing_id=f"geomill-{zone}",
        enabled_extensions=ENABLED,
        enable_transactions_extensions=False,
        enable_catalogs_extension=False,
        enable_response_models=False,
        enable_direct_response=False,
        enable_metrics=False,
        openapi_url="/api",
        docs_url="",
        root_path="",
        prefix_path="",
        use_api_hydrate=True,  # pgstac omits nulls, but an unknown date must be null
        cors_origins=(),
        cors_origin_regex=None,
        testing=False,
    )


def _json_type(headers: list[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
    """Return the headers with a JSON content type. stac-fastapi fails on other types, and only JSON is posted here."""
    if any(name == b"content-type" and b"json" in value for name, value in headers):
        return headers
    return [
        *((name, value) for name, value in headers if name != b"content-type"),
        (b"content-type", b"application/json"),
    ]


class _Mounted:
    """Makes links begin at the mount prefix and lead to the application's own routes."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if "root_path" in scope:
            # update in place: the parent reads the route from this scope
            scope.update(app_root_path=scope["root_path"], router=scope["app"].router)
        if scope.get("method") == "POST":
            scope["headers"] = _json_type(scope["headers"])
        await self._app(scope, receive, send)
