"""Databases whose owner can do nothing else, on the tests' server."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from urllib.parse import quote, urlsplit
from uuid import uuid4

import psycopg

from geomill.catalogue.databases import migrate_external
from geomill.domain.access.database_role import INSIDE, OUTSIDE, DatabaseRole
from geomill.store.administration import set_up_database, set_up_server
from geomill.store.connection import connect
from geomill.store.migrate import migrate

PASSWORD = "a password for tests"


def login(url: str, role: str, database: str | None = None) -> str:
    """The same server as another role, and perhaps another database."""
    parts = urlsplit(url)
    host = parts.netloc.rpartition("@")[2]
    path = parts.path if database is None else f"/{database}"
    return parts._replace(netloc=f"{role}:{quote(PASSWORD)}@{host}", path=path).geturl()


@dataclass(frozen=True)
class Ownership:
    """A database and the role that owns it. `admin` is the administrator's way into that database."""

    role: str
    database: str
    url: str
    admin: str

    def prepare(self, *statements: str) -> None:
        with psycopg.connect(self.admin, autocommit=True) as conn:
            for statement in statements:
                conn.execute(statement)  # type: ignore[arg-type]


@contextmanager
def owned_database(server: str) -> Iterator[Ownership]:
    """An empty database, owned by a role that can do nothing else. No extension is there."""
    name = f"plain_{uuid4().hex[:12]}"
    with psycopg.connect(server, autocommit=True) as admin:
        admin.execute(f"CREATE ROLE {name} LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE PASSWORD '{PASSWORD}'")
        admin.execute(f"CREATE DATABASE {name} OWNER {name}")
        url = urlsplit(server)._replace(path=f"/{name}").geturl()
        yield Ownership(name, name, login(server, name, name), url)
        admin.execute(f"DROP DATABASE {name} WITH (FORCE)")
        for role in ("pgstac_admin", "pgstac_read", "pgstac_ingest"):
            row = admin.execute("SELECT to_regrole(%s) IS NOT NULL", (role,)).fetchone()
            if row and row[0]:
                admin.execute(f"REVOKE {role} FROM {name}")
        admin.execute(f"DROP ROLE {name}")


@dataclass(frozen=True)
class Split:
    """Two databases with a role for each kind of process. `admin` and `outside_admin` lead in as administrator."""

    server: str
    inside: str
    outside: str

    @property
    def admin(self) -> str:
        return urlsplit(self.server)._replace(path=f"/{self.inside}").geturl()

    @property
    def outside_admin(self) -> str:
        return urlsplit(self.server)._replace(path=f"/{self.outside}").geturl()

    def url(self, role: str, *, outside: bool = False) -> str:
        return login(self.server, role, self.outside if outside else self.inside)


@contextmanager
def split_roles(server: str) -> Iterator[Split]:
    """Two databases that an administrator prepares with the statements of `geomill db bootstrap` and the owner
    migrates."""
    inside, outside = (f"split_{uuid4().hex[:12]}" for _ in range(2))
    split = Split(server, inside, outside)
    with psycopg.connect(server, autocommit=True) as admin:
        for statement in set_up_server():
            admin.execute(statement)  # type: ignore[arg-type]
        for role in DatabaseRole:
            admin.execute(f"ALTER ROLE {role} PASSWORD '{PASSWORD}'")
        for database, roles, url in ((inside, INSIDE, split.admin), (outside, OUTSIDE, split.outside_admin)):
            admin.execute(f"CREATE DATABASE {database}")
            with psycopg.connect(url, autocommit=True) as conn:
                for statement in set_up_database(database, roles):
                    conn.execute(statement)  # type: ignore[arg-type]
        try:
            asyncio.run(_migrate(split))
            yield split
        finally:
            for database in (inside, outside):
                admin.execute(f"DROP DATABASE {database} WITH (FORCE)")


async def _migrate(split: Split) -> None:
    async with await connect(split.url(DatabaseRole.OWNER)) as conn:
        await migrate(conn)
    await migrate_external(split.url(DatabaseRole.OWNER, outside=True))
