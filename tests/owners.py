"""Databases whose owner can do nothing else, on the tests' server."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from urllib.parse import quote, urlsplit
from uuid import uuid4

import psycopg

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
