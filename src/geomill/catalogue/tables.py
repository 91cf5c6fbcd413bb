"""Copies a table of `geo` from one database to another, with its keys and indexes, inside the target's transaction."""

from __future__ import annotations

from collections.abc import Sequence

from psycopg.sql import SQL, Composed, Identifier

from geomill.errors import NotFoundError
from geomill.sql import queries
from geomill.store.pool import Connection

SCHEMA = "geo"


def _table(name: str) -> Identifier:
    return Identifier(SCHEMA, name)


async def copy_table(source: Connection, target: Connection, name: str) -> int:
    """Copy a table in the caller's transaction, in place of a table of that name. Returns the number of rows."""
    named = {"table": f'{SCHEMA}."{name.replace(chr(34), chr(34) * 2)}"'}
    columns = await (await source.execute(queries("catalogue").columns, named)).fetchall()
    if not columns:
        raise NotFoundError(f"there is no table {SCHEMA}.{name} to export")
    names = _joined([column["name"] for column in columns])
    table = _table(name)
    await _ensure_schema(target)
    await drop_table(target, name)
    definitions = SQL(", ").join(
        SQL("{} {}{}").format(
            Identifier(column["name"]), SQL(column["type"]), SQL(" NOT NULL" if column["required"] else "")
        )
        for column in columns
    )
    await target.execute(SQL(queries("catalogue").create_table).format(table=table, columns=definitions))
    rows = await _pour(source, target, table, names)
    await _index(source, target, table, named)
    await target.execute(SQL(queries("catalogue").analyze).format(table=table))
    return rows


async def _ensure_schema(conn: Connection) -> None:
    """Look first: a role that may not create schemas may not say IF NOT EXISTS either."""
    row = await (await conn.execute(queries("catalogue").schema_there)).fetchone()
    if row is None or not row["there"]:
        await conn.execute(queries("catalogue").create_schema)


async def drop_table(conn: Connection, name: str) -> None:
    await conn.execute(SQL(queries("catalogue").drop_table).format(table=_table(name)))


async def _pour(source: Connection, target: Connection, table: Identifier, names: Composed) -> int:
    out = SQL(queries("catalogue").copy_out).format(table=table, columns=names)
    into = SQL(queries("catalogue").copy_in).format(table=table, columns=names)
    async with source.cursor() as reading, target.cursor() as writing:
        async with reading.copy(out) as rows, writing.copy(into) as copy:
            async for part in rows:
                await copy.write(part)
        return writing.rowcount


async def _index(source: Connection, target: Connection, table: Identifier, named: dict[str, str]) -> None:
    for index in await (await source.execute(queries("catalogue").indexes, named)).fetchall():
        columns = _joined(index["columns"])
        if index["is_primary"]:
            await target.execute(SQL(queries("catalogue").add_primary_key).format(table=table, columns=columns))
            continue
        await target.execute(
            SQL(queries("catalogue").create_index).format(
                unique=SQL("UNIQUE" if index["is_unique"] else ""),
                table=table,
                method=Identifier(index["method"]),
                columns=columns,
            )
        )


def _joined(names: Sequence[str]) -> Composed:
    return SQL(", ").join(map(Identifier, names))
