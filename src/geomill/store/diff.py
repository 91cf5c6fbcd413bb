"""Compares a live schema with the models and yields changes, which are made or refused.

An additive change goes unnoticed by an older process that still runs on the database. A destructive change loses data
or a guarantee; the operator makes it by hand, later.

Tables, types, indexes, functions and storage parameters that no model names are left alone. They may be the operator's
own, such as an index for a report, and cannot be told from leftovers of older releases.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum

from geomill.store import ddl
from geomill.store.quoting import identifier, literal
from geomill.store.spec import Column, Constraint, ConstraintKind, Database, Table

INVALID = " INVALID"
"""The suffix of an invalid index's definition (`sql/queries/live_schema.sql`). It remains after an interrupted
build."""


class Effect(StrEnum):
    ADDITIVE = "additive"
    ENUM_VALUE = "enum value"
    """Additive, but PostgreSQL allows no use of a new value before the transaction that added it has committed."""
    BATCHES = "batches"
    """A backfill. It is repeated in short transactions, after the rest has been committed, until it changes no row."""
    DESTRUCTIVE = "destructive"


@dataclass(frozen=True, slots=True)
class Change:
    summary: str
    statements: tuple[str, ...]
    effect: Effect = Effect.ADDITIVE
    script: str | None = None
    """The SQL that runs, if it is too long to show as statements."""
    number: int | None = None
    """The number of a numbered step."""


@dataclass(frozen=True, slots=True)
class Pair:
    """A table in three forms: as the models write it, as PostgreSQL rewrites the models, and as it is."""

    model: Table
    target: Table
    live: Table
    occupied: bool

    def alter(self, summary: str, *actions: str, effect: Effect = Effect.ADDITIVE) -> Change:
        statements = (ddl.alter_table(self.model.name, *actions),)
        return Change(f"{summary} of {self.model.name}", statements, effect)


def diff(model: Database, target: Database, live: Database, occupied: Iterable[str] = ()) -> Iterator[Change]:
    """Yield the changes. `occupied` are those tables of `needs_empty` that have rows."""
    for schema in model.schemas:
        if schema not in live.schemas:
            yield Change(f"create schema {schema}", (ddl.create_schema(schema),))
    yield from _enums(model, live)
    for name, definition in model.functions.items():
        if live.functions.get(name) != target.functions[name]:
            yield Change(f"create function {name}", (definition,))
    tables = list(_tables(model, target, live, occupied))
    retyped = any(" TYPE " in statement for change in tables for statement in change.statements)
    for name in live.views if retyped else ():  # PostgreSQL does not change the type of a column that a view shows
        yield Change(f"drop view {name}", (f"DROP VIEW {name}",))
    yield from tables
    for name, definition in model.views.items():
        if retyped or live.views.get(name) != target.views[name]:
            yield Change(f"create view {name}", (definition,))


def _tables(model: Database, target: Database, live: Database, occupied: Iterable[str]) -> Iterator[Change]:
    """Yield the changes of tables in the models' order, so that tables exist before foreign keys refer to them."""
    for name, table in model.tables.items():
        if name not in live.tables:
            yield Change(f"create table {name}", tuple(ddl.create_table(table)))
        else:
            yield from _table(Pair(table, target.tables[name], live.tables[name], name in occupied))


def needs_empty(model: Database, live: Database) -> set[str]:
    """Return the tables to which a column can be added only while they have no rows."""
    return {
        name
        for name, table in model.tables.items()
        for column in table.columns.values()
        if name in live.tables and column.name not in live.tables[name].columns and _needs_value(column)
    }


def _needs_value(column: Column) -> bool:
    return not column.nullable and column.default is None and "GENERATED" not in column.type.upper()


def _enums(model: Database, live: Database) -> Iterator[Change]:
    for name, values in model.enums.items():
        if name not in live.enums:
            yield Change(f"create type {name}", (ddl.create_enum(name, values),))
            continue
        yield from _new_values(name, values, live.enums[name])
        gone = [value for value in live.enums[name] if value not in values]
        if gone:
            yield _drop_values(name, gone, model)


def _new_values(name: str, values: tuple[str, ...], current: tuple[str, ...]) -> Iterator[Change]:
    for position, value in enumerate(values):
        if value not in current:
            place = f"AFTER {literal(values[position - 1])}" if position else f"BEFORE {literal(current[0])}"
            statement = f"ALTER TYPE {name} ADD VALUE {literal(value)} {place}"
            yield Change(f"add value '{value}' to {name}", (statement,), Effect.ENUM_VALUE)


