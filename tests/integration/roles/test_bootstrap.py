"""The script of `geomill db bootstrap`, run with psql by an administrator who is no superuser."""

from __future__ import annotations

import asyncio
import subprocess
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit
from uuid import uuid4

import psycopg
import pytest

from geomill.catalogue.databases import migrate_external
from geomill.cli.db import bootstrap_script
from geomill.domain.access.database_role import DatabaseRole
from geomill.embedded import find
from geomill.store.administration import PGSTAC_ROLES
from geomill.store.connection import connect
from geomill.store.migrate import migrate
from tests.owners import PASSWORD, login


@pytest.fixture
def administrator(server: str) -> Iterator[str]:
    """May make roles and databases, and no extension that is not trusted."""
    name = f"admin_{uuid4().hex[:12]}"
    with psycopg.connect(server, autocommit=True) as admin:
        admin.execute(f"CREATE ROLE {name} LOGIN CREATEROLE CREATEDB PASSWORD '{PASSWORD}'")
        if admin.info.server_version >= 160000:  # other tests have made these roles: be as if it had made them itself
            query = "SELECT rolname FROM pg_roles WHERE rolname = ANY(%s)"
            for (role,) in admin.execute(query, ([*PGSTAC_ROLES, *DatabaseRole],)).fetchall():
                admin.execute(f"GRANT {role} TO {name} WITH ADMIN OPTION, INHERIT FALSE, SET FALSE")
        try:
            yield name
        finally:
            admin.execute(f"DROP OWNED BY {name}")
            admin.execute(f"DROP ROLE {name}")


@pytest.fixture
def databases(server: str, administrator: str) -> Iterator[tuple[str, str]]:
    """Two databases in which the server's administrator has made postgis."""
    names = (f"managed_{uuid4().hex[:12]}", f"managed_{uuid4().hex[:12]}")
    with psycopg.connect(server, autocommit=True) as admin:
        for name in names:
            admin.execute(f"CREATE DATABASE {name} OWNER {administrator}")
            with psycopg.connect(login_as_server(server, name), autocommit=True) as conn:
                conn.execute("CREATE EXTENSION postgis")
        try:
            yield names
        finally:
            for name in names:
                admin.execute(f"DROP DATABASE {name} WITH (FORCE)")


def login_as_server(server: str, database: str) -> str:
    return urlsplit(server)._replace(path=f"/{database}").geturl()


async def test_a_managed_server(server: str, administrator: str, databases: tuple[str, str], tmp_path: Path) -> None:
    script = tmp_path / "bootstrap.sql"
    script.write_text(bootstrap_script(*databases, DatabaseRole.OWNER))
    psql = str(find().folder / "psql")
    for _ in range(2):
        done = await asyncio.to_thread(
            subprocess.run,
            [psql, "-X", "-q", "-f", str(script), login(server, administrator, "postgres")],
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        assert "ERROR" not in done.stderr
    with psycopg.connect(server, autocommit=True) as admin:
        for role in DatabaseRole:
            admin.execute(f"ALTER ROLE {role} PASSWORD '{PASSWORD}'")
    async with await connect(login(server, DatabaseRole.OWNER, databases[0])) as conn:
        await migrate(conn)
    await migrate_external(login(server, DatabaseRole.OWNER, databases[1]))
    with psycopg.connect(login(server, DatabaseRole.ENGINE, databases[0])) as engine:
        assert engine.execute("SELECT count(*) FROM dagapp.dag_jobs").fetchone() == (0,)
    with psycopg.connect(login(server, DatabaseRole.EXTERNAL, databases[1])) as external:
        assert external.execute("SELECT count(*) FROM external.assets").fetchone() == (0,)
