"""Latency of tiles and features through our app, and of bare TiTiler and TiPG of the same versions beside it.

Each runs as a process of its own, under the same server, on the same file and the same table. Requests alternate
between the two, so that a neighbour's load hits both.
"""

from __future__ import annotations

import asyncio
import json
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx
import numpy as np
import psycopg
import rasterio
from morecantile import tms
from rasterio.transform import from_origin

from benchmarks.figures import Figure
from benchmarks.server import database
from geomill.domain.objectname import ObjectName, Zone
from geomill.storage import Recipe, Storage

REQUESTS = int(os.environ.get("BENCH_SERVING_REQUESTS", "300"))
CLIENTS = (1, 8)
SIZE = 4096
ROWS = 100_000
ASSET, LAYER = "a" * 32, "b" * 32
WEB = tms.get("WebMercatorQuad")

OURS = """
import asyncio, sys, socket
from geomill.domain.objectname import Zone
from geomill.serve.app import create_serving_app
from geomill.serve.services import Services
from geomill.settings import AccessSettings
from geomill.storage import Recipe, Storage
from pathlib import Path
import uvicorn
folder, url, port = sys.argv[1:]
app = create_serving_app(Services(Zone.SILVER, url, Storage(Recipe.in_folder(Path(folder)))), url, AccessSettings())
uvicorn.run(app, port=int(port), log_level="error", access_log=False, loop="uvloop")
"""
TITILER = """
import sys, uvicorn
from fastapi import FastAPI
from titiler.core.factory import TilerFactory
from titiler.core.errors import DEFAULT_STATUS_CODES, add_exception_handlers
app = FastAPI()
app.include_router(TilerFactory().router)
add_exception_handlers(app, DEFAULT_STATUS_CODES)
uvicorn.run(app, port=int(sys.argv[3]), log_level="error", access_log=False, loop="uvloop")
"""
TIPG = """
import sys, os, uvicorn
from contextlib import asynccontextmanager
from fastapi import FastAPI
from tipg.collections import register_collection_catalog
from tipg.database import close_db_connection, connect_to_db
from tipg.factory import Endpoints
from tipg.settings import DatabaseSettings, PostgresSettings
settings = DatabaseSettings(schemas=["geo"])
@asynccontextmanager
async def lifespan(app):
    await connect_to_db(app, schemas=["geo"], settings=PostgresSettings.model_construct(
        database_url=sys.argv[2], db_min_conn_size=1, db_max_conn_size=8, db_max_queries=50000,
        db_max_inactive_conn_lifetime=300))
    await register_collection_catalog(app, db_settings=settings)
    yield
    await close_db_connection(app)
app = FastAPI(lifespan=lifespan, openapi_url="/api", docs_url="/api.html")
app.include_router(Endpoints().router)
uvicorn.run(app, port=int(sys.argv[3]), log_level="error", access_log=False, loop="uvloop")
"""
FILL = """
CREATE SCHEMA IF NOT EXISTS geo;
CREATE TABLE geo.squares AS
SELECT n AS id, 'name ' || n AS name, n * 1.5 AS size,
       ST_Multi(ST_MakeEnvelope(x, y, x + 0.0004, y + 0.0004, 4326))::geometry(MultiPolygon, 4326) AS geom
FROM (SELECT n, 15 + (n % 316) * 0.0005 AS x, 45 + (n / 316) * 0.0005 AS y FROM generate_series(0, {rows}) AS n) AS g;
ALTER TABLE geo.squares ADD PRIMARY KEY (id);
CREATE INDEX ON geo.squares USING gist (geom);
ANALYZE geo.squares;
"""
ADD = """
INSERT INTO app.geospatial_assets (asset_id, platform_id, platform_refs, data_type, table_stem, blob_stem, stac_item_id,
    stac_collection_id, served_revision, approval_state, clearance_state, blob_path, table_name, outputs)
VALUES (%s, 'ddh', %s, %s, %s, %s, %s, 'bench', 1, 'approved', 'public', %s, %s, %s)
"""


@dataclass(frozen=True)
class Pair:
    """The same question to both."""

    what: str
    ours: list[str]
    bare: list[str]


def run() -> Iterator[Figure]:
    with database() as url, tempfile.TemporaryDirectory(prefix="geomill-bench-") as folder:
        file = _fill(url, Path(folder))
        with (
            _serving(OURS, folder, url) as ours,
            _serving(TITILER, folder, url) as titiler,
            _serving(TIPG, folder, url) as tipg,
        ):
            for pair in _pairs(ours, titiler, tipg, file):
                yield from asyncio.run(_measure(pair))


