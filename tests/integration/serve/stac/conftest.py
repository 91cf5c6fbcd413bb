"""A STAC API that really runs, mounted as in the gateway, and items of every kind of visibility behind it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any, Literal

import httpx
import pytest
import uvicorn
from fastapi import FastAPI, Request

from geomill.catalogue.following import follow_decision
from geomill.domain.access.visibility import Sight
from geomill.domain.objectname import ObjectName, Zone
from geomill.serve.stac import create_stac_app
from geomill.storage import Storage, StorageRecipe
from geomill.store.pool import Connection, open_pool
from tests.integration.catalogue.conftest import an_item

FILE = bytes(range(256)) * 40
KINDS = {
    "public": ("approved", "public", False),
    "ouo": ("approved", "ouo", False),
    "uncleared": ("approved", "uncleared", False),
    "pending": ("pending_review", "uncleared", False),
    "rejected": ("rejected", "uncleared", False),
    "deleted": ("approved", "public", True),
}
"""Approval, clearance, deleted."""
PLATFORMS = ("ddh", "arcgis")

INSERT = """
    INSERT INTO app.geospatial_assets (asset_id, platform_id, platform_refs, data_type, table_stem, blob_stem,
        stac_item_id, stac_collection_id)
    VALUES (%(id)s, %(platform)s, %(refs)s, 'raster', %(id)s, %(id)s, %(id)s, %(collection)s)
"""
COMPLETE = """
    UPDATE app.geospatial_assets
    SET revision = revision + 1, served_revision = revision + 1, outputs = %(outputs)s, processing_status = 'completed'
    WHERE asset_id = %(id)s
"""
DECIDE = """
    UPDATE app.geospatial_assets
    SET approval_state = %(approval)s, clearance_state = %(clearance)s, rejection_reason = 'because',
        deleted_at = CASE WHEN %(deleted)s THEN now() END, deleted_by = CASE WHEN %(deleted)s THEN 'x' END
    WHERE asset_id = %(id)s
"""


async def put_asset(
    conn: Connection, name: str, platform: str, kind: str, collection: str, item: Any, files: list[Any] | None = None
) -> None:
    """As the platform leaves it, with its catalogue entry."""
    approval, clearance, deleted = KINDS[kind]
    asset = {"id": name, "platform": platform, "refs": json.dumps({"a": name}), "collection": collection}
    await conn.execute(INSERT, asset)
    outputs = json.dumps({"stac_item": item, "files": files or []})
    await conn.execute(COMPLETE, {"id": name, "outputs": outputs})
    if (approval, clearance, deleted) != ("pending_review", "uncleared", False):
        parameters = {"id": name, "approval": approval, "clearance": clearance, "deleted": deleted}
        await conn.execute(DECIDE, parameters)
    async with conn.transaction():
        await follow_decision(conn, name)


def a_file(name: str) -> dict[str, Any]:
    return {
        "zone": "silver",
        "container": "cogs",
        "path": f"{name}/_r2/a.tif",
        "sha256": "ab" * 32,
        "size": len(FILE),
        "media_type": "image/tiff",
        "role": "data",
    }


async def fill(url: str, storage: Storage) -> None:
    """Each platform has an item of each kind, some in a collection of their own, some together."""
    async with open_pool(url, size=1) as pool, pool.connection() as conn:
        for east, platform in enumerate(PLATFORMS):
            for north, kind in enumerate(KINDS):
                for where in ("alone", "mixed"):
                    name = f"{platform}-{kind}-{where}"
                    collection = f"{platform}-mixed" if where == "mixed" else f"{platform}-{kind}"
                    west = 20.0 * east + 4 * (where == "mixed")
                    item = an_item(west, 5.0 * north, title=name, height=north, secret=f"text of {name}")
                    await put_asset(conn, name, platform, kind, collection, item, [a_file(name)])
                    await storage.put_bytes(ObjectName(Zone.SILVER, "cogs", f"{name}/_r2/a.tif"), FILE)


def parent_of(stac: FastAPI) -> FastAPI:
    """The application around it: it reads who asks from a header, where the gateway asks for a credential."""

    @asynccontextmanager
    async def lifespan(_app: FastAPI) -> AsyncIterator[None]:
        async with stac.router.lifespan_context(stac):
            yield

    parent = FastAPI(lifespan=lifespan)

    @parent.middleware("http")
    async def see(request: Request, proceed: Callable[[Request], Awaitable[Any]]) -> Any:
        if text := request.headers.get("sight"):
            request.state.sight = Sight.model_validate_json(text)
        return await proceed(request)

    parent.mount("/stac", stac)
    return parent


@asynccontextmanager
async def served(app: FastAPI) -> AsyncIterator[str]:
    config = uvicorn.Config(app, port=0, log_config=None, lifespan="on")
    server = uvicorn.Server(config)
    task = asyncio.create_task(server.serve())
    while not server.started:  # noqa: ASYNC110  uvicorn has no event
        await asyncio.sleep(0.01)
    try:
        yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    finally:
        server.should_exit = True
        await task


@pytest.fixture
def storage(tmp_path: Path) -> Storage:
    return Storage(StorageRecipe.in_folder(tmp_path))


Serve = Callable[..., AbstractAsyncContextManager[httpx.AsyncClient]]


@pytest.fixture
def serve(storage: Storage) -> Serve:
    @asynccontextmanager
    async def run(url: str, zone: Literal["internal", "external"] = "internal") -> AsyncIterator[httpx.AsyncClient]:
        stac = create_stac_app(database_url=url, zone=zone, storage=storage)
        async with served(parent_of(stac)) as address, httpx.AsyncClient(base_url=address) as client:
            yield client

    return run
