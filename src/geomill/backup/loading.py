"""Loads rows into a database that this release's migration has created, in one transaction: all of them or none.

Our triggers are disabled meanwhile, because rows are loaded unchanged; foreign keys are checked. The tables must be
empty, except for the rows that the migration itself adds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, LiteralString

import psycopg
from psycopg.sql import SQL, Composed, Identifier

from geomill.backup import features
from geomill.backup.manifest import DatabasePart, FeaturePart, RowsPart
from geomill.backup.metering import ProgressMeter
from geomill.backup.packing import unpacked
from geomill.backup.snapshot import is_identity, is_stored, saved_models
from geomill.catalogue import bulk
from geomill.domain.entity import Entity
from geomill.domain.schema_object import SchemaObject
from geomill.domain.schema_step import SchemaStep
from geomill.errors import BackupInvalid, ConflictError
from geomill.sql import queries
from geomill.storage.depot import Depot
from geomill.store import grants
from geomill.store.describe import describe, table_name
from geomill.store.pool import Connection


@dataclass(frozen=True)
class RebuiltItems:
    """The rebuilt catalogue, compared with the one of the backup."""

    saved: int
    lacking: int
    """Items that follow from no asset; they were loaded from the backup."""
    added: int
    different: int


def require_known(part: DatabasePart, models: Sequence[type[Entity]]) -> None:
    """Raises unless this release has every table and column of the backup."""
    described = describe(saved_models(models)).tables
    for table in part.tables:
        if table.table not in described:
            raise _newer(f"the table {table.table!r}")
        for name in table.columns:
            column = described[table.table].columns.get(name)
            if column is None or not is_stored(column):
                raise _newer(f"the column {name!r} of {table.table}")
    listed = [table.table for table in part.tables]
    if len(set(listed)) != len(listed):
        raise BackupInvalid("the manifest names a table twice")


def _newer(what: str) -> ConflictError:
    return ConflictError(
        f"the backup has {what}, which this release does not know",
        remedy="restore it with the release that made it, then upgrade that release",
    )


async def require_empty(conn: Connection, models: Sequence[type[Entity]]) -> None:
    """Raises `ConflictError` if the database has rows of ours. It need not have our tables."""
    for model in models:
        if model in (
            SchemaObject,
            SchemaStep,
        ):  # written by every migration, also by one before a restoration that broke off
            continue
        if await _is_there(conn, table_name(model)) and await _count(conn, model) > len(model.__sql_seed__):
            raise _occupied(table_name(model))
    row = await (await conn.execute(queries("backup").feature_table_there)).fetchone()
    if row is not None:
        raise _occupied(row["name"])


def _occupied(what: str) -> ConflictError:
    return ConflictError(
        f"the target is not empty: there is {what}", remedy="restore into a new data folder or an empty database"
    )


@dataclass(frozen=True)
class RestoreLoad:
    conn: Connection
    depot: Depot
    part: DatabasePart
    models: Sequence[type[Entity]]
    meter: ProgressMeter

    async def run(self) -> RebuiltItems:
        """Load everything, in the caller's transaction."""
        models = saved_models(self.models)
        await self._each(queries("backup").disable_triggers, models)
        await require_empty(self.conn, self.models)  # nobody can have written since: the tables are locked
        for model in models:
            await self._table(model)
        await self._each(queries("backup").enable_triggers, models)
        await self._sequences()
        for table in self.part.features:
            await self._feature(table)
        items = await self._catalogue()
        await grants.apply(self.conn, self.models)  # tables of features become their maker's
        return items

    async def _each(self, statement: LiteralString, models: Sequence[type[Entity]]) -> None:
        for model in models:
            await self.conn.execute(SQL(statement).format(table=_place(model)))

    async def _table(self, model: type[Entity]) -> None:
        rows = next((table for table in self.part.tables if table.table == table_name(model)), None)
        if model.__sql_seed__:
            await self.conn.execute(SQL(queries("backup").delete_rows).format(table=_place(model)))
        if rows is not None:
            await self._copy(_copy_in(_place(model), rows.columns), rows)
        await self.conn.execute(SQL(queries("backup").analyze).format(table=_place(model)))

    async def _feature(self, table: FeaturePart) -> None:
        try:
            await self.conn.execute(SQL(queries("backup").create_schema).format(schema=Identifier(table.home)))
            await self.conn.execute(features.creation(table))
            await self._copy(_copy_in(features.place(table), [column.name for column in table.columns]), table)
            for statement in features.afterwards(table):
                await self.conn.execute(statement)
        except psycopg.errors.ProgrammingError as error:
            raise BackupInvalid(
                f"the table {table.home}.{table.name} cannot be made: {error.diag.message_primary}"
            ) from None

    async def _copy(self, statement: SQL | Composed, rows: RowsPart) -> None:
        try:
            async with self.conn.cursor() as cursor:
                async with cursor.copy(statement) as copy:
                    for piece in unpacked(self.depot, rows):
                        await copy.write(piece)
                        self.meter.advance(len(piece))
                if cursor.rowcount != rows.rows:
                    raise BackupInvalid(f"'{rows.path}' has {cursor.rowcount:,} rows, not {rows.rows:,}")
        except (psycopg.DataError, psycopg.IntegrityError) as error:
            raise BackupInvalid(f"'{rows.path}' cannot be loaded: {error.diag.message_primary}") from None

    async def _sequences(self) -> None:
        described = describe(saved_models(self.models)).tables
        for sequence in self.part.sequences:
            table = described.get(sequence.table)
            column = table.columns.get(sequence.column) if table else None
            if column is None or not is_identity(column):
                raise BackupInvalid(f"the manifest names a sequence of {sequence.table!r}, which has none")
            await self.conn.execute(queries("backup").set_sequence, sequence.model_dump())

    async def _catalogue(self) -> RebuiltItems:
        """Load the catalogue. Inside, items are rebuilt from the assets, and those that follow from no asset come from
        the backup. Outside, all items come from the backup."""
        await self.conn.execute(queries("backup").open_collections)
        await self._copy(SQL(queries("backup").collections_in), self.part.collections)
        await self.conn.execute(queries("backup").put_collections)
        await self.conn.execute(queries("backup").open_items)
        await self._copy(SQL(queries("backup").items_in), self.part.items)
        if any(model.__sql_table__ == "geospatial_assets" for model in self.models):
            await bulk.rebuild(self.conn)
        compared = await (await self.conn.execute(queries("backup").compare_items)).fetchone()
        assert compared is not None
        await self.conn.execute(queries("backup").open_incoming)
        await self.conn.execute(queries("backup").clear_incoming)
        await self.conn.execute(queries("backup").incoming_items)
        row = await (await self.conn.execute(queries("backup").collection_documents)).fetchone()
        assert row is not None
        await self.conn.execute(queries("catalogue").put_incoming, {"collections": row["documents"]})
        return RebuiltItems(**compared)


def _copy_in(table: Identifier, columns: Sequence[str]) -> Composed:
    return SQL(queries("backup").copy_in).format(table=table, columns=SQL(", ").join(map(Identifier, columns)))


def _place(model: type[Entity]) -> Identifier:
    return Identifier(model.__sql_schema__, model.__sql_table__)


async def _is_there(conn: Connection, table: str) -> bool:
    row = await (await conn.execute(queries("backup").table_there, {"table": table})).fetchone()
    return row is not None and bool(row["there"])


async def _count(conn: Connection, model: type[Entity]) -> int:
    row: dict[str, Any] | None = await (
        await conn.execute(SQL(queries("backup").count_rows).format(table=_place(model)))
    ).fetchone()
    return int(row["count"]) if row else 0
