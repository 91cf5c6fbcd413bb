"""Every role notices and names objects that are missing in a database or were changed by hand."""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from uuid import uuid4

import psycopg
import pytest

from geomill.catalogue import bulk
from geomill.embedded import binaries
from geomill.errors import DestructiveMigration
from geomill.store import pgstac, schema_objects
from geomill.store.connection import connect
from geomill.store.migrate import migrate, plan, status
from geomill.store.pool import open_pool
from geomill.store.presence import lacking
from tests.integration.catalogue.conftest import an_item
from tests.integration.serve.stac.conftest import put_asset

FUNCTION = "CREATE OR REPLACE FUNCTION app.follow_job() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END'"
SEARCH = """
    CREATE OR REPLACE FUNCTION pgstac.search_limit(_search jsonb, _default int DEFAULT 10) RETURNS int
        LANGUAGE sql IMMUTABLE AS 'SELECT 1'
"""
MENDED = {
    "index idx_dag_jobs_owner on dagapp.dag_jobs": "DROP INDEX dagapp.idx_dag_jobs_owner",
    "trigger geospatial_assets_follow on app.geospatial_assets": (
        "DROP TRIGGER geospatial_assets_follow ON app.geospatial_assets"
    ),
    "trigger dag_jobs_follow on dagapp.dag_jobs": "ALTER TABLE dagapp.dag_jobs DISABLE TRIGGER dag_jobs_follow",
    "function app.follow_job()": FUNCTION,
    "function catalogue.guarded(text, text)": "DROP FUNCTION catalogue.guarded CASCADE",
    "table app.asset_audit": "DROP TABLE app.asset_audit",
    "column last_used_at of app.api_keys": "ALTER TABLE app.api_keys DROP COLUMN last_used_at",
    "constraint dag_callbacks_job_id_fkey of dagapp.dag_callbacks": (
        "ALTER TABLE dagapp.dag_callbacks DROP CONSTRAINT dag_callbacks_job_id_fkey"
    ),
    "index idx_dag_queue_message on dagapp.dag_queue": (
        "UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'dagapp.idx_dag_queue_message'::regclass"
    ),
    "trigger collections_trigger on pgstac.collections": "DROP TRIGGER collections_trigger ON pgstac.collections",
    "trigger items_after_insert_trigger on pgstac.items": (
        "ALTER TABLE pgstac.items DISABLE TRIGGER items_after_insert_trigger"
    ),
    "index geometry_idx on pgstac.items": "DROP INDEX pgstac.geometry_idx",
    "index geomill_public on pgstac.items": "DROP INDEX pgstac.geomill_public",
    "function pgstac.search_limit(jsonb, int4)": SEARCH,
    "function pgstac.get_token_filter": "DROP FUNCTION pgstac.get_token_filter CASCADE",
}
REFUSED = {
    "constraint dag_jobs_pkey of dagapp.dag_jobs": "ALTER TABLE dagapp.dag_jobs DROP CONSTRAINT dag_jobs_pkey CASCADE",
    "table pgstac.collections": "DROP TABLE pgstac.collections CASCADE",
    "table pgstac.migrations": "DROP TABLE pgstac.migrations",
    "constraint items_collections_fk of pgstac.items": "ALTER TABLE pgstac.items DROP CONSTRAINT items_collections_fk",
}


def run(url: str, *statements: str) -> None:
    with psycopg.connect(url, autocommit=True) as conn:
        for statement in statements:
            conn.execute(statement)


async def missing_objects(url: str) -> list[str]:
    async with await connect(url) as conn:
        return await lacking(conn)


def write(target: Path, document: dict[str, Any]) -> None:
    target.write_text(json.dumps(document, indent=0) + "\n")
    schema_objects.shipped_pgstac.cache_clear()


async def test_the_list_of_pgstac_is_that_of_the_release(database: str) -> None:
    async with await connect(database) as conn:
        objects = await schema_objects.live(conn, ("pgstac",))
    document = {"version": pgstac.wanted(), "objects": dict(sorted(objects.items()))}
    if target := os.environ.get("TEST_WRITE_PGSTAC"):
        write(Path(target), document)
    assert schema_objects.shipped_pgstac() == (document["version"], document["objects"]), "run script/pgstac"


async def test_a_database_in_use_has_lost_nothing(database: str) -> None:
    async with open_pool(database, size=1) as pool, pool.connection() as conn:
        for number in range(3):
            await put_asset(conn, f"a{number}", "ddh", "public", f"c{number}", an_item(10.0 * number))
    run(
        database,
        "ALTER TABLE dagapp.dag_jobs ADD COLUMN of_a_newer_release integer",
        "CREATE INDEX of_the_operator ON dagapp.dag_jobs (created_at, status)",
        "CREATE TABLE app.of_the_operator (id integer)",
    )
    assert await missing_objects(database) == []


@pytest.mark.parametrize("name", MENDED)
async def test_what_can_be_put_back_is_noticed_and_put_back(database: str, name: str) -> None:
    run(database, MENDED[name])
    assert any(f"the {name}" in text for text in await missing_objects(database))
    async with open_pool(database, size=1) as pool, pool.connection() as conn:
        assert not (await bulk.check(conn)).sound
    async with await connect(database) as conn:
        assert not (await status(conn)).up_to_date
        await migrate(conn)
        assert (await plan(conn)).changes == ()
    assert await missing_objects(database) == []


@pytest.mark.parametrize("name", REFUSED)
@pytest.mark.slow
async def test_what_cannot_be_is_noticed_and_said(database: str, name: str) -> None:
    run(database, REFUSED[name])
    assert any(f"the {name}" in text for text in await missing_objects(database))
    async with await connect(database) as conn:
        assert not (await status(conn)).up_to_date
        with pytest.raises(DestructiveMigration, match="nothing was changed") as refusal:
            await migrate(conn)
    if "pgstac" in name:
        assert refusal.value.statements[0] == "DROP SCHEMA pgstac CASCADE"
        run(database, refusal.value.statements[0])
        async with await connect(database) as conn:
            await migrate(conn)
            assert (await plan(conn)).changes == ()
        assert await missing_objects(database) == []


async def test_what_a_dump_loses_is_named_and_nothing_else_is_different(
    server: str, database: str, tmp_path: Path
) -> None:
    """A part of pgstac may not come back by itself; everything of ours reads as before."""
    programs, dump = binaries.find().folder, tmp_path / "dump"
    with psycopg.connect(server) as conn:
        if conn.info.server_version // 10_000 > binaries.find().major:
            pytest.skip("pg_dump refuses a server that is newer than itself")
    name = f"geomill_test_{uuid4().hex[:12]}"
    restored = urlsplit(server)._replace(path=f"/{name}").geturl()
    run(server, f"CREATE DATABASE {name}")
    try:
        assert await ended(programs / "pg_dump", "-Fc", "-f", dump, database) == 0
        errors = await ended(programs / "pg_restore", "-d", restored, dump)
        losses = await missing_objects(restored)
        assert bool(losses) == bool(errors)
        assert all(" pgstac." in text for text in losses)
        async with await connect(restored) as conn:
            assert [change.summary for change in (await plan(conn)).changes if "pgstac" not in change.summary] == []
    finally:
        run(server, f"DROP DATABASE {name} WITH (FORCE)")


async def ended(*command: object) -> int:
    process = await asyncio.create_subprocess_exec(*map(str, command), stderr=asyncio.subprocess.DEVNULL)
    return await process.wait()