def _drop_values(name: str, gone: list[str], model: Database) -> Change:
    """Return the change that removes enum values.

    PostgreSQL cannot drop a value, so the type is created anew, and everything that mentions its values is dropped. The
    next migration restores the defaults, checks, indexes and triggers.
    """
    schema, _, bare = name.rpartition(".")
    old = identifier(bare.strip('"') + "_before")
    statements = [f"ALTER TYPE {name} RENAME TO {old}", ddl.create_enum(name, model.enums[name])]
    for table in model.tables.values():
        for column in table.columns.values():
            if column.type == name:
                statements += _retype(table, column, schema)
    statements.append(f"DROP TYPE {schema}.{old}")
    return Change(f"drop value {', '.join(map(repr, gone))} of {name}", tuple(statements), Effect.DESTRUCTIVE)


def _retype(table: Table, column: Column, schema: str) -> Iterator[str]:
    mentions = re.compile(rf"\b{re.escape(column.name)}\b")
    for trigger in table.triggers.values():
        yield f"DROP TRIGGER IF EXISTS {identifier(trigger.name)} ON {table.name}"
    for index in table.indexes.values():
        if mentions.search(index.definition.partition(" WHERE ")[2]):
            yield f"DROP INDEX IF EXISTS {schema}.{identifier(index.name)}"
    checks = [
        f"DROP CONSTRAINT IF EXISTS {identifier(constraint.name)}"
        for constraint in table.constraints.values()
        if constraint.kind is ConstraintKind.CHECK and mentions.search(constraint.definition)
    ]
    name = identifier(column.name)
    conversion = f"ALTER COLUMN {name} TYPE {column.type} USING {name}::text::{column.type}"
    yield ddl.alter_table(table.name, f"ALTER COLUMN {name} DROP DEFAULT", *checks)
    yield ddl.alter_table(table.name, conversion)


def _table(pair: Pair) -> Iterator[Change]:
    for column in pair.model.columns.values():
        if column.name not in pair.live.columns:
            yield _add_column(pair, column)
        else:
            yield from _column(pair, column.name)
    for name in pair.live.columns:
        if name not in pair.model.columns:
            action = f"DROP COLUMN {identifier(name)}"
            yield pair.alter(f"drop column {name}", action, effect=Effect.DESTRUCTIVE)
    yield from _constraints(pair)
    yield from _indexes(pair)
    yield from _triggers(pair)
    yield from _properties(pair)


def _add_column(pair: Pair, column: Column) -> Change:
    table, name = pair.model.name, identifier(column.name)
    summary = f"add column {column.name} to {table}"
    comments = [] if column.comment is None else [ddl.comment_on_column(pair.model, column)]
    if not (_needs_value(column) and pair.occupied):
        statement = ddl.alter_table(table, f"ADD COLUMN {ddl.column_definition(column)}")
        return Change(summary, (statement, *comments))
    return Change(
        f"{summary}, which has rows: the column is NOT NULL and has no default",
        (
            ddl.alter_table(table, f"ADD COLUMN {name} {column.type}"),
            f"UPDATE {table} SET {name} = ... WHERE {name} IS NULL",  # noqa: S608  only shown, never run
            ddl.alter_column(table, column.name, "SET NOT NULL"),
        ),
        Effect.DESTRUCTIVE,
    )


def _column(pair: Pair, name: str) -> Iterator[Change]:
    model, target, live = pair.model.columns[name], pair.target.columns[name], pair.live.columns[name]
    alter = f"ALTER COLUMN {identifier(name)}"
    if target.type != live.type:
        effect = Effect.ADDITIVE if widens(live.type, target.type) else Effect.DESTRUCTIVE
        using = "" if effect is Effect.ADDITIVE else f" USING {identifier(name)}::{target.type}"
        summary = f"change column {name} from {live.type} to {target.type}"
        yield pair.alter(summary, f"{alter} TYPE {target.type}{using}", effect=effect)
    if target.identity != live.identity:
        action = "ADD GENERATED ALWAYS AS IDENTITY" if target.identity else "DROP IDENTITY"
        yield pair.alter(f"change identity of column {name}", f"{alter} {action}", effect=Effect.DESTRUCTIVE)
    if target.nullable and not live.nullable:
        yield pair.alter(f"allow NULL in column {name}", f"{alter} DROP NOT NULL")
    if live.nullable and not target.nullable:
        yield pair.alter(f"forbid NULL in column {name}", f"{alter} SET NOT NULL", effect=Effect.DESTRUCTIVE)
    yield from _default(pair, model, target.default, live.default)
    if target.comment != live.comment:
        yield Change(f"comment on column {name} of {pair.model.name}", (ddl.comment_on_column(pair.model, model),))


