"""pgstac comes with the migration, also to databases of one server that are migrated at once."""

from __future__ import annotations

import asyncio
from urllib.parse import urlsplit
from uuid import uuid4

import psycopg
import pytest

from geomill.catalog.databases import create_database, external_status, migrate_external
from geomill.store import pgstac
from geomill.store.connection import connect
from geomill.store.migrate import migrate, plan, status


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
        assert [await create_database(server, name) for name in names] == [True] * 3
        assert not await create_database(server, names[0])
        with psycopg.connect(server, autocommit=True) as admin:
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
        assert (await plan(conn)).steps[0].summary == "bring pgstac to 0.9.9"


@pytest.mark.parametrize("name", ["btree_gist", "unaccent"])
async def test_what_pgstac_needs_is_created(empty_database: str, name: str) -> None:
    async with await connect(empty_database) as conn:
        row = await (await conn.execute("SELECT 1 FROM pg_extension WHERE extname = %s", [name])).fetchone()
        assert row is not None
