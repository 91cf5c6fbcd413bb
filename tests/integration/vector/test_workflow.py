"""The whole workflow, by real roles: from an order to a table that is served, whoever is killed meanwhile."""

from __future__ import annotations

import asyncio
import os
import signal
import sqlite3
import struct
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import psycopg
import pystac
import pytest
import shapely

from geomill.datasets.intermediates import folder_of, mount
from geomill.domain.states import JobStatus
from geomill.handlers.vector.cleanup_staging import cleanup_staging
from geomill.sdk import ObjectName, Storage, Zone
from geomill.vector import indexing
from tests.integration.engine.platform import EnginePlatform
from tests.integration.raster.checks import check_stac
from tests.integration.vector import sources
from tests.integration.vector.steps import Steps, ok

INPUTS = {"container_name": sources.CONTAINER, "file_name": "a.gpkg", "table_name": "parcels", "chunk_rows": 500}


def put(storage: Storage, folder: Path, count: int) -> None:
    sources.put(storage, "a.gpkg", sources.encoded(folder, sources.table(sources.squares(count)), kind="Polygon"))


async def staging(platform: EnginePlatform) -> set[str]:
    query = "SELECT relname FROM pg_class WHERE relnamespace = to_regnamespace('geo_staging') AND relkind = 'r'"
    return {row["relname"] for row in await platform.rows(query)}


async def test_a_layer_becomes_a_table_with_a_catalogue_entry(
    platform: EnginePlatform, storage: Storage, tmp_path: Path
) -> None:
    put(storage, tmp_path, 2_000)
    platform.worker(concurrency=4)
    asset = {"asset_id": "a1", "blob_prefix": "x/1", "stac_item_id": "parcels", "stac_collection_id": "land"}
    job = await platform.run("vector_processing", {**INPUTS, **asset, "geoparquet": True})
    assert job.status is JobStatus.COMPLETED, job.error_message
    output: dict[str, Any] = job.result_data or {}
    assert (output["table_name"], output["row_count"], output["geometry_type"]) == ("parcels", 2_000, "MultiPolygon")
    assert output["bbox"] == pytest.approx([5.0, 45.0, 5.999, 45.199])
    assert [file["path"] for file in output["files"]] == [
        "x/1/parcels.parquet", "x/1/collection.json", "x/1/item.json",
    ]  # fmt: skip
    assert await staging(platform) == set()
    assert not (mount() / folder_of(job.job_id)).exists()
    item = pystac.Item.from_dict(output["stac_item"])
    assert item.assets["features"].href == "/vector/collections/a1/items"
    assert item.properties["table:row_count"] == 2_000
    assert shapely.geometry.shape(item.geometry).is_valid
    for name in ("item", "collection"):
        assert check_stac(storage, ObjectName(Zone.SILVER, "vectors", f"x/1/{name}.json")) == output[f"stac_{name}"]
    parquet = tmp_path / "silver/vectors/x/1/parcels.parquet"
    sources.put(storage, "again.parquet", parquet.read_bytes())
    again = await platform.run("vector_processing", {**INPUTS, "file_name": "again.parquet", "table_name": "again"})
    assert again.status is JobStatus.COMPLETED, again.error_message
    differing = await platform.rows(
        "SELECT count(*) AS n FROM geo.parcels AS a FULL JOIN geo.again AS b ON a.gid = b.gid_"
        " WHERE (a.name, a.number, a.geom) IS DISTINCT FROM (b.name, b.number, b.geom)"
    )
    assert differing == [{"n": 0}]


async def test_a_kill_in_the_middle_costs_nothing(platform: EnginePlatform, storage: Storage, tmp_path: Path) -> None:
    """The process that loads is killed again and again. Rows are there once, and nothing is seen before all are."""
    put(storage, tmp_path, 8_000)
    worker = platform.worker(concurrency=2)
    job_id = await platform.submit("vector_processing", INPUTS)
    for number in (2, 5):
        await loaded(platform, job_id, number)
        assert await platform.rows("SELECT to_regclass('geo.parcels') AS there") == [{"there": None}]
        for pid in worker._children.pids:
            os.killpg(pid, signal.SIGKILL)
    job = await platform.ended(job_id)
    assert job.status is JobStatus.COMPLETED, job.error_message
    rows = await platform.rows(
        "SELECT count(*) AS n, count(DISTINCT number) AS once, max(gid) AS last FROM geo.parcels"
    )
    assert rows == [{"n": 8_000, "once": 8_000, "last": 8_000}]
    assert await staging(platform) == set()


async def loaded(platform: EnginePlatform, job_id: str, chunks: int) -> None:
    table = f"geo_staging.load_{job_id.replace('-', '')}_chunks"
    async with asyncio.timeout(60):
        while True:
            if (await platform.rows(f"SELECT to_regclass('{table}') AS there"))[0]["there"]:
                rows = await platform.rows(f"SELECT count(*) AS n FROM {table}")
                if rows[0]["n"] >= chunks:
                    return
            await asyncio.sleep(0.01)


async def test_what_a_failed_job_leaves_is_swept(platform: EnginePlatform, storage: Storage, tmp_path: Path) -> None:
    wide = {f"c{number}": [float(number)] for number in range(1_500)}
    sources.put(storage, "a.parquet", sources.parquet(tmp_path, sources.table(sources.squares(1), **wide)))
    platform.worker(concurrency=2)
    failed = await platform.run("vector_processing", {**INPUTS, "file_name": "a.parquet"})
    assert failed.status is JobStatus.FAILED
    assert "do not fit into a table" in (failed.error_message or "")
    assert len(await staging(platform)) == 2
    assert (await platform.run("cleanup_staging")).result_data == {"dropped": []}, "it may be retried for a day"
    swept = await platform.run("cleanup_staging", {"older_than_hours": 0})
    assert len((swept.result_data or {})["dropped"]) == 2
    assert await staging(platform) == set()


