# ruff: noqa: A005  it is what the package under measure is called
"""The platform: orders a second through HTTP, and looking things up among a million assets."""

from __future__ import annotations

import asyncio
import json
import socket
import statistics
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import psycopg

from benchmarks import bare
from benchmarks.figures import Figure
from benchmarks.roles import Roles
from benchmarks.server import database
from geomill.domain.access.api_key import Secret
from geomill.domain.access.principal import Role
from geomill.domain.objectname import ObjectName, Zone
from geomill.storage import Storage, StorageRecipe
from geomill.store import assets, keys
from geomill.store.assets import AssetFilter
from geomill.store.pool import Connection, open_pool

ASSETS = 1_000_000
SUBMITS = 400
LOOKS = 40
TIFF = b"II*\0" + bytes(256)

FILL = """
INSERT INTO app.geospatial_assets (
    asset_id, platform_id, platform_refs, data_type, table_stem, blob_stem, stac_item_id, stac_collection_id,
    workflow_id, approval_state, processing_status, created_at
)
SELECT md5(n::text), 'ddh',
       jsonb_build_object('dataset_id', 'set' || n / 100, 'resource_id', 'r' || n %% 100, 'version_id', 'v' || n %% 7),
       'raster', 't' || n, 'b' || n, 'i' || n, 'c' || n / 100, 'publish_file',
       'pending_review', CASE WHEN n %% 1000 = 0 THEN 'failed' ELSE 'completed' END::app.processing_status,
       now() - n * interval '1 second'
FROM generate_series(1, %s) AS n
"""


@dataclass(frozen=True)
class GatewayClient:
    url: str
    headers: dict[str, str]

    async def submit(self, client: httpx.AsyncClient, number: str) -> None:
        body = {
            "dataset_id": f"bench{number}",
            "resource_id": "r",
            "version_id": "v1",
            "data_type": "raster",
            "container_name": "uploads",
            "file_name": "a.tif",
            "workflow_id": "publish_file",
        }
        answer = await client.post("/api/platform/submit", json=body)
        assert answer.status_code == 202, answer.text

    async def per_second(self, clients: int) -> float:
        async def submit_many(client: httpx.AsyncClient, name: int) -> None:
            for number in range(SUBMITS // clients):
                await self.submit(client, f"{clients}-{name}-{number}")

        async with httpx.AsyncClient(base_url=self.url, headers=self.headers, timeout=30) as client:
            await self.submit(client, f"warm-{clients}")
            begun = time.perf_counter()
            await asyncio.gather(*(submit_many(client, name) for name in range(clients)))
            return SUBMITS / (time.perf_counter() - begun)


@contextmanager
def gateway(url: str, workflows: Path | None = None) -> Iterator[GatewayClient]:
    """A real `geomill gateway`, with a store in a folder, and perhaps with the workflows of another."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    with tempfile.TemporaryDirectory() as folder:
        storage = Storage(StorageRecipe.in_folder(Path(folder))).sync
        storage.prepare()
        storage.put_bytes(ObjectName(Zone.BRONZE, "uploads", "a.tif"), TIFF)
        roles = _Limitless(url, Path(folder), workflows=workflows)
        roles.start("gateway", "--port", str(port))
        try:
            running_gateway = GatewayClient(f"http://127.0.0.1:{port}", asyncio.run(_credential(url)))
            _until_live(running_gateway.url)
            yield running_gateway
        finally:
            roles.stop()


@dataclass
class _Limitless(Roles):
    workflows: Path | None = None

    @property
    def environ(self) -> dict[str, str]:
        clean = {name: value for name, value in super().environ.items() if name != "GEOMILL_WORKFLOWS"}
        return {
            **clean,
            **({"GEOMILL_WORKFLOWS": str(self.workflows)} if self.workflows else {}),
            "GEOMILL_DATA": str(self.folder),
            "GEOMILL_SUBMIT_RATE": "100000",
            "GEOMILL_SUBMIT_BURST": "100000",
        }


def _until_live(url: str) -> None:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        try:
            if httpx.get(f"{url}/health/live").status_code == 200:
                return
        except httpx.HTTPError:
            time.sleep(0.1)
    raise AssertionError("the gateway does not answer")


async def _credential(url: str) -> dict[str, str]:
    secret = Secret.new()
    async with open_pool(url, size=1) as pool, pool.connection() as conn:
        await keys.create(conn, secret, name="bench", roles=[Role.ADMIN], created_by="bench")
    return {"Authorization": f"Bearer {secret.reveal()}"}


def run() -> Iterator[Figure]:
    with database() as url:
        yield from _submitting(url)
    with database() as url:
        yield from _looking(url)


def _submitting(url: str) -> Iterator[Figure]:
    bare.prepare(url)
    with gateway(url) as running_gateway:
        for clients in (1, 8):
            commit = bare.commit_milliseconds(url)
            speed = asyncio.run(running_gateway.per_second(clients))
            yield Figure(f"orders through HTTP, {clients} clients", speed, "per s")
            ratio = 1000 / speed / commit
            yield Figure("  as bare commits of one row", ratio, "commits", f"one takes {commit:.2f} ms now")


def _looking(url: str) -> Iterator[Figure]:
    with psycopg.connect(url, autocommit=True) as conn:
        begun = time.perf_counter()
        conn.execute("ALTER TABLE app.geospatial_assets DISABLE TRIGGER USER")
        conn.execute(FILL, [ASSETS])
        conn.execute("ALTER TABLE app.geospatial_assets ENABLE TRIGGER USER")
        conn.execute("VACUUM ANALYZE app.geospatial_assets")
        yield Figure("assets made", ASSETS, "rows", f"{time.perf_counter() - begun:.0f} s")
    yield from asyncio.run(_looks(url))


async def _looks(url: str) -> list[Figure]:
    middle = ASSETS // 2
    looks: dict[str, AssetFilter] = {
        "a page of the newest": AssetFilter(),
        "a page that waits for review": AssetFilter(approval_state=assets.ApprovalState.PENDING_REVIEW),
        "a page of what failed": AssetFilter(processing_status=assets.ProcessingStatus.FAILED),
        "by containment of identifiers": AssetFilter(refs={"dataset_id": f"set{middle // 100}"}),
        "by containment, of one platform": AssetFilter(platform_id="ddh", refs={"dataset_id": f"set{middle // 100}"}),
        "by a part of an identifier": AssetFilter(text=f"set{middle // 100}"),
    }
    async with open_pool(url, size=1) as pool, pool.connection() as conn:
        figures = []
        for what, chosen in looks.items():
            await require_index(conn, chosen)
            figures.append(Figure(what, await _p50(_page(conn, chosen)), "ms p50"))
        return figures


def _page(conn: Connection, chosen: AssetFilter) -> Callable[[], Awaitable[Any]]:
    async def look() -> Any:
        return await assets.page(conn, chosen, limit=51)

    return look


async def _p50(look: Callable[[], Awaitable[Any]]) -> float:
    times = []
    for _ in range(LOOKS):
        begun = time.perf_counter()
        await look()
        times.append((time.perf_counter() - begun) * 1000)
    return statistics.median(times)


async def require_index(conn: Connection, chosen: AssetFilter) -> None:
    explain = "EXPLAIN (FORMAT JSON) " + assets.page_statement(chosen)
    cursor = await conn.execute(explain, assets.page_parameters(chosen, limit=51), prepare=False)
    row = await cursor.fetchone()
    assert row is not None
    assert "Seq Scan" not in json.dumps(row["QUERY PLAN"]), row
