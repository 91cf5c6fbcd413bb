"""The external zone, beside its files: item, row and table, in one transaction of the external database."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg.rows import dict_row

from geomill.domain.assets.asset import DataType
from geomill.domain.states import ClearanceState, JobStatus
from geomill.errors import AssetState, NotFoundError
from geomill.platform import review
from geomill.sdk.orders import AssetOrder
from tests.integration.catalogue.conftest import an_item, refs
from tests.integration.platform.conftest import ADA, BOB, Office

GEOMILL = str(Path(sys.executable).with_name("geomill"))


def outside(url: str, query: str) -> list[dict[str, Any]]:
    with psycopg.connect(url, autocommit=True, row_factory=dict_row) as conn:
        return conn.execute(query).fetchall()


ASSETS = "SELECT * FROM external.assets"
TABLES = "SELECT tablename FROM pg_tables WHERE schemaname = 'geo'"
ITEMS = "SELECT id, pgstac.get_item(id, collection) AS item FROM pgstac.items"


async def publish(office: Office, **changes: Any) -> Any:
    options = {"item": changes.pop("item", an_item())}
    return await office.published(ADA, platform_refs=refs("jakarta"), processing_options=options, **changes)


async def exported(office: Office, asset_id: str) -> Any:
    outcome = await office.decide(review.approve, asset_id, ClearanceState.PUBLIC, BOB, None)
    assert outcome.export_job_id
    return await office.ended(outcome.export_job_id)


async def test_an_export_puts_the_item_outside_and_a_withdrawal_takes_it_back(
    office: Office, external_database: str
) -> None:
    office.engine.orchestrator()
    office.engine.worker()
    asset = await publish(office)
    assert outside(external_database, ASSETS) == []
    job = await exported(office, asset.asset_id)
    assert (job.status, job.result_data["warnings"]) == (JobStatus.COMPLETED, [])
    (row,) = outside(external_database, ASSETS)
    assert (row["revision"], row["platform_id"], row["data_type"]) == (1, "ddh", "raster")
    assert row["blob_path"] == f"public/{asset.blob_stem}/_r1/a.tif"
    assert [file["zone"] for file in row["outputs"]["files"]] == ["external"]
    assert "stac_item" not in row["outputs"]
    (item,) = outside(external_database, ITEMS)
    assert item["item"]["assets"]["data"]["href"] == f"files/{asset.asset_id}/1/a.tif"
    assert item["item"]["properties"]["geomill:clearance"] == "public"
    outcome = await office.decide(review.revoke, asset.asset_id, "wrong", BOB, None)
    assert (await office.ended(outcome.export_job_id or "")).status is JobStatus.COMPLETED
    assert outside(external_database, ASSETS) == outside(external_database, ITEMS) == []
    assert outside(external_database, "SELECT * FROM catalogue.visible_collections(true, NULL)") == []


async def test_a_new_revision_outside_takes_the_place_of_the_old_one(office: Office, external_database: str) -> None:
    office.engine.orchestrator()
    office.engine.worker()
    asset = await publish(office)
    await exported(office, asset.asset_id)
    await publish(office, item=an_item(30.0), overwrite=True)
    (row,) = outside(external_database, ASSETS)
    assert row["revision"] == 1  # what is outside stays until the next approval
    await exported(office, asset.asset_id)
    (row,) = outside(external_database, ASSETS)
    (item,) = outside(external_database, ITEMS)
    assert (row["revision"], item["item"]["properties"]["version"], item["item"]["bbox"][0]) == (2, "2", 30.0)


async def test_without_an_external_database_files_go_outside_and_it_is_said(office: Office) -> None:
    office.engine.external = None
    office.engine.orchestrator()
    office.engine.worker()
    asset = await publish(office)
    job = await exported(office, asset.asset_id)
    assert job.status is JobStatus.COMPLETED
    assert "GEOMILL_EXTERNAL_DATABASE_URL" in job.result_data["warnings"][0]
    outcome = await office.decide(review.revoke, asset.asset_id, "wrong", BOB, None)
    assert (await office.ended(outcome.export_job_id or "")).status is JobStatus.COMPLETED


TABLE = """
    CREATE SCHEMA IF NOT EXISTS geo;
    CREATE TABLE geo."Rivers_r{n}" (
        id bigint PRIMARY KEY, "select" text, size numeric(9, 2), at timestamptz NOT NULL, geom geometry(Point, 4326)
    );
    INSERT INTO geo."Rivers_r{n}"
    SELECT n, 'river ' || n, n / 4.0, '2024-01-01', ST_SetSRID(ST_MakePoint(n / 10.0, 50), 4326)
    FROM generate_series(1, 1000 * {n}) AS n;
    CREATE INDEX ON geo."Rivers_r{n}" USING gist (geom);
