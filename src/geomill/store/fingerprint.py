"""The fingerprint of the schema that the last migration created, stored as a comment on the schema.

A process that finds its own fingerprint need not compare the whole schema. Losses since then are found by
`schema_objects`.
"""

from __future__ import annotations

from functools import cache
from hashlib import sha256
from importlib.metadata import version
from importlib.resources import files
from typing import Any, NamedTuple

from psycopg import AsyncConnection
from psycopg.rows import tuple_row
from psycopg.sql import SQL, Literal

from geomill.sql import queries, schema_sql, step_files

PREFIX = "geomill schema "


@cache
def wanted() -> str:
    """Return the fingerprint of this release."""
    pgstac = version("pypgstac")  # like pgstac.wanted(), but without importing the models, which is slow
    rights = (
        files("geomill.store").joinpath("grants.py").read_text(encoding="utf-8")
    )  # as text, because importing it would import the models
    parts = (schema_sql(), pgstac, queries("migration").index_pgstac, rights, *step_files().values())
    return PREFIX + sha256("\n".join(parts).encode()).hexdigest()


async def matches(conn: AsyncConnection[Any]) -> bool:
    comment = await _stored(conn)
    return comment is not None and comment.text == wanted()


async def of_another_release(conn: AsyncConnection[Any]) -> bool:
    comment = await _stored(conn)
    return comment is not None and (comment.text or "").startswith(PREFIX) and comment.text != wanted()


async def store(conn: AsyncConnection[Any]) -> None:
    """Store the fingerprint in the migration's transaction. Does nothing if the schema belongs to another role."""
    comment = await _stored(conn)
    if comment is not None and comment.text != wanted() and comment.may_change:
        await conn.execute(SQL(queries("migration").set_fingerprint).format(fingerprint=Literal(wanted())))


class _SchemaComment(NamedTuple):
    text: str | None
    may_change: bool


async def _stored(conn: AsyncConnection[Any]) -> _SchemaComment | None:
    """Return the comment, or None if the schema does not exist."""
    async with conn.transaction(), conn.cursor(row_factory=tuple_row) as cursor:
        await cursor.execute(queries("migration").fingerprint)
        row = await cursor.fetchone()
        return _SchemaComment(row[0], bool(row[1])) if row else None
