"""Finds objects that the database has lost, or that somebody has changed, since the last migration.

Each migration records every table, column, constraint, index, trigger and function of geomill's schemas and of pgstac.
Any role can compare the current objects with that record, with two queries. Additional objects are no loss: they may be
the operator's, or of a newer release.

pgstac is also compared with a list that comes with this release, because a database may have lost a part of it before
there was a record.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any

from psycopg import AsyncConnection
from psycopg.rows import tuple_row

from geomill.sql import queries

SCHEMAS = ("dagapp", "app", "catalogue", "external", "pgstac")

RELEASE = "release of pgstac"
"""The key of the record's line with pgstac's release."""

Objects = Mapping[str, str]
"""Definitions by name, such as `trigger follow_job on dagapp.dag_jobs`."""


async def live(conn: AsyncConnection[Any], schemas: tuple[str, ...] = SCHEMAS) -> dict[str, str]:
    return await _objects(conn, queries("schema_objects").live, {"schemas": list(schemas)})


async def record(conn: AsyncConnection[Any]) -> None:
    """Record the current objects, in the transaction at the end of a migration."""
    now = {**await live(conn), RELEASE: await _pgstac_release(conn) or ""}
    if await _objects(conn, queries("schema_objects").recorded) != now:
        await conn.execute(queries("schema_objects").forget)
        parameters = {"objects": list(now), "definitions": list(now.values())}
        await conn.execute(queries("schema_objects").record, parameters)


async def expected(conn: AsyncConnection[Any]) -> dict[str, str]:
    """Return the objects that should exist. Only objects of pgstac are known if no migration has recorded any yet."""
    (has_record,), *_ = await _rows(conn, queries("schema_objects").there)
    objects = await _objects(conn, queries("schema_objects").recorded) if has_record else {}
    recorded, release = objects.pop(RELEASE, ""), await _pgstac_release(conn)
    if release is not None and release != recorded:  # somebody has upgraded pgstac since
        objects = {name: definition for name, definition in objects.items() if not of_pgstac(name)}
    shipped, shipped_objects = shipped_pgstac()
    if release == shipped:
        # Columns and constraints of an upgraded pgstac may be written differently from those of a new one.
        comparable = (name for name in shipped_objects if not name.startswith(("column ", "constraint ")))
        objects |= {name: shipped_objects[name] for name in comparable}
    return objects


async def losses(conn: AsyncConnection[Any]) -> list[str]:
    """Return a sentence for each missing or changed object."""
    current = await live(conn)
    return [sentence(name, current) for name in lost(await expected(conn), current)]


def of_pgstac(name: str) -> bool:
    return " pgstac." in name


def lost(expected: Objects, current: Objects) -> list[str]:
    """Return the names of missing or changed objects, without those that belong to a missing table."""
    names = [name for name, definition in expected.items() if current.get(name) != definition]
    tables = {name.partition(" ")[2] for name in names if name.startswith(("table ", "view ")) and name not in current}
    return sorted(name for name in names if name.rpartition(" ")[2] not in tables or name.startswith(("table", "view")))


def sentence(name: str, current: Objects) -> str:
    return f"the {name} {'is not as the migration left it' if name in current else 'is missing'}"


@cache
def shipped_pgstac() -> tuple[str, Objects]:
    """Return the release of pgstac that comes with geomill, and its objects. `script/pgstac` writes the list."""
    document = json.loads(files("geomill.sql").joinpath("pgstac.json").read_text(encoding="utf-8"))
    return str(document["version"]), document["objects"]


async def _pgstac_release(conn: AsyncConnection[Any]) -> str | None:
    """Like `pgstac.installed`, without importing the models."""
    (exists,), *_ = await _rows(conn, queries("migration").pgstac_there)
    versions = await _rows(conn, queries("migration").pgstac_version) if exists else []
    return str(versions[0][0]) if versions else None


async def _objects(
    conn: AsyncConnection[Any], statement: str, parameters: dict[str, Any] | None = None
) -> dict[str, str]:
    return {str(name): str(definition) for name, definition in await _rows(conn, statement, parameters)}


async def _rows(
    conn: AsyncConnection[Any], statement: str, parameters: dict[str, Any] | None = None
) -> list[tuple[Any, ...]]:
    async with conn.cursor(row_factory=tuple_row) as cursor:
        await cursor.execute(statement.encode(), parameters)
        return await cursor.fetchall()