"""
FACTS = """
    UPDATE app.geospatial_assets
    SET table_name = %s, revision = revision + 1, served_revision = revision + 1 WHERE asset_id = %s
"""


def order_of(asset_id: str, revision: int) -> AssetOrder:
    return AssetOrder(asset_id, DataType.VECTOR, "rivers", "Rivers", revision)


async def put_outside(office: Office, asset_id: str, revision: int) -> dict[str, Any]:
    external, order = office.engine.external, order_of(asset_id, revision)
    assert external is not None
    entry = await external.prepare(order)
    await external.publish(order, entry, [])
    return entry


def with_table(database: str, asset_id: str, number: int) -> None:
    with psycopg.connect(database, autocommit=True) as conn:
        conn.execute(TABLE.format(n=number))
        conn.execute(FACTS, [f"Rivers_r{number}", asset_id])


async def test_a_table_goes_along_with_keys_and_indexes(office: Office, database: str, external_database: str) -> None:
    office.engine.orchestrator()
    office.engine.worker()
    asset = await publish(office)
    with_table(database, asset.asset_id, 1)
    external = office.engine.external
    assert external is not None
    done = await put_outside(office, asset.asset_id, 2)
    assert (done["table_name"], done["rows"]) == ("Rivers_r1", 1000)
    everything = 'SELECT count(*) AS n, sum(size) AS size, ST_Extent(geom)::text AS box FROM geo."Rivers_r1"'
    assert outside(external_database, everything) == outside(database, everything)
    indexes = "SELECT indexdef FROM pg_indexes WHERE schemaname = 'geo' ORDER BY 1"
    assert outside(external_database, indexes) == outside(database, indexes)
    columns = (
        "SELECT attname, format_type(atttypid, atttypmod) AS type, attnotnull FROM pg_attribute"
        " WHERE attrelid = 'geo.\"Rivers_r1\"'::regclass AND attnum > 0 ORDER BY attnum"
    )
    assert outside(external_database, columns) == outside(database, columns)
    # again, as after a crash: the same
    assert (await put_outside(office, asset.asset_id, 2))["rows"] == 1000
    with_table(database, asset.asset_id, 2)
    await put_outside(office, asset.asset_id, 3)
    tables = "SELECT tablename FROM pg_tables WHERE schemaname = 'geo'"
    assert outside(external_database, tables) == [{"tablename": "Rivers_r2"}]
    assert await external.withdraw(order_of(asset.asset_id, 3))
    assert outside(external_database, tables) == []
    assert not await external.withdraw(order_of(asset.asset_id, 3))


async def test_an_export_that_breaks_off_leaves_outside_what_was_there(
    office: Office, database: str, external_database: str
) -> None:
    """The database refuses the last step."""
    office.engine.orchestrator()
    office.engine.worker()
    asset = await publish(office)
    with_table(database, asset.asset_id, 1)
    await put_outside(office, asset.asset_id, 2)
    before = outside(external_database, ASSETS), outside(external_database, ITEMS)
    with_table(database, asset.asset_id, 2)
    with psycopg.connect(external_database, autocommit=True) as admin:
        # at the last step: the entry is refused when all else is done
        admin.execute("ALTER TABLE external.assets ADD CONSTRAINT broken CHECK (revision < 3) NOT VALID")
        with pytest.raises(psycopg.errors.CheckViolation):
            await put_outside(office, asset.asset_id, 3)
        admin.execute("ALTER TABLE external.assets DROP CONSTRAINT broken")
    assert (outside(external_database, ASSETS), outside(external_database, ITEMS)) == before
    assert (await put_outside(office, asset.asset_id, 3))["rows"] == 2000
    assert outside(external_database, TABLES) == [{"tablename": "Rivers_r2"}]


WAITING = """
    SELECT pid FROM pg_stat_activity
    WHERE wait_event_type = 'Lock' AND query LIKE 'INSERT INTO external.assets%' AND datname = current_database()
