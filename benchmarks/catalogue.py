"""The catalogue: many items at once beside `pypgstac load`, and entries of assets beside pgstac's own function."""

from __future__ import annotations

import asyncio
import json
import os
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg

from benchmarks.figures import Figure, in_child
from benchmarks.server import database

ITEMS = int(os.environ.get("BENCH_CATALOGUE_ITEMS", "10000"))
ASSETS = 300
RUNS = 3
COLLECTION = {
    "type": "Collection", "stac_version": "1.1.0", "id": "bench", "description": "Many items", "license": "other",
    "links": [],
    "extent": {"spatial": {"bbox": [[-180, -90, 180, 90]]}, "temporal": {"interval": [["2020-01-01T00:00:00Z", None]]}},
}  # fmt: skip

INSERT = """
    INSERT INTO app.geospatial_assets (asset_id, platform_id, platform_refs, data_type, table_stem, blob_stem,
                                       stac_item_id, stac_collection_id)
    SELECT 'a' || n, 'ddh', '{}', 'raster', 'a' || n, 'a' || n, 'a' || n, 'c' FROM generate_series(0, %s) AS n
"""
COMPLETE = "UPDATE app.geospatial_assets SET revision = 2, served_revision = 2, outputs = %s WHERE asset_id = %s"
APPROVE = """
    UPDATE app.geospatial_assets SET approval_state = 'approved', clearance_state = 'public' WHERE asset_id = %s
"""


def run() -> Iterator[Figure]:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "items.ndjson"
        file.write_text("\n".join(json.dumps(_item(number)) for number in range(ITEMS)))
        bulk_speeds, load_speeds = [], []
        for _ in range(RUNS):
            load_speeds.append(_measured("pypgstac_load", file))
            bulk_speeds.append(_measured("put_items", file))
    best, other = max(bulk_speeds), max(load_speeds)
    yield Figure(f"pypgstac load of {ITEMS:,} items", other, "items/s", f"best of {RUNS}")
    yield Figure(f"catalogue/bulk.py, {ITEMS:,} items", best, "items/s", f"{best / other:.2f} times pypgstac load")
    yield from _one_by_one()


def _item(number: int) -> dict[str, Any]:
    """As a raster's: some 2 KB."""
    west, south = number % 360 - 180.0, number // 360 % 170 - 85.0
    east, north = west + 1, south + 1
    ring = [[west, south], [east, south], [east, north], [west, north], [west, south]]
    band = {
        "name": "b",
        "statistics": {"minimum": 0, "maximum": 255, "mean": 99.5, "stddev": 20.1},
        "data_type": "uint8",
    }
    return {
        "type": "Feature", "stac_version": "1.1.0", "stac_extensions": [], "id": f"item-{number}",
        "collection": "bench", "geometry": {"type": "Polygon", "coordinates": [ring]},
        "bbox": [west, south, east, north], "links": [],
        "properties": {"datetime": f"20{20 + number % 5}-0{1 + number % 9}-11T00:00:00Z", "proj:code": "EPSG:3857",
                       "proj:shape": [10000, 10000], "processing:lineage": "a file, warped, as COG " * 8},
        "assets": {key: {"href": f"./{key}.tif", "type": "image/tiff", "roles": ["data"], "bands": [band] * 3,
                         "file:checksum": "1220" + "ab" * 32, "file:size": 123456} for key in ("data", "preview")},
    }  # fmt: skip


def _measured(function: str, file: Path) -> float:
    with database() as url:
        with psycopg.connect(url, autocommit=True) as conn:
            conn.execute("SET search_path = pgstac, public")
            conn.execute("SELECT create_collection(%s)", [json.dumps(COLLECTION)])
        figure = in_child("benchmarks.catalogue", function, url=url, file=str(file))[0]
        with psycopg.connect(url) as conn:
            assert conn.execute("SELECT count(*) FROM pgstac.items").fetchone() == (ITEMS,)
    return figure.value


def pypgstac_load(url: str, file: str) -> list[Figure]:
    from pypgstac.db import PgstacDB
    from pypgstac.load import Loader, Methods

    begun = time.perf_counter()
    with PgstacDB(dsn=url) as db:
        Loader(db).load_items(file, Methods.insert)
    return [Figure("load", ITEMS / (time.perf_counter() - begun), "items/s")]


def put_items(url: str, file: str) -> list[Figure]:
    from geomill.catalogue import bulk
    from geomill.store.pool import open_pool

    async def work() -> float:
        begun = time.perf_counter()
        async with open_pool(url, size=1) as pool, pool.connection() as conn:
            lines = Path(file).read_text().splitlines()  # noqa: ASYNC240  nothing else runs
            await bulk.put_items(conn, map(json.loads, lines), {"bench": COLLECTION}, platform_id="ddh")
        return ITEMS / (time.perf_counter() - begun)

    return [Figure("bulk", asyncio.run(work()), "items/s")]


def _one_by_one() -> Iterator[Figure]:
    """Assets whose jobs have completed, written by the duty, and decisions that write their entries themselves."""
    with database() as url, psycopg.connect(url, autocommit=True) as conn:
        conn.execute("SET search_path = pgstac, public")
        conn.execute("SELECT create_collection(%s)", [json.dumps({**COLLECTION, "id": "bench"})])
        begun = time.perf_counter()
        for number in range(ASSETS):
            conn.execute("SELECT create_item(%s)", [json.dumps(_item(number))])
        create_item = ASSETS / (time.perf_counter() - begun)
    with database() as url:
        with psycopg.connect(url, autocommit=True) as conn:
            conn.execute(INSERT, [ASSETS - 1])
            for number in range(ASSETS):
                conn.execute(COMPLETE, [json.dumps({"stac_item": _item(number)}), f"a{number}"])
        followed, decided = asyncio.run(_followed(url))
    yield Figure("pgstac's create_item, one by one", create_item, "items/s")
    ratio = f"{followed / create_item:.1f} times create_item"
    yield Figure(f"entries of {ASSETS} assets, by the duty", followed, "assets/s", ratio)
    yield Figure(f"decisions on them, in a collection of {ASSETS}", decided, "assets/s")


async def _followed(url: str) -> tuple[float, float]:
    """Assets a second: those whose entries the duty writes, and those that are decided on."""
    from geomill.catalogue.following import CatalogueFollower, follow_decision
    from geomill.store.pool import open_pool

    async with open_pool(url, size=1) as pool:
        begun = time.perf_counter()
        written = (await CatalogueFollower(pool).run_once()).written
        followed = ASSETS / (time.perf_counter() - begun)
        assert len(written) == ASSETS
        async with pool.connection() as conn:
            begun = time.perf_counter()
            for asset_id in written:
                async with conn.transaction():
                    await conn.execute(APPROVE, [asset_id])
                    await follow_decision(conn, asset_id)
            return followed, ASSETS / (time.perf_counter() - begun)
