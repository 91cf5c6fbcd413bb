"""A role that merely owns its database, as on a managed server, is enough for everything."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from geomill.embedded import Cluster
from geomill.errors import DatabaseUnfit
from geomill.store import pgstac
from geomill.store.administration import PGSTAC_ROLES, preparation
from geomill.store.connection import connect
from geomill.store.migrate import migrate, plan
from tests.conftest import FAST
from tests.owners import PASSWORD, Ownership, Split, login


async def test_migration_names_every_statement_that_an_administrator_has_to_run(ownership: Ownership) -> None:
    async with await connect(ownership.url) as conn:
        with pytest.raises(DatabaseUnfit) as caught:
            await migrate(conn)
    text = str(caught.value)
    assert "CREATE EXTENSION postgis;" in text
    assert f"GRANT pgstac_admin TO {ownership.role};" in text
    assert "let an administrator" in text


async def test_what_the_refusal_names_is_all_that_an_administrator_has_to_do(ownership: Ownership) -> None:
    async with await connect(ownership.url) as conn:
        statements = await preparation(conn)
        ownership.prepare(*statements)
        assert await preparation(conn) == []
        report = await migrate(conn)
        assert report.done
        assert (await plan(conn)).changes == ()
        assert not (await migrate(conn)).done


@pytest.fixture
def fresh_server() -> Iterator[Cluster]:
    """A server without pgstac's roles, which all databases of a server share."""
    with tempfile.TemporaryDirectory(prefix="gm-", dir="/tmp") as folder:
        Path(folder).chmod(0o755)
        with Cluster(Path(folder) / "data", settings=FAST) as cluster:
            yield cluster


async def test_an_owner_who_may_make_roles_makes_those_of_pgstac(fresh_server: Cluster) -> None:
    with psycopg.connect(fresh_server.url("postgres"), autocommit=True) as admin:
        admin.execute(f"CREATE ROLE maker LOGIN CREATEROLE PASSWORD '{PASSWORD}'")
        admin.execute("CREATE DATABASE made OWNER maker")
    with psycopg.connect(fresh_server.url("made"), autocommit=True) as admin:
        admin.execute("CREATE EXTENSION postgis")
    async with await connect(login(fresh_server.url("made"), "maker")) as conn:
        assert (await migrate(conn)).done
        assert (await plan(conn)).changes == ()
        assert await preparation(conn) == []


async def test_nothing_is_left_as_the_administrator_s(ownership: Ownership) -> None:
    async with await connect(ownership.url) as conn:
        ownership.prepare(*await preparation(conn))
        await migrate(conn)
        rows = await (
            await conn.execute(
                "SELECT DISTINCT pg_get_userbyid(relowner) FROM pg_class AS c JOIN pg_namespace AS n"
                " ON n.oid = c.relnamespace WHERE n.nspname IN ('app', 'dagapp', 'catalogue', 'pgstac')"
            )
        ).fetchall()
        assert {row[0] for row in rows} == {ownership.role, PGSTAC_ROLES[0]}


async def test_roles_of_another_installation_get_nothing(ownership: Ownership, split: Split) -> None:
    """They are on the same server, and a superuser who migrates is a member of all of them."""
    async with await connect(ownership.url) as conn:
        ownership.prepare(*await preparation(conn))
        await migrate(conn)
    async with await connect(ownership.admin) as admin:
        await admin.execute("CREATE SCHEMA IF NOT EXISTS geo")
        await admin.execute(f"CREATE TABLE geo.fields (id bigint); ALTER TABLE geo.fields OWNER TO {ownership.role}")
        await migrate(admin)
        row = await (
            await admin.execute(
                "SELECT has_table_privilege('geomill_gateway', 'app.api_keys', 'SELECT'), pg_get_userbyid(relowner)"
                " FROM pg_class WHERE oid = 'geo.fields'::regclass"
            )
        ).fetchone()
    assert row == (False, ownership.role)


async def test_an_older_pgstac_is_brought_up_by_its_owner(ownership: Ownership) -> None:
    older = pgstac._change("an older release", "pgstac.0.9.12.sql")
    assert older.script is not None
    async with await connect(ownership.url) as conn:
        ownership.prepare(*await preparation(conn))
        async with conn.transaction():
            await conn.execute(older.script.encode())
        assert await pgstac.installed(conn) == "0.9.12"
        summaries = [change.summary for change in (await migrate(conn)).done]
        assert f"bring pgstac to {pgstac.wanted()}" in summaries
        assert await pgstac.installed(conn) == pgstac.wanted()
        assert (await plan(conn)).changes == ()