"""


@asynccontextmanager
async def worker_process(office: Office, external_database: str) -> AsyncIterator[asyncio.subprocess.Process]:
    environ = {
        "PATH": os.environ["PATH"],
        "GEOMILL_DATABASE_URL": office.engine.url,
        "GEOMILL_EXTERNAL_DATABASE_URL": external_database,
        "GEOMILL_DATA": office.storage.recipe.data or "",
    }
    process = await asyncio.create_subprocess_exec(GEOMILL, "worker", env=environ)
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


@pytest.mark.slow
async def test_a_worker_that_is_killed_in_an_export_leaves_nothing_outside_and_another_completes_it(
    office: Office, database: str, external_database: str
) -> None:
    office.engine.orchestrator()
    publisher = office.engine.worker()
    asset = await publish(office)
    await office.engine.crash(publisher)
    with_table(database, asset.asset_id, 1)
    with psycopg.connect(external_database) as holder:
        holder.execute("LOCK TABLE external.assets IN SHARE MODE")  # the entry waits when the table is copied
        async with worker_process(office, external_database) as process:
            outcome = await office.decide(review.approve, asset.asset_id, ClearanceState.PUBLIC, BOB, None)
            async with asyncio.timeout(120):
                while not outside(external_database, WAITING):  # noqa: ASYNC110  another process does the work
                    await asyncio.sleep(0.02)
            process.kill()
            await process.wait()
        assert outside(external_database, ASSETS) == outside(external_database, ITEMS) == []
    office.engine.worker()
    job = await office.ended(outcome.export_job_id or "")
    assert job.status is JobStatus.COMPLETED
    assert [row["revision"] for row in outside(external_database, ASSETS)] == [2]
    assert len(outside(external_database, ITEMS)) == 1
    assert outside(external_database, 'SELECT count(*) AS n FROM geo."Rivers_r1"') == [{"n": 1000}]


async def test_all_tables_of_a_split_layer_go_outside_and_come_back(
    office: Office, database: str, external_database: str
) -> None:
    office.engine.orchestrator()
    office.engine.worker()
    asset = await publish(office)
    with_table(database, asset.asset_id, 1)
    with psycopg.connect(database, autocommit=True) as conn:
        conn.execute('CREATE TABLE geo."Rivers_r1_points" AS SELECT * FROM geo."Rivers_r1" LIMIT 5')
        tables = '{"tables": [{"table_name": "Rivers_r1"}, {"table_name": "Rivers_r1_points"}]}'
        conn.execute(
            "UPDATE app.geospatial_assets SET revision = 3, served_revision = 3, outputs = outputs || %s", [tables]
        )
    await office.catalogued()
    (item,) = await office.rows("SELECT content FROM pgstac.items")
    assert item["content"]["assets"]["features_points"]["href"] == f"/vector/collections/{asset.asset_id}.points/items"
    external = office.engine.external
    assert external is not None
    assert (await put_outside(office, asset.asset_id, 3))["rows"] == 1005
    found = {row["tablename"] for row in outside(external_database, TABLES)}
    assert found == {"Rivers_r1", "Rivers_r1_points"}
    with_table(database, asset.asset_id, 2)
    assert await external.withdraw(order_of(asset.asset_id, 3))
    assert outside(external_database, TABLES) == []


async def test_what_has_no_outputs_cannot_be_exported(office: Office) -> None:
    with pytest.raises(NotFoundError, match="no outputs"):
        await put_outside(office, "nobody", 1)


async def test_an_item_that_cannot_be_stored_is_named_by_the_export(office: Office) -> None:
    office.engine.orchestrator()
    office.engine.worker()
    wrong = {**an_item(), "geometry": None}
    asset = await office.published(ADA, platform_refs=refs("wrong"), processing_options={"item": wrong})
    with pytest.raises(AssetState, match=r"revision 1 of .* cannot be exported: the item .* has no geometry"):
        await put_outside(office, asset.asset_id, 1)
