"""Files of items, whole or in ranges, and the items of superseded revisions, for callers who may see them."""

from __future__ import annotations

import re
from typing import Annotated, Any

from fastapi import APIRouter, Path, Request
from fastapi.responses import JSONResponse, Response
from stac_fastapi.pgstac.models.links import ItemLinks
from stac_fastapi.types.errors import NotFoundError
from stac_fastapi.types.requests import get_base_url

from geomill.catalogue.entries import InvalidEntry, version_item
from geomill.domain.access.visibility import Sight
from geomill.domain.objectname import ObjectName, Zone
from geomill.serve.sending import StoredFile, send_file
from geomill.serve.stac.client import address
from geomill.serve.stac.sessions import fetch_value, sight_of
from geomill.sql import queries
from geomill.storage import Storage

AssetId = Annotated[str, Path(max_length=64)]
Revision = Annotated[int, Path(ge=1, le=2_000_000_000)]


def router(storage: Storage) -> APIRouter:
    routes = APIRouter(tags=["Files"])

    @routes.get("/files/{asset_id}/{revision}/{path:path}", summary="Get a file of an item", response_class=Response)
    @routes.head("/files/{asset_id}/{revision}/{path:path}", summary="Get a file of an item", include_in_schema=False)
    async def get_file(request: Request, asset_id: AssetId, revision: Revision, path: str) -> Response:
        return await send_file(request, storage, await _find(request, asset_id, revision, path))

    @routes.get("/collections/{collection_id}/items/{item_id}/versions/{revision}", summary="Get a superseded version")
    async def get_version(request: Request, collection_id: str, item_id: str, revision: Revision) -> Response:
        return JSONResponse(
            await _version(request, collection_id, item_id, revision), media_type="application/geo+json"
        )

    return routes


async def _find(request: Request, asset_id: str, revision: int, path: str) -> StoredFile:
    statement = queries("stac").external_files if _external(request) else queries("stac").files
    row: dict[str, Any] | None = await fetch_value(request, statement, asset_id, revision)
    sight = sight_of(request)
    if row is not None and _may_see(row, sight):
        for file in row["files"] or []:
            if re.sub(r"^.*?/_r[0-9]+/", "", file["path"]) == path:
                name = ObjectName(Zone(file["zone"]), file["container"], file["path"])
                return StoredFile(name, file["size"], file["sha256"], file["media_type"], row["public"])
    raise NotFoundError(f"revision {revision} of {asset_id} has no file {path}")


def _external(request: Request) -> bool:
    return bool(request.app.state.zone == "external")


def _may_see(row: dict[str, Any], sight: Sight) -> bool:
    """Whether the caller may see the file. A signed link opens the newest revision but no earlier one."""
    if row["public"] or sight.covers(row["platform_id"]):
        return True
    return bool(row["newest"] and sight.covers(row["platform_id"], row["asset_id"]))


async def _version(request: Request, collection_id: str, item_id: str, revision: int) -> dict[str, Any]:
    sight = sight_of(request)
    row: dict[str, Any] | None = None
    if not _external(request):
        row = await fetch_value(request, queries("stac").version, collection_id, item_id, revision)
    if row is None or not sight.covers(row["platform_id"]):
        raise NotFoundError(f"item {item_id} in collection {collection_id} has no version {revision}")
    try:
        item = version_item(**row, collection_id=collection_id, item_id=item_id, revision=revision)
    except InvalidEntry as error:
        raise NotFoundError(f"version {revision} of item {item_id} cannot be shown: {error}") from error
    base = get_base_url(request)
    for asset in item["assets"].values():
        if "href" in asset:
            asset["href"] = address(base, asset["href"])
    links = await ItemLinks(collection_id=collection_id, item_id=item_id, request=request).get_links(item["links"])
    here = {"rel": "self", "type": "application/geo+json", "href": str(request.url)}
    item["links"] = [here, *(link for link in links if link["rel"] != "self")]
    return item
