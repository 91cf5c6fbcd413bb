"""pgstac comes with the migration, also to databases of one server that are migrated at once."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from importlib.resources import files
from pathlib import Path
from urllib.parse import urlsplit
from uuid import uuid4

import psycopg
import pytest

from geomill.catalogue.databases import external_status, migrate_external
from geomill.catalogue.following import CatalogueFollower
from geomill.sql import schema_sql
from geomill.store import pgstac
from geomill.store.connection import connect
from geomill.store.migrate import migrate, plan, status
from geomill.store.pool import Connection, open_pool
from tests.integration.catalogue.conftest import an_item
from tests.integration.serve.stac.conftest import put_asset

GEOMILL = str(Path(sys.executable).with_name("geomill"))
OLD = "0.9.10"


async def migrated(url: str) -> list[str]:
    async with await connect(url) as conn:
        report = await migrate(conn)
        # the session is as it was
        row = await (
            await conn.execute("SELECT current_user = session_user, current_setting('search_path')")
        ).fetchone()
        assert row == (True, '"$user", public')
        assert (await plan(conn)).changes == ()
        assert (await status(conn)).pgstac == pgstac.wanted()
        return [change.summary for change in report.done]


async def test_from_nothing_in_several_databases_of_a_server_at_once(server: str) -> None:
    names = [f"geomill_test_{uuid4().hex[:12]}" for _ in range(3)]
    urls = [urlsplit(server)._replace(path=f"/{name}").geturl() for name in names]
    try:
        with psycopg.connect(server, autocommit=True) as admin:
            for name in names:
                admin.execute(f"CREATE DATABASE {name}")
            made = admin.execute("SELECT count(*) FROM pg_roles WHERE rolname LIKE 'pgstac%'").fetchone()
        assert made is not None
        first, second, outside = await asyncio.gather(migrated(urls[0]), migrated(urls[1]), migrate_external(urls[2]))
        assert f"install pgstac {pgstac.wanted()}" in first
        assert f"install pgstac {pgstac.wanted()}" in second
        assert "create table external.assets" in [change.summary for change in outside.done]
        assert (await external_status(urls[2])).up_to_date
    finally:
        with psycopg.connect(server, autocommit=True) as admin:
            for name in names:
                admin.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")


async def test_an_older_pgstac_is_seen_and_a_newer_one_tolerated(database: str) -> None:
    async with await connect(database) as conn:
        await conn.execute(
            "INSERT INTO pgstac.migrations (version, datetime) VALUES ('99.0.0', now() + interval '1 day')"
        )
        assert (await plan(conn)).changes == ()
        await conn.execute("UPDATE pgstac.migrations SET version = '0.9.8' WHERE version = '99.0.0'")
        assert (await plan(conn)).permitted[0].summary == "bring pgstac to 0.9.9"


@pytest.mark.parametrize("name", ["btree_gist", "unaccent"])
async def test_what_pgstac_needs_is_created(empty_database: str, name: str) -> None:
    async with await connect(empty_database) as conn:
        row = await (await conn.execute("SELECT 1 FROM pg_extension WHERE extname = %s", [name])).fetchone()
        assert row is not None


async def test_a_database_of_an_older_release_is_brought_up_with_what_is_in_it(server: str, tmp_path: Path) -> None:
    """By the command. What could not be written under the older release is caught up with."""
    name = f"geomill_test_{uuid4().hex[:12]}"
    url = urlsplit(server)._replace(path=f"/{name}").geturl()
    with psycopg.connect(server, autocommit=True) as admin:
        admin.execute(f"CREATE DATABASE {name}")
    try:
        await fill_older_pgstac(url)
        environ = {"PATH": os.environ["PATH"], "GEOMILL_DATABASE_URL": url, "GEOMILL_DATA": str(tmp_path)}
        migrating = await asyncio.create_subprocess_exec(GEOMILL, "db", "migrate", env=environ)
        assert await migrating.wait() == 0
        async with open_pool(url, size=2) as pool, pool.connection() as conn:
            assert await pgstac.installed(conn) == pgstac.wanted()
            assert await shown(conn) == {"by-hand": [2, 2, 3, 3]}
            assert (await plan(conn)).changes == ()
            await conn.execute("UPDATE catalogue.pending SET due_at = now()")
            assert (await CatalogueFollower(pool).run_once()).written == ["one"]
            assert await shown(conn) == {"one": [0, 0, 1, 1], "by-hand": [2, 2, 3, 3]}
            await put_asset(conn, "two", "ddh", "public", "ours", an_item(50, 10))
            assert set(await shown(conn)) == {"one", "two", "by-hand"}
    finally:
        with psycopg.connect(server, autocommit=True) as admin:
            admin.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")


async def fill_older_pgstac(url: str) -> None:
    script = files("pypgstac").joinpath("migrations", f"pgstac.{OLD}.sql").read_text()
    async with open_pool(url, size=1) as pool, pool.connection() as conn:
        for extension in ("postgis", "btree_gist", "unaccent"):
            await conn.execute(f"CREATE EXTENSION IF NOT EXISTS {extension}")  # type: ignore[arg-type]
        await conn.execute(f"{script}\nRESET ROLE; RESET search_path;".encode())
        assert await pgstac.installed(conn) == OLD
        await conn.execute(schema_sql().encode())
        await put_asset(conn, "one", "ddh", "public", "ours", an_item(0, 0))
        collection = {"id": "theirs", "type": "Collection", "stac_version": "1.1.0", "description": "x", "links": []}
        item = an_item(2, 2) | {"id": "by-hand", "collection": "theirs"}
        async with conn.transaction():
            await conn.execute("SET LOCAL search_path = pgstac, public")
            await conn.execute("SELECT create_collection(%s)", [json.dumps(collection)])
            await conn.execute("SELECT create_item(%s)", [json.dumps(item)])


async def shown(conn: Connection) -> dict[str, list[int]]:
    row = await (
        await conn.execute("SELECT catalogue.search_items('{}', true, NULL, NULL, NULL, false) AS found")
    ).fetchone()
    assert row is not None
    assert row["found"]["numberMatched"] == len(row["found"]["features"])
    return {item["id"]: item["bbox"] for item in row["found"]["features"]}
