"""Files of items, whole or in ranges, and the items of superseded revisions, for callers who may see them."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Annotated, Any

from fastapi import APIRouter, Path, Request
from fastapi.responses import JSONResponse, Response, StreamingResponse
from stac_fastapi.pgstac.models.links import ItemLinks
from stac_fastapi.types.errors import NotFoundError
from stac_fastapi.types.requests import get_base_url

from geomill.catalogue.entries import InvalidEntry, version_item
from geomill.domain.access.visibility import Sight
from geomill.domain.objectname import ObjectName, Zone
from geomill.serve.stac.client import address
from geomill.serve.stac.sessions import fetch_value, sight_of
from geomill.sql import queries
from geomill.storage import Storage

PART = 4_000_000
_RANGE = re.compile(r"bytes=(\d*)-(\d*)")
AssetId = Annotated[str, Path(max_length=64)]
Revision = Annotated[int, Path(ge=1, le=2_000_000_000)]


@dataclass(frozen=True, slots=True)
class ItemFile:
    name: ObjectName
    size: int
    sha256: str
    media_type: str
    public: bool


def router(storage: Storage) -> APIRouter:
    routes = APIRouter(tags=["Files"])

    @routes.get("/files/{asset_id}/{revision}/{path:path}", summary="Get a file of an item", response_class=Response)
    @routes.head("/files/{asset_id}/{revision}/{path:path}", summary="Get a file of an item", include_in_schema=False)
    async def get_file(request: Request, asset_id: AssetId, revision: Revision, path: str) -> Response:
        return await _send(request, storage, await _find(request, asset_id, revision, path))

    @routes.get("/collections/{collection_id}/items/{item_id}/versions/{revision}", summary="Get a superseded version")
    async def get_version(request: Request, collection_id: str, item_id: str, revision: Revision) -> Response:
        return JSONResponse(
            await _version(request, collection_id, item_id, revision), media_type="application/geo+json"
        )

    return routes


async def _find(request: Request, asset_id: str, revision: int, path: str) -> ItemFile:
    statement = queries("stac").external_files if _external(request) else queries("stac").files
    row: dict[str, Any] | None = await fetch_value(request, statement, asset_id, revision)
    sight = sight_of(request)
    if row is not None and _may_see(row, sight):
        for file in row["files"] or []:
            if re.sub(r"^.*?/_r[0-9]+/", "", file["path"]) == path:
                name = ObjectName(Zone(file["zone"]), file["container"], file["path"])
                return ItemFile(name, file["size"], file["sha256"], file["media_type"], row["public"])
    raise NotFoundError(f"revision {revision} of {asset_id} has no file {path}")


def _external(request: Request) -> bool:
    return bool(request.app.state.zone == "external")


def _may_see(row: dict[str, Any], sight: Sight) -> bool:
    """Whether the caller may see the file. A signed link opens the newest revision but no earlier one."""
    if row["public"] or sight.covers(row["platform_id"]):
        return True
    return bool(row["newest"] and sight.covers(row["platform_id"], row["asset_id"]))


async def _send(request: Request, storage: Storage, file: ItemFile) -> Response:
    etag = f'"{file.sha256}"'
    headers = {
        "ETag": etag,
        "Accept-Ranges": "bytes",
        "Cache-Control": "public, max-age=60" if file.public else "private, no-cache",
        "Vary": "Authorization, X-API-Key",
    }
    if request.headers.get("if-none-match") == etag:
        return Response(status_code=304, headers=headers)
    start, end, status = _window(request.headers.get("range"), file.size)
    if status == 416:
        return Response(status_code=416, headers={**headers, "Content-Range": f"bytes */{file.size}"})
    if status == 206:
        headers["Content-Range"] = f"bytes {start}-{end - 1}/{file.size}"
    headers["Content-Length"] = str(end - start)
    if request.method == "HEAD":
        return Response(status_code=status, headers=headers, media_type=file.media_type)
    parts = _parts(storage, file.name, start, end)
    return StreamingResponse(parts, status_code=status, headers=headers, media_type=file.media_type)


def _window(header: str | None, size: int) -> tuple[int, int, int]:
    """Return start, end and status. Anything but a single range is answered with the whole file, as HTTP allows."""
    match = _RANGE.fullmatch(header or "")
    if match is None or match.groups() == ("", ""):
        return 0, size, 200
    first, last = match.groups()
    start = int(first) if first else max(size - int(last), 0)
    end = min(int(last) + 1, size) if first and last else size
    return (start, end, 206) if start < end else (0, 0, 416)


async def _parts(storage: Storage, name: ObjectName, start: int, end: int) -> AsyncIterator[bytes]:
    while start < end:
        data = await storage.read(name, start, min(PART, end - start))
        if not data:
            return
        start += len(data)
        yield data


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