def test_a_chunk_is_loaded_once_and_a_table_finished_once(storage: Storage, database: str, tmp_path: Path) -> None:
    """The attempts before these died between their commit and their report."""
    put(storage, tmp_path, 1_000)
    steps = Steps(storage, database)
    plan, chunks = steps.planned("a.gpkg", chunk_rows=300)
    first = [ok(steps.load(plan, chunk)) for chunk in chunks]
    second = [ok(steps.load(plan, chunk)) for chunk in chunks]
    assert [load["resumed"] for load in first + second] == [False] * 4 + [True] * 4
    assert [{**load, "resumed": False} for load in second] == first
    outputs = [ok(steps.finish(plan, chunks, "parcels")) for _ in range(2)]
    assert outputs[0] == outputs[1]
    assert steps.rows("SELECT count(*) AS n FROM geo.parcels") == [{"n": 1_000}]
    missing = Steps(storage, database)
    plan, chunks = missing.planned("a.gpkg", chunk_rows=300)
    ok(missing.load(plan, chunks[0]))
    run = missing.finish(plan, chunks, "parcels")
    assert (run.ended.error_code, run.ended.retryable) == ("staging_gone", False)
    assert missing.rows("SELECT count(*) AS n FROM geo.parcels") == [{"n": 1_000}], "the old one stays"


def test_the_key_is_built_beside_the_spatial_index(
    storage: Storage, database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another session builds the key, as it does for many rows. It is built once, whether or not an attempt that died
    has left it."""
    monkeypatch.setattr(indexing, "MANY", 1)
    put(storage, tmp_path, 1_000)
    steps = Steps(storage, database)
    plan, chunks = steps.planned("a.gpkg", chunk_rows=300)
    for chunk in chunks:
        ok(steps.load(plan, chunk))
    stem = plan["staging"]
    with psycopg.connect(database, autocommit=True) as conn:
        conn.execute(f"CREATE INDEX {stem}_areas_gix ON geo_staging.{stem}_chunks (chunk)")  # its name is taken
        assert not steps.finish(plan, chunks, "parcels").success
        conn.execute(f"DROP INDEX geo_staging.{stem}_areas_gix")
    left = steps.rows(f"SELECT indexname AS name FROM pg_indexes WHERE tablename = '{stem}_areas'")
    assert left == [{"name": f"{stem}_areas_key"}]
    assert steps.tables() == set(), "nothing is seen"
    ok(steps.finish(plan, chunks, "parcels"))
    indexes = steps.rows("SELECT indexdef FROM pg_indexes WHERE schemaname = 'geo' ORDER BY indexname")
    assert [row["indexdef"] for row in indexes] == [
        "CREATE INDEX parcels_gix ON geo.parcels USING gist (geom)",
        "CREATE UNIQUE INDEX parcels_key ON geo.parcels USING btree (gid)",
    ]
    constraints = steps.rows("SELECT contype::text FROM pg_constraint WHERE conrelid = 'geo.parcels'::regclass")
    assert constraints == [{"contype": "p"}]


def test_long_names_of_revisions_and_kinds_do_not_collide(storage: Storage, database: str) -> None:
    point, area = shapely.Point(5, 45), sources.squares(1)[0]
    sources.put(storage, "a.geojson", sources.geojson(area, point))
    for revision in (1, 2):
        steps = Steps(storage, database)
        steps.publish("a.geojson", "x" * 53 + f"_r{revision}", mixed_geometries="split")
    assert len(steps.tables()) == 4


@pytest.mark.slow
async def test_a_geometry_of_300_megabytes_is_refused_and_leaves_nothing(
    platform: EnginePlatform, storage: Storage, tmp_path: Path
) -> None:
    put(storage, tmp_path, 2_000)
    points = 20_000_000
    head = b"GP\x00\x01" + struct.pack("<iBIII", 4326, 1, 3, 1, points)
    with closing(sqlite3.connect(tmp_path / "bronze" / sources.CONTAINER / "a.gpkg")) as file, file:
        (table,) = file.execute("SELECT table_name FROM gpkg_contents").fetchone()
        for (trigger,) in file.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
            file.execute(f'DROP TRIGGER "{trigger}"')  # they call functions that only GDAL has
        ring = np.tile(np.array([[5, 45], [6, 45], [6, 46], [5, 46]], "<f8"), (points // 4, 1))
        file.execute(f'UPDATE "{table}" SET geom = ? WHERE fid = 1900', (head + ring.tobytes(),))
    platform.worker(concurrency=2, memory_mb=1_300)
    job = await platform.run("vector_processing", INPUTS)
    assert job.status is JobStatus.FAILED
    assert "the geometry of row 1900 has 320,000,013 bytes; the maximum is 67,108,864" in str(job.error_message)
    assert await platform.rows("SELECT relname FROM pg_class WHERE relname = 'parcels'") == []
    ok(Steps(storage, platform.url, job.job_id).run(cleanup_staging, {"job_id": job.job_id}))
    assert await staging(platform) == set()
    assert not (mount() / folder_of(job.job_id)).exists()
