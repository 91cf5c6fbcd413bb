"""The shape of a table of features: columns, keys, indexes and comments. No model has it, so the backup saves it."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any, Literal

from psycopg import AsyncConnection
from psycopg.sql import SQL, Composed, Identifier
from psycopg.sql import Literal as SqlLiteral

from geomill.backup.manifest import COLUMN_TYPE, FeatureColumn, FeatureIndex, FeaturePart
from geomill.sql import queries


@dataclass(frozen=True)
class FeatureShape:
    oid: int
    home: Literal["geo", "geo_staging"]
    name: str
    comment: str | None
    bytes: int
    columns: list[FeatureColumn] = field(default_factory=list)
    indexes: list[FeatureIndex] = field(default_factory=list)
    problem: str = ""
    """Why it cannot be in a backup."""

    @property
    def label(self) -> str:
        return f"{self.home}.{self.name}"


async def feature_shapes(conn: AsyncConnection[dict[str, Any]]) -> list[FeatureShape]:
    """Return the shapes of all tables of features, as of the transaction's snapshot."""
    rows = await (await conn.execute(queries("backup").feature_tables)).fetchall()
    return [await _shape(conn, row) for row in rows]


async def _shape(conn: AsyncConnection[dict[str, Any]], row: dict[str, Any]) -> FeatureShape:
    oid = {"oid": row["oid"]}
    columns = await (await conn.execute(queries("backup").feature_columns, oid)).fetchall()
    strange = [column for column in columns if not re.match(COLUMN_TYPE, column["type"])]
    if strange or not columns:
        reason = f"a column has the type {strange[0]['type']}" if strange else "it has no columns"
        return FeatureShape(**row, problem=reason)
    indexes = await (await conn.execute(queries("backup").feature_indexes, oid)).fetchall()
    return FeatureShape(
        **row,
        columns=[FeatureColumn(**column) for column in columns],
        indexes=[FeatureIndex(**index) for index in indexes],
    )


async def name_now(conn: AsyncConnection[dict[str, Any]], oid: int) -> SQL | None:
    """Return the table's current name, as PostgreSQL writes it; None if the table was dropped."""
    row = await (await conn.execute(queries("backup").name_now, {"oid": oid})).fetchone()
    return SQL(row["name"]) if row else None


def creation(table: FeaturePart) -> Composed:
    """Return the statement that creates the table, without indexes. Types have passed the manifest's list."""
    columns = [
        SQL("{} {}{}").format(Identifier(column.name), _type(column.type), SQL(" NOT NULL" if column.required else ""))
        for column in table.columns
    ]
    return SQL(queries("backup").create_table).format(table=place(table), columns=SQL(", ").join(columns))


def afterwards(table: FeaturePart) -> list[Composed]:
    """Return the statements for indexes and comments, to run once the rows are loaded."""
    statements = [_index(table, index) for index in table.indexes]
    if table.comment is not None:
        statements.append(
            SQL(queries("backup").comment_table).format(table=place(table), text=SqlLiteral(table.comment))
        )
    statements += [
        SQL(queries("backup").comment_column).format(
            table=place(table), column=Identifier(column.name), text=SqlLiteral(column.comment)
        )
        for column in table.columns
        if column.comment is not None
    ]
    return [*statements, SQL(queries("backup").analyze).format(table=place(table))]


def _index(table: FeaturePart, index: FeatureIndex) -> Composed:
    columns = SQL(", ").join(map(Identifier, index.columns))
    if index.primary:
        return SQL(queries("backup").add_primary_key).format(
            table=place(table), name=Identifier(index.name), columns=columns
        )
    return SQL(queries("backup").create_index).format(
        unique=SQL("UNIQUE" if index.unique else ""),
        name=Identifier(index.name),
        table=place(table),
        method=Identifier(index.method),
        columns=columns,
    )


def place(table: FeaturePart) -> Identifier:
    return Identifier(table.home, table.name)


def _type(name: str) -> SQL:
    """Return a type as SQL. `COLUMN_TYPE` allows it: no other text of a manifest comes here."""
    return SQL(name)
