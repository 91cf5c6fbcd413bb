"""Puts the STAC API together from stac-fastapi-pgstac and our rule of who sees what."""

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
from geomill.serve.stac import docs, files, problems
from geomill.serve.stac.client import CatalogueClient, CatalogueFilters
from geomill.serve.stac.requests import BoundedBody
from geomill.serve.stac.sessions import lifespan
from geomill.storage import NO_STORAGE, Storage

TITLES = {"internal": "geomill: catalogue", "external": "geomill: public catalogue"}
ENABLED = ("sort", "fields", "filter", "pagination", "collection_search", "free_text")
"""Not `query`, which the filter replaces, and nothing that writes."""
SORT = [f"https://api.stacspec.org/v1.{minor}.0/item-search#sort" for minor in (1, 0)]
"""pystac-client knows the older name only."""


def create_stac_app(
    *,
    database_url: str,
    zone: Literal["internal", "external"] = "internal",
    storage: Storage = NO_STORAGE,
    connections: int = 4,
) -> FastAPI:
    """`database_url`: of the zone's own database. `connections`: at most so many, opened when they are needed."""
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
    app.user_middleware.clear()  # compression, CORS and proxies are the parent's affair
    app.add_middleware(BoundedBody)
    app.add_middleware(_Mounted)
    app.state.zone = zone
    app.include_router(files.router(storage))
    app.include_router(docs.router)
    problems.install(app)
    return app


def _settings(zone: str) -> Settings:
    """All that the environment could change is said here."""
    return Settings(
        _env_file=None,
        stac_fastapi_title=TITLES[zone],
        stac_fastapi_description="What was published, as items and collections of STAC",
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
        use_api_hydrate=True,  # pgstac would leave out what is null, and a date that is not known is null
        cors_origins=(),
        cors_origin_regex=None,
        testing=False,
    )


def _json_type(headers: list[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
    """Nothing but JSON is posted here; stac-fastapi stumbles over what is not called so."""
    if any(name == b"content-type" and b"json" in value for name, value in headers):
        return headers
    return [
        *((name, value) for name, value in headers if name != b"content-type"),
        (b"content-type", b"application/json"),
    ]


class _Mounted:
    """Links begin at the place where the application is mounted, and lead to its own routes."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if "root_path" in scope:
            # in place: who mounts it looks for the route in it
            scope.update(app_root_path=scope["root_path"], router=scope["app"].router)
        if scope.get("method") == "POST":
            scope["headers"] = _json_type(scope["headers"])
        await self._app(scope, receive, send)
