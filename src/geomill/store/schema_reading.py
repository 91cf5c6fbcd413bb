"""From a live database to a description of its schema.

Checks, predicates, defaults and triggers are not stored as they were written: PostgreSQL parses them and writes
them anew. Rather than parse SQL, `read_models` lets the very same server write the models' schema anew too: it
creates it in scratch schemas beside the real ones, reads it back and rolls back. The alternative, a hash of the
source text in each object's comment, would not see what somebody changed by hand.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import AsyncIterator, Sequence
from typing import Any, LiteralString

from psycopg import AsyncConnection, AsyncCursor
from psycopg.rows import DictRow, dict_row

from geomill.domain.entity import Entity
from geomill.sql import queries
from geomill.store.ddl import ddl
from geomill.store.describe import function_names, view_names
from geomill.store.quoting import qualified
from geomill.store.spec import Column, Constraint, ConstraintKind, Database, Table, TableIndex, Trigger


async def read_live(conn: AsyncConnection[Any], models: Sequence[type[Entity]]) -> Database:
    return await _read(conn, models)


async def read_models(
    conn: AsyncConnection[Any], models: Sequence[type[Entity]], before: Sequence[str] = ()
) -> Database:
    """The models as this server words them; `before` is run first, and rolled back like the rest."""
    # With the pid in it, two processes that plan at once do not wait for each other.
    prefix = f"geomill_scratch_{conn.info.backend_pid}_"
    async with conn.transaction(force_rollback=True):
        await conn.execute(";\n".join([*before, *ddl(models, prefix)]).encode())
        return await _read(conn, models, prefix)


def _schemas(models: Sequence[type[Entity]]) -> list[str]:
    return list(dict.fromkeys(model.__sql_schema__ for model in models))


async def _read(conn: AsyncConnection[Any], models: Sequence[type[Entity]], prefix: str = "") -> Database:
    schemas = [prefix + schema for schema in _schemas(models)]
    async with conn.transaction(force_rollback=True), conn.cursor(row_factory=dict_row) as cursor:
        await cursor.execute(queries("live_schema").qualify_names)
        return await _Reader(cursor, schemas, function_names(models), view_names(models), prefix).database()


class _Reader:
    """Takes the prefix off everything it reads, so that a scratch schema reads like a real one."""

    def __init__(
        self, cursor: AsyncCursor[DictRow], schemas: list[str], functions: list[str], views: list[str], prefix: str
    ) -> None:
        self._cursor = cursor
        self._prefix = prefix
        self._parameters: dict[str, Any] = {"schemas": schemas, "functions": functions, "tables": []}
        self._parameters["views"] = [prefix + view for view in views]

    async def database(self) -> Database:
        schemas = [row["name"] for row in await self._rows(queries("live_schema").schemas)]
        enums = {self._name(row): tuple(row["labels"]) for row in await self._rows(queries("live_schema").enums)}
        functions = {self._name(row): row["definition"] for row in await self._rows(queries("live_schema").functions)}
        views = {self._name(row): row["definition"] for row in await self._rows(queries("live_schema").views)}
        tables = [table async for table in self._tables()]
        return Database(tuple(schemas), enums, functions, {table.name: table for table in tables}, views)

    async def _tables(self) -> AsyncIterator[Table]:
        rows = await self._rows(queries("live_schema").tables)
        self._parameters["tables"] = [row["oid"] for row in rows]
        columns = await self._by_table(queries("live_schema").columns)
        constraints = await self._by_table(queries("live_schema").constraints)
        indexes = await self._by_table(queries("live_schema").indexes)
        triggers = await self._by_table(queries("live_schema").triggers)
        for row in rows:
            oid = row["oid"]
            yield Table(
                name=self._name(row),
                columns={name: Column(**column) for name, column in columns[oid].items()},
                constraints={name: _constraint(constraint) for name, constraint in constraints[oid].items()},
                indexes={name: TableIndex(**index) for name, index in indexes[oid].items()},
                triggers={name: Trigger(**trigger) for name, trigger in triggers[oid].items()},
                storage=dict(option.split("=", 1) for option in row["storage"] or ()),
                comment=row["comment"],
            )

    async def _by_table(self, statement: LiteralString) -> dict[int, dict[str, DictRow]]:
        by_table: dict[int, dict[str, DictRow]] = defaultdict(dict)
        for row in await self._rows(statement):
            by_table[row.pop("table")][row["name"]] = row
        return by_table

    async def _rows(self, statement: LiteralString) -> list[DictRow]:
        await self._cursor.execute(statement, self._parameters)
        return [{key: self._home(value) for key, value in row.items()} for row in await self._cursor.fetchall()]

    def _home(self, value: Any) -> Any:
        return value.replace(self._prefix, "") if self._prefix and isinstance(value, str) else value

    @staticmethod
    def _name(row: DictRow) -> str:
        return qualified(row["schema"], row["name"])


def _constraint(row: DictRow) -> Constraint:
    return Constraint(row["name"], ConstraintKind(row["kind"]), row["definition"])
