"""Whether a database has all that this release needs, asked by a role that may or may not change it.

Who may create schemas compares the database with the models. The others look for the fingerprint of this release, and
else for everything by name: another release may have migrated meanwhile.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from psycopg import AsyncConnection
from psycopg.rows import tuple_row

from geomill.domain.tables import TABLES
from geomill.sql import queries
from geomill.store import fingerprint, pgstac
from geomill.store.catalogue import read_live
from geomill.store.describe import describe
from geomill.store.migrate import Models, plan
from geomill.store.spec import Database


async def may_compare(conn: AsyncConnection[Any]) -> bool:
    async with conn.transaction(), conn.cursor(row_factory=tuple_row) as cursor:
        await cursor.execute(queries("roles").may_compare)
        row = await cursor.fetchone()
        return row is not None and bool(row[0])


async def lacking(conn: AsyncConnection[Any], tables: Models = TABLES) -> list[str]:
    """What a migration would have to do; nothing where all is there."""
    if await may_compare(conn):
        return [change.summary for change in (await plan(conn, tables)).steps]
    if tables is TABLES and await fingerprint.matches(conn):
        return []
    pgstac_steps = [change.summary for change in pgstac.steps(await pgstac.installed(conn))]
    return [*pgstac_steps, *_absent(describe(tables), await read_live(conn, tables))]


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
