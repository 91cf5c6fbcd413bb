"""The MosaicJSON of a mosaic with whole addresses, so that cogeo-mosaic and others can open it."""

from __future__ import annotations

import asyncio
import json
import posixpath
from collections.abc import Callable
from typing import Any
from urllib.parse import quote

from fastapi import APIRouter, Depends, Request
from starlette.responses import JSONResponse

from geomill.domain.access.signed_link import PARAMETER
from geomill.domain.assets.inventory import within_revision
from geomill.errors import NotFoundError
from geomill.serve.raster.dependencies import RasterShelf
from geomill.serve.raster.readers import RasterSource


def router(source_dependency: Callable[..., Any]) -> APIRouter:
    routes = APIRouter(tags=["Downloads"])

    @routes.get("/mosaic.json", summary="Get the MosaicJSON")
    async def mosaic(
        request: Request,
        source: RasterSource = Depends(source_dependency),  # noqa: B008  not a global name
    ) -> JSONResponse:
        """The tiles are addresses of files. With a signed link they are signed, too."""
        if not source.served.mosaic or source.scheme is not None:
            raise NotFoundError(f"the asset '{source.served.asset_id}' is not a published mosaic")
        shelf: RasterShelf = request.app.state.shelf
        document = json.loads(await shelf.storage.read(source.name))
        return JSONResponse(await asyncio.to_thread(_with_addresses, document, request, source))

    return routes


def _with_addresses(document: dict[str, Any], request: Request, source: RasterSource) -> dict[str, Any]:
    root = str(request.base_url).rstrip("/").removesuffix("/raster")
    start = f"{root}/stac/files/{source.served.asset_id}/{source.served.revision}/"
    ticket = request.query_params.get(PARAMETER)
    query = f"?{PARAMETER}={ticket}" if ticket else ""
    folder = posixpath.dirname(source.name.path)

    def address(path: str) -> str:
        whole = posixpath.normpath(posixpath.join(folder, path))
        return f"{start}{quote(within_revision(whole))}{query}"

    tiles = {key: [address(path) for path in paths] for key, paths in document["tiles"].items()}
    return {**document, "tiles": tiles}