def _fill(url: str, folder: Path) -> str:
    storage = Storage(Recipe.in_folder(folder))
    storage.sync.prepare()
    file = storage.gdal_path(ObjectName(Zone.SILVER, "cogs", "bench/a.tif"))
    Path(file).parent.mkdir(parents=True, exist_ok=True)
    y, x = np.mgrid[0:SIZE, 0:SIZE]
    data = np.stack([(np.sin(x / (50 + b)) * np.cos(y / (70 + b)) * 100 + 128) for b in range(3)]).astype("uint8")
    left, top = WEB.xy(15.0, 45.2)
    profile = {"driver": "COG", "width": SIZE, "height": SIZE, "count": 3, "dtype": "uint8", "crs": "EPSG:3857"}
    with rasterio.open(file, "w", transform=from_origin(left, top, 5, 5), compress="deflate", **profile) as target:
        target.write(data)
    with psycopg.connect(url, autocommit=True) as conn:
        conn.execute(FILL.format(rows=ROWS - 1))  # type: ignore[arg-type]
        refs = [json.dumps({"dataset_id": name, "resource_id": "r", "version_id": "v"}) for name in ("r", "v")]
        picture = json.dumps({"raster_type": "rgb", "statistics": [{}, {}, {}], "bbox": [15, 45, 15.2, 45.2]})
        layer = json.dumps({"bbox": [15, 45, 15.158, 45.158]})
        conn.execute(ADD, (ASSET, refs[0], "raster", "r", "r", "r", "cogs/bench/a.tif", None, picture))
        conn.execute(ADD, (LAYER, refs[1], "vector", "v", "v", "v", None, "squares", layer))
    return file


@contextmanager
def _serving(program: str, folder: str, url: str) -> Iterator[str]:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    process = subprocess.Popen([sys.executable, "-W", "ignore", "-c", program, folder, url, str(port)])
    try:
        _wait(f"http://127.0.0.1:{port}", process)
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait()


def _wait(address: str, process: subprocess.Popen[bytes]) -> None:
    for _ in range(600):
        if process.poll() is not None:
            raise RuntimeError("a server of the benchmark did not start")
        try:
            httpx.get(f"{address}/", timeout=1)
        except httpx.HTTPError:
            time.sleep(0.1)
        else:
            return
    raise RuntimeError("a server of the benchmark did not answer")


def _pairs(ours: str, titiler: str, tipg: str, file: str) -> Iterator[Pair]:
    tiles = list(WEB.tiles(15.01, 45.08, 15.15, 45.19, zooms=[14]))
    places = [f"{tile.z}/{tile.x}/{tile.y}" for tile in tiles]
    raster = f"{ours}/raster/assets/{ASSET}"
    vector, table = f"{ours}/vector/collections/{LAYER}", f"{tipg}/collections/geo.squares"
    yield Pair(
        "raster tile, 256 px, PNG",
        [f"{raster}/tiles/WebMercatorQuad/{place}.png?bidx=1&bidx=2&bidx=3" for place in places],
        [f"{titiler}/tiles/WebMercatorQuad/{place}.png?url={file}&bidx=1&bidx=2&bidx=3" for place in places],
    )
    yield Pair("raster value at a point", [f"{raster}/point/15.05,45.12"], [f"{titiler}/point/15.05,45.12?url={file}"])
    tiles = list(WEB.tiles(15.01, 45.01, 15.14, 45.14, zooms=[15]))
    places = [f"{tile.z}/{tile.x}/{tile.y}" for tile in tiles]
    yield Pair(
        "vector tile, some hundred features",
        [f"{vector}/tiles/WebMercatorQuad/{place}" for place in places],
        [f"{table}/tiles/WebMercatorQuad/{place}" for place in places],
    )
    boxes = [f"{15 + n * 0.001:.3f},45.02,{15.02 + n * 0.001:.3f},45.021" for n in range(50)]
    yield Pair(
        "features, 100 of a box",
        [f"{vector}/items?bbox={box}&limit=100" for box in boxes],
        [f"{table}/items?bbox={box}&limit=100" for box in boxes],
    )


async def _measure(pair: Pair) -> list[Figure]:
    figures = []
    for clients in CLIENTS:
        ours, bare = await _alternating(pair, clients)
        for name, share in (("p50", 50), ("p95", 95)):
            mine, theirs = (statistics.quantiles(times, n=100)[share - 1] * 1000 for times in (ours, bare))
            what = f"{pair.what}, {clients} client{'s' if clients > 1 else ''}, {name}"
            figures.append(Figure(what, mine, "ms", f"{mine / theirs:.2f} times bare ({theirs:.1f} ms)"))
    return figures


async def _alternating(pair: Pair, clients: int) -> tuple[list[float], list[float]]:
    """In rounds, one side after the other."""
    times: tuple[list[float], list[float]] = ([], [])
    async with httpx.AsyncClient(timeout=60, limits=httpx.Limits(max_connections=clients)) as client:
        for side in (pair.ours, pair.bare):
            await _ask(client, side, 20, clients)
        for _ in range(6):
            for kept, side in zip(times, (pair.ours, pair.bare), strict=True):
                kept += await _ask(client, side, REQUESTS // 6, clients)
    return times


async def _ask(client: httpx.AsyncClient, urls: list[str], count: int, clients: int) -> list[float]:
    waiting, times = list(range(count)), []

    async def work() -> None:
        while waiting:
            url = urls[waiting.pop() % len(urls)]
            begun = time.perf_counter()
            (await client.get(url)).raise_for_status()
            times.append(time.perf_counter() - begun)

    await asyncio.gather(*(work() for _ in range(clients)))
    return times
