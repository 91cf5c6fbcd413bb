"""A database as of one moment, table by table, while everybody else goes on writing.

A table is locked only while it is copied: a transaction that holds a lock on all of them, as pg_dump's does, would stop
whoever publishes or deletes a layer. Unfinished tables of features are held together for the short time until they
are copied, because their jobs move them. A finished one never changes; one that is deleted before its turn is told in
the manifest.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from psycopg import AsyncConnection, errors
from psycopg.rows import dict_row
from psycopg.sql import SQL, Composable, Composed, Identifier

from geomill.backup.features import FeatureShape, feature_shapes, name_now
from geomill.backup.manifest import DatabasePart, FeaturePart, RowsPart, SequenceValue, TableRows
from geomill.backup.metering import ProgressMeter, TableShare
from geomill.backup.packing import packing
from geomill.domain.engine.instance import Instance
from geomill.domain.entity import Entity
from geomill.domain.schema_object import SchemaObject
from geomill.domain.schema_step import SchemaStep
from geomill.sql import queries
from geomill.storage.depot import Depot
from geomill.store import pgstac
from geomill.store.connection import connect
from geomill.store.describe import describe, table_name
from geomill.store.fitness import version_text
from geomill.store.spec import Column

Connection = AsyncConnection[dict[str, Any]]
ATTEMPTS = 5
NOT_SAVED = (Instance, SchemaObject, SchemaStep)
"""Processes are not revived, and what a migration has recorded is of its own server."""


@asynccontextmanager
async def snapshot(url: str) -> AsyncIterator[Connection]:
    async with await connect(url) as conn:
        conn.row_factory = dict_row
        async with conn.transaction():
            await conn.execute(queries("backup").begin_snapshot)
            await conn.execute(queries("backup").moment)
            yield conn


def saved_models(models: Sequence[type[Entity]]) -> list[type[Entity]]:
    return [model for model in models if model not in NOT_SAVED]


def is_stored(column: Column) -> bool:
    """Whether its values are rows' own, and not made by the table."""
    return "GENERATED" not in column.type or is_identity(column)


def is_identity(column: Column) -> bool:
    return "IDENTITY" in column.type


@dataclass(frozen=True)
class Dump:
    """Of one database, into one folder of the backup."""

    conn: Connection
    depot: Depot
    folder: str
    models: Sequence[type[Entity]]
    meter: ProgressMeter

    async def run(self) -> DatabasePart:
        shapes = await feature_shapes(self.conn)
        await self._announce(shapes)
        features, left_out = await self._features(shapes)
        return DatabasePart(
            server_version=version_text(self.conn.info.server_version),
            pgstac_version=await pgstac.installed(self.conn),
            taken_at=(await self._value(queries("backup").moment))["now"],
            tables=[await self._table(model) for model in saved_models(self.models)],
            features=features,
            left_out=left_out,
            sequences=await self._sequences(),
            collections=RowsPart(**await self._copied("pgstac.collections", SQL(queries("backup").collections_out))),
            items=RowsPart(**await self._copied("pgstac.items", SQL(queries("backup").items_out))),
        )

    async def _announce(self, shapes: Sequence[FeatureShape]) -> None:
        sizes = [await self._size(table_name(model)) for model in saved_models(self.models)]
        self.meter.begin(f"database {self.folder}", sum(sizes) + sum(shape.bytes for shape in shapes))

    async def _table(self, model: type[Entity]) -> TableRows:
        name = table_name(model)
        columns = [column.name for column in describe([model]).tables[name].columns.values() if is_stored(column)]
        fields = await self._copied(name, _copy_out(Identifier(model.__sql_schema__, model.__sql_table__), columns))
        return TableRows(table=name, columns=columns, **fields)

    async def _copied(self, name: str, statement: SQL | Composed, size: int | None = None) -> dict[str, Any]:
        """In a savepoint that is rolled back: so the table's lock is given back at once."""
        share = TableShare(self.meter, await self._size(name) if size is None else size)
        async with self.conn.transaction(force_rollback=True):
            with packing(self.depot, f"{self.folder}/{name}.copy.gz") as packed:
                rows = 0
                async with self.conn.cursor() as cursor, cursor.copy(statement) as copy:
                    async for row in copy:
                        packed.write(row)
                        share.advance(len(row))
                        rows += 1
        share.end()
        return {**packed.fields, "rows": rows}

    async def _features(self, shapes: Sequence[FeatureShape]) -> tuple[list[FeaturePart], list[str]]:
        tables: list[FeaturePart] = []
        left_out: list[str] = []
        unfinished = [shape for shape in shapes if shape.home == "geo_staging"]
        finished = [shape for shape in shapes if shape.home == "geo"]
        async with self.conn.transaction(force_rollback=True):
            await self._hold(unfinished)
            await self._copy_features(unfinished, tables, left_out)
        await self._copy_features(finished, tables, left_out)
        return tables, left_out

    async def _hold(self, shapes: Sequence[FeatureShape]) -> None:
        names = [place for shape in shapes if (place := await name_now(self.conn, shape.oid)) is not None]
        if names:
            tables = SQL(", ").join(names)
            await self.conn.execute(SQL(queries("backup").hold_tables).format(tables=tables))

    async def _copy_features(
        self, shapes: Sequence[FeatureShape], tables: list[FeaturePart], left_out: list[str]
    ) -> None:
        for shape in shapes:
            if shape.problem:
                left_out.append(f"{shape.label}: {shape.problem}")
            elif (table := await self._feature(shape)) is not None:
                tables.append(table)
            else:
                left_out.append(f"{shape.label}: it was deleted while the backup ran")

    async def _feature(self, shape: FeatureShape) -> FeaturePart | None:
        """None if it is gone. Its name in the backup is a number, because that of a table may be any text."""
        for _ in range(ATTEMPTS):
            place = await name_now(self.conn, shape.oid)
            if place is None:
                return None
            statement = _copy_out(place, [column.name for column in shape.columns])
            try:
                fields = await self._copied(f"{shape.home}-{shape.oid}", statement, shape.bytes)
            except errors.UndefinedTable:
                continue  # moved in between
            return FeaturePart(
                home=shape.home,
                name=shape.name,
                comment=shape.comment,
                columns=shape.columns,
                indexes=shape.indexes,
                **fields,
            )
        return None

    async def _sequences(self) -> list[SequenceValue]:
        values = []
        for name, table in describe(saved_models(self.models)).tables.items():
            for column in table.columns.values():
                if is_identity(column):
                    sequence = await self._value(queries("backup").sequence_of, {"table": name, "column": column.name})
                    read = SQL(queries("backup").sequence_value).format(sequence=SQL(sequence["name"]))
                    if (row := await self._value(read))["value"] is not None:
                        values.append(SequenceValue(table=name, column=column.name, value=row["value"]))
        return values

    async def _size(self, name: str) -> int:
        return int((await self._value(queries("backup").table_size, {"table": name}))["bytes"])

    async def _value(self, statement: Any, parameters: dict[str, Any] | None = None) -> dict[str, Any]:
        row = await (await self.conn.execute(statement, parameters)).fetchone()
        assert row is not None
        return row


def _copy_out(table: Composable, columns: Sequence[str]) -> Composed:
    return SQL(queries("backup").copy_out).format(table=table, columns=SQL(", ").join(map(Identifier, columns)))
