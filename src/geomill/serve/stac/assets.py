"""The item of an asset, by the asset's id. A signed link opens it, because the link is for one asset."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Path, Request
from fastapi.responses import JSONResponse
from stac_fastapi.types.errors import NotFoundError as ItemNotFound

from geomill.errors import NotFoundError
from geomill.serve.directory import Directory
from geomill.serve.stac.sessions import sight_of


def router(directory: Directory, client: Any) -> APIRouter:
    """Return the route. `client` is the one of the STAC API."""
    routes = APIRouter(tags=["Files"])

    @routes.get("/assets/{asset_id}", summary="Get the item of an asset")
    async def get_item(request: Request, asset_id: Annotated[str, Path(max_length=64)]) -> JSONResponse:
        try:
            served = await directory.asset(asset_id, sight_of(request))
        except NotFoundError as error:
            raise ItemNotFound(str(error)) from None
        if served.stac_item_id is None or served.stac_collection_id is None:
            raise ItemNotFound(f"the asset '{asset_id}' has no item")
        item = await client.get_item(served.stac_item_id, served.stac_collection_id, request)
        return JSONResponse(item, media_type="application/geo+json")

    return routes
