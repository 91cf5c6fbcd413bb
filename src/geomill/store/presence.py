"""Checks that a database has all that this release needs, also for a role that may not change it.

After a migration of this release, the database is compared with the record of that migration, which any role may do.
After a migration of another release, every object is also looked up by name: changes of a newer release do no harm.
Without a record of a migration, a role that may create schemas compares the database with the models.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from psycopg import AsyncConnection
from psycopg.rows import tuple_row

from geomill.domain.tables import EXTERNAL_TABLES, TABLES
from geomill.sql import queries
from geomill.store import fingerprint, pgstac, schema_objects
from geomill.store.describe import describe
from geomill.store.migrate import Models, plan
from geomill.store.schema_reading import read_live
from geomill.store.spec import Database
from geomill.store.steps import MigrationStep, pending_steps, steps_for


async def may_compare(conn: AsyncConnection[Any]) -> bool:
    async with conn.transaction(), conn.cursor(row_factory=tuple_row) as cursor:
        await cursor.execute(queries("roles").may_compare)
        row = await cursor.fetchone()
        return row is not None and bool(row[0])


async def lacking(conn: AsyncConnection[Any], tables: Models = TABLES) -> list[str]:
    """Return what a migration would have to do, and what was lost since the last one; empty if nothing is missing."""
    losses = await schema_objects.losses(conn)
    if tables is TABLES and await fingerprint.matches(conn):
        return losses
    another = tables is TABLES and await fingerprint.of_another_release(conn)
    if not another and await may_compare(conn):
        return [change.summary for change in (await plan(conn, tables)).permitted] or losses
    numbered = [step.summary for step in await _due_steps(conn, tables)]
    pgstac_steps = [change.summary for change in pgstac.steps(await pgstac.installed(conn))]
    return [*numbered, *pgstac_steps, *_absent(describe(tables), await read_live(conn, tables))] or losses


async def _due_steps(conn: AsyncConnection[Any], tables: Models) -> tuple[MigrationStep, ...]:
    steps = steps_for(tables, outside=tables is EXTERNAL_TABLES)
    return await pending_steps(conn, steps) if (await read_live(conn, tables)).tables else ()


def _absent(model: Database, live: Database) -> Iterator[str]:
    for name, values in model.enums.items():
        if missing := [value for value in values if value not in live.enums.get(name, ())]:
            yield f"add '{missing[0]}' to the type {name}"
    for name in model.functions.keys() - live.functions.keys():
        yield f"create the function {name}"
    for name, table in model.tables.items():
        if name not in live.tables:
            yield f"create the table {name}"
            continue
        for column in table.columns.keys() - live.tables[name].columns.keys():
            yield f"add the column {name}.{column}"
        for trigger in table.triggers.keys() - live.tables[name].triggers.keys():
            yield f"create the trigger {trigger} on {name}"
        for index in table.indexes.keys() - live.tables[name].indexes.keys():
            yield f"create the index {index} on {name}"
