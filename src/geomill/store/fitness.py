"""Checks that a database can run geomill: its PostgreSQL is recent enough, PostGIS and some modules are available."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from psycopg import AsyncConnection
from psycopg.rows import dict_row

from geomill.errors import DatabaseUnfit
from geomill.sql import queries

OLDEST_SERVER = 15
POSTGIS = "postgis"
CONTRIB = ("pg_trgm", "btree_gist", "unaccent")
"""Modules that come with PostgreSQL: one to search for parts of words, and those that pgstac needs."""
EXTENSIONS = (POSTGIS, *CONTRIB)


@dataclass(frozen=True, slots=True)
class Fitness:
    server_version: str
    postgis_available: str | None
    postgis_installed: str | None
    missing: tuple[str, ...] = ()
    """Extensions that are available on the server and not yet in this database."""


async def check_fitness(conn: AsyncConnection[Any]) -> Fitness:
    """Return the versions of the server and PostGIS. Raises `DatabaseUnfit` if geomill cannot run on it."""
    server = conn.info.server_version
    require_server(server)
    async with conn.transaction(), conn.cursor(row_factory=dict_row) as cursor:
        await cursor.execute(queries("migration").extensions, {"names": list(EXTENSIONS)})
        extensions = {row["name"]: row for row in await cursor.fetchall()}
    require_postgis(extensions[POSTGIS]["available"] if POSTGIS in extensions else None, major=server // 10000)
    for name in CONTRIB:
        require_contrib(name, name in extensions, major=server // 10000)
    missing = tuple(name for name in EXTENSIONS if extensions[name]["installed"] is None)
    return Fitness(version_text(server), extensions[POSTGIS]["available"], extensions[POSTGIS]["installed"], missing)


def version_text(number: int) -> str:
    """150014 is 15.14."""
    return f"{number // 10000}.{number % 10000}"


def require_server(number: int) -> None:
    if number // 10000 < OLDEST_SERVER:
        raise DatabaseUnfit(
            f"the server is PostgreSQL {version_text(number)}, geomill needs {OLDEST_SERVER} or later",
            remedy=f"upgrade it (pg_upgrade), or point GEOMILL_DATABASE_URL at PostgreSQL {OLDEST_SERVER} or later",
        )


def require_postgis(available: str | None, *, major: int) -> None:
    if available is None:
        raise DatabaseUnfit(
            f"PostGIS is not available on the server (PostgreSQL {major})",
            remedy=f"install it there: apt install postgresql-{major}-postgis-3, or dnf install postgis",
        )


def require_contrib(name: str, available: bool, *, major: int) -> None:
    if not available:
        raise DatabaseUnfit(
            f"the extension {name} is not available on the server (PostgreSQL {major})",
            remedy="install PostgreSQL's contrib modules there: apt install postgresql-contrib",
        )
