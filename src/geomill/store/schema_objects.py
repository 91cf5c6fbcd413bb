"""What the database has lost since the last migration, or what somebody has changed in it.

Each migration records every table, column, constraint, index, trigger and function of our schemas and of pgstac. What
is there now is compared with that, by any role, at the cost of two queries. More than was recorded is no loss: it may
be the operator's, or of a newer release.

pgstac is also compared with a list that comes with this release: a database may have lost a part of it before there
was a record.
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
"""A line of the record that is no object."""

Objects = Mapping[str, str]
"""Names, such as `trigger follow_job on dagapp.dag_jobs`, and what is known of each."""


async def live(conn: AsyncConnection[Any], schemas: tuple[str, ...] = SCHEMAS) -> dict[str, str]:
    return await _objects(conn, queries("schema_objects").live, {"schemas": list(schemas)})


async def record(conn: AsyncConnection[Any]) -> None:
    """At the end of a migration, in its transaction."""
    now = {**await live(conn), RELEASE: await _pgstac_release(conn) or ""}
    if await _objects(conn, queries("schema_objects").recorded) != now:
        await conn.execute(queries("schema_objects").forget)
        parameters = {"objects": list(now), "definitions": list(now.values())}
        await conn.execute(queries("schema_objects").record, parameters)


async def expected(conn: AsyncConnection[Any]) -> dict[str, str]:
    """What should be there. Nothing of ours where no migration has recorded anything yet."""
    (has_record,), *_ = await _rows(conn, queries("schema_objects").there)
    found = await _objects(conn, queries("schema_objects").recorded) if has_record else {}
    recorded, release = found.pop(RELEASE, ""), await _pgstac_release(conn)
    if release is not None and release != recorded:  # somebody has upgraded it meanwhile
        found = {name: definition for name, definition in found.items() if not of_pgstac(name)}
    shipped, objects = shipped_pgstac()
    if release == shipped:
        # An upgraded pgstac may have a column or a constraint in other words than one that was installed.
        found |= {name: text for name, text in objects.items() if not name.startswith(("column ", "constraint "))}
    return found


async def losses(conn: AsyncConnection[Any]) -> list[str]:
    """Sentences that name what is missing or was changed; nothing where all is well."""
    there = await live(conn)
    return [sentence(name, there) for name in lost(await expected(conn), there)]


def of_pgstac(name: str) -> bool:
    return " pgstac." in name


def lost(expected: Objects, there: Objects) -> list[str]:
    """Names of what is missing or different; not of what belongs to a table that is missing itself."""
    names = [name for name, definition in expected.items() if there.get(name) != definition]
    tables = {name.partition(" ")[2] for name in names if name.startswith(("table ", "view ")) and name not in there}
    return sorted(name for name in names if name.rpartition(" ")[2] not in tables or name.startswith(("table", "view")))


def sentence(name: str, there: Objects) -> str:
    return f"the {name} {'is not as the migration left it' if name in there else 'is missing'}"


@cache
def shipped_pgstac() -> tuple[str, Objects]:
    """The release of pgstac that the list is of, and what it consists of. `script/pgstac` writes the list."""
    document = json.loads(files("geomill.sql").joinpath("pgstac.json").read_text(encoding="utf-8"))
    return str(document["version"]), document["objects"]


async def _pgstac_release(conn: AsyncConnection[Any]) -> str | None:
    """As `pgstac.installed`, which needs the models."""
    (there,), *_ = await _rows(conn, queries("migration").pgstac_there)
    versions = await _rows(conn, queries("migration").pgstac_version) if there else []
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