def _default(pair: Pair, model: Column, target: str | None, live: str | None) -> Iterator[Change]:
    alter = f"ALTER COLUMN {identifier(model.name)}"
    if target == live:
        return
    if target is None:  # an older process may omit the column and rely on it
        summary = f"drop default of column {model.name}"
        yield pair.alter(summary, f"{alter} DROP DEFAULT", effect=Effect.DESTRUCTIVE)
    else:
        yield pair.alter(f"set default of column {model.name}", f"{alter} SET DEFAULT {model.default}")


def widens(old: str, new: str) -> bool:
    """Whether every value of `old` is valid for `new` and the table need not be rewritten."""
    lengths = [re.fullmatch(r"character varying\((\d+)\)", name) for name in (old, new)]
    if lengths[0] and lengths[1]:
        return int(lengths[0][1]) < int(lengths[1][1])
    return old.startswith("character varying") and new in ("text", "character varying")


def _constraints(pair: Pair) -> Iterator[Change]:
    for name, constraint in pair.model.constraints.items():
        live = pair.live.constraints.get(name)
        if live is None:
            primary = constraint.kind is ConstraintKind.PRIMARY_KEY
            action = f"ADD {ddl.constraint_definition(constraint)}"
            yield pair.alter(f"add constraint {name}", action, effect=_destructive(primary))
        elif live != pair.target.constraints[name]:
            yield _replace_constraint(pair, constraint)
    for name in pair.live.constraints:
        if name not in pair.model.constraints:
            action = f"DROP CONSTRAINT {identifier(name)}"
            yield pair.alter(f"drop constraint {name}", action, effect=_destructive(name not in pair.model.retired))


def _replace_constraint(pair: Pair, constraint: Constraint) -> Change:
    """Replace a constraint. A check with the same name and other text is an update of the same rule; rows that violate
    it stop the migration."""
    return pair.alter(
        f"change constraint {constraint.name}",
        f"DROP CONSTRAINT {identifier(constraint.name)}",
        f"ADD {ddl.constraint_definition(constraint)}",
        effect=_destructive(constraint.kind is not ConstraintKind.CHECK),
    )


def _destructive(yes: bool) -> Effect:
    return Effect.DESTRUCTIVE if yes else Effect.ADDITIVE


def _indexes(pair: Pair) -> Iterator[Change]:
    schema = pair.model.name.rpartition(".")[0]
    for name, index in pair.model.indexes.items():
        live = pair.live.indexes.get(name)
        if live is None:
            yield Change(f"create index {name} on {pair.model.name}", (index.definition,))
        elif live != pair.target.indexes[name]:
            statements = (f"DROP INDEX {schema}.{identifier(name)}", index.definition)
            # Uniqueness is a guarantee that another index may not give. An invalid index guarantees nothing.
            guaranteed = (live.unique or index.unique) and not live.definition.endswith(INVALID)
            yield Change(f"change index {name} on {pair.model.name}", statements, _destructive(guaranteed))


def _triggers(pair: Pair) -> Iterator[Change]:
    table = pair.model.name
    for name, trigger in pair.model.triggers.items():
        if pair.live.triggers.get(name) != pair.target.triggers[name]:
            yield Change(f"create trigger {name} on {table}", (trigger.definition,))
    for name in pair.live.triggers:
        if name not in pair.model.triggers:
            statement = f"DROP TRIGGER {identifier(name)} ON {table}"
            yield Change(f"drop trigger {name} on {table}", (statement,), Effect.DESTRUCTIVE)


def _properties(pair: Pair) -> Iterator[Change]:
    changed = {name: value for name, value in pair.model.storage.items() if pair.live.storage.get(name) != value}
    if changed:
        yield pair.alter("set storage parameters", f"SET ({ddl.storage_parameters(changed)})")
    if pair.target.comment != pair.live.comment:
        yield Change(f"comment on {pair.model.name}", (ddl.comment_on_table(pair.model),))
