"""What the last migration has brought a database to, as a comment on its schema: who finds what it needs there need not
describe the whole schema. It says nothing of what was lost since; `schema_objects` does."""

from __future__ import annotations

from functools import cache
from hashlib import sha256
from importlib.metadata import version
from importlib.resources import files
from typing import Any

from psycopg import AsyncConnection
from psycopg.rows import tuple_row
from psycopg.sql import SQL, Literal

from geomill.sql import queries, schema_sql, step_files

PREFIX = "geomill schema "


@cache
def wanted() -> str:
    """Of this release."""
    pgstac = version("pypgstac")  # as pgstac.wanted(), without the models, which take longer than the rest
    rights = files("geomill.store").joinpath("grants.py").read_text(encoding="utf-8")  # unread: it needs the models
    parts = (schema_sql(), pgstac, queries("migration").index_pgstac, rights, *step_files().values())
    return PREFIX + sha256("\n".join(parts).encode()).hexdigest()


async def matches(conn: AsyncConnection[Any]) -> bool:
    found = await _stored(conn)
    return found is not None and found[0] == wanted()


async def of_another_release(conn: AsyncConnection[Any]) -> bool:
    found = await _stored(conn)
    return found is not None and found[0] is not None and found[0].startswith(PREFIX) and found[0] != wanted()


async def store(conn: AsyncConnection[Any]) -> None:
    """In the migration's own transaction. Who may not, because the schema is another's, leaves it as it is."""
    found = await _stored(conn)
    if found is not None and found[0] != wanted() and found[1]:
        await conn.execute(SQL(queries("migration").set_fingerprint).format(fingerprint=Literal(wanted())))


async def _stored(conn: AsyncConnection[Any]) -> tuple[str | None, bool] | None:
    """The comment, and whether we may change it; None without the schema."""
    async with conn.transaction(), conn.cursor(row_factory=tuple_row) as cursor:
        await cursor.execute(queries("migration").fingerprint)
        row = await cursor.fetchone()
        return (row[0], bool(row[1])) if row else None
