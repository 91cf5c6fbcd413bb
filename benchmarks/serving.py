"""Latency of tiles, features and items through our app, and of bare TiTiler, TiPG and stac-fastapi-pgstac of the same
versions beside it.

Each runs as a process of its own, under the same server, on the same file and the same table.
"""

from __future__ import annotations

import asyncio
import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import numpy as np
import psycopg
import rasterio
from morecantile import tms
from rasterio.transform import from_origin

from benchmarks import serving_stac
from benchmarks.figures import Figure
from benchmarks.server import database
from benchmarks.serving_pairs import ServingPair, measure, reading
from benchmarks.serving_programs import GEOMILL, STAC, TIPG, TITILER
from geomill.domain.objectname import ObjectName, Zone
from geomill.storage import Storage, StorageRecipe

ONLY = os.environ.get("BENCH_SERVING_ONLY", "")
"""A part of the name of what is measured."""
SIZE = 4096
ROWS = 100_000
ASSET, LAYER = "a" * 32, "b" * 32
WEB = tms.get("WebMercatorQuad")

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


def run() -> Iterator[Figure]:
    with database() as url, tempfile.TemporaryDirectory(prefix="geomill-bench-") as folder:
        file = _fill(url, Path(folder))
        key = serving_stac.fill(url)
        with (
            _serving(GEOMILL, folder, url) as geomill,
            _serving(TITILER, folder, url) as titiler,
            _serving(TIPG, folder, url) as tipg,
            _serving(STAC, folder, url) as stac,
        ):
            everything = (*_pairs(geomill, titiler, tipg, file), *serving_stac.pairs(geomill, stac, key))
            for pair in everything:
                if ONLY in pair.what:
                    yield from asyncio.run(measure(pair))


def _fill(url: str, folder: Path) -> str:
    storage = Storage(StorageRecipe.in_folder(folder))
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


def _pairs(geomill: str, titiler: str, tipg: str, file: str) -> Iterator[ServingPair]:
    tiles = list(WEB.tiles(15.01, 45.08, 15.15, 45.19, zooms=[14]))
    places = [f"{tile.z}/{tile.x}/{tile.y}" for tile in tiles]
    raster = f"{geomill}/raster/assets/{ASSET}"
    vector, table = f"{geomill}/vector/collections/{LAYER}", f"{tipg}/collections/geo.squares"
    yield reading(
        "raster tile, 256 px, PNG",
        [f"{raster}/tiles/WebMercatorQuad/{place}.png?bidx=1&bidx=2&bidx=3" for place in places],
        [f"{titiler}/tiles/WebMercatorQuad/{place}.png?url={file}&bidx=1&bidx=2&bidx=3" for place in places],
    )
    yield reading(
        "raster value at a point", [f"{raster}/point/15.05,45.12"], [f"{titiler}/point/15.05,45.12?url={file}"]
    )
    tiles = list(WEB.tiles(15.01, 45.01, 15.14, 45.14, zooms=[15]))
    places = [f"{tile.z}/{tile.x}/{tile.y}" for tile in tiles]
    yield reading(
        "vector tile, some hundred features",
        [f"{vector}/tiles/WebMercatorQuad/{place}" for place in places],
        [f"{table}/tiles/WebMercatorQuad/{place}" for place in places],
    )
    boxes = [f"{15 + n * 0.001:.3f},45.02,{15.02 + n * 0.001:.3f},45.021" for n in range(50)]
    yield reading(
        "features, 100 of a box",
        [f"{vector}/items?bbox={box}&limit=100" for box in boxes],
        [f"{table}/items?bbox={box}&limit=100" for box in boxes],
    )
