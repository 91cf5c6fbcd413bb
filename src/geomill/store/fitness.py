"""Whether a database can carry geomill at all: PostgreSQL is young enough, PostGIS and a few modules are at hand."""

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
"""Modules that come with PostgreSQL: look-up of parts of words, and what pgstac needs."""
EXTENSIONS = (POSTGIS, *CONTRIB)


@dataclass(frozen=True, slots=True)
class Fitness:
    server_version: str
    postgis_available: str | None
    postgis_installed: str | None
    missing: tuple[str, ...] = ()
    """Extensions that are at hand, and not in this database yet."""


async def check_fitness(conn: AsyncConnection[Any]) -> Fitness:
    """What the server is, or `DatabaseUnfit`."""
    server = conn.info.server_version
    require_server(server)
    async with conn.transaction(), conn.cursor(row_factory=dict_row) as cursor:
        await cursor.execute(queries("migration").extensions, {"names": list(EXTENSIONS)})
        found = {row["name"]: row for row in await cursor.fetchall()}
    require_postgis(found[POSTGIS]["available"] if POSTGIS in found else None, major=server // 10000)
    for name in CONTRIB:
        require_contrib(name, name in found, major=server // 10000)
    missing = tuple(name for name in EXTENSIONS if found[name]["installed"] is None)
    return Fitness(version_text(server), found[POSTGIS]["available"], found[POSTGIS]["installed"], missing)


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
