"""From a description to SQL. The only place where SQL text is put together."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from geomill.domain.entity import Entity
from geomill.domain.tables import TABLES
from geomill.store.describe import describe
from geomill.store.fitness import EXTENSIONS
from geomill.store.quoting import identifier, literal
from geomill.store.spec import Column, Constraint, Database, Table

CREATE_EXTENSIONS = tuple(f"CREATE EXTENSION IF NOT EXISTS {name}" for name in EXTENSIONS)

_HEADER = """\
-- The schema of geomill.
--
-- Generated from the models in geomill.domain; do not edit; run script/schema.
-- `geomill db migrate` brings a database to it. Statuses change only as the state machines allow: the triggers
-- named *_transitions refuse anything else with SQLSTATE GM001.
"""


def schema_text(models: Sequence[type[Entity]] = TABLES) -> str:
    """The whole schema as a script."""
    statements = [*CREATE_EXTENSIONS, *ddl(models)]
    return "\n\n".join([_HEADER.rstrip(), *(f"{statement};" for statement in statements)]) + "\n"


def ddl(models: Sequence[type[Entity]] = TABLES, prefix: str = "") -> list[str]:
    """Every statement that makes the models' schema in an empty database, in order."""
    return list(create_database(describe(models, prefix)))


def create_database(database: Database) -> Iterator[str]:
    yield from map(create_schema, database.schemas)
    for name, values in database.enums.items():
        yield create_enum(name, values)
    yield from database.functions.values()
    for table in database.tables.values():
        yield from create_table(table)
    yield from database.views.values()


def create_schema(name: str) -> str:
    return f"CREATE SCHEMA IF NOT EXISTS {identifier(name)}"


def create_enum(name: str, values: Sequence[str]) -> str:
    return f"CREATE TYPE {name} AS ENUM ({', '.join(map(literal, values))})"


def create_table(table: Table) -> Iterator[str]:
    """The table with everything on it."""
    lines = [*map(column_definition, table.columns.values()), *map(constraint_definition, table.constraints.values())]
    storage = f" WITH ({storage_parameters(table.storage)})" if table.storage else ""
    yield f"CREATE TABLE {table.name} (\n    " + ",\n    ".join(lines) + f"\n){storage}"
    yield from (index.definition for index in table.indexes.values())
    yield from (trigger.definition for trigger in table.triggers.values())
    if table.comment is not None:
        yield comment_on_table(table)
    for column in table.columns.values():
        if column.comment is not None:
            yield comment_on_column(table, column)
    yield from table.seed


def column_definition(column: Column) -> str:
    default = "" if column.default is None else f" DEFAULT {column.default}"
    null = "" if column.nullable else " NOT NULL"
    return f"{identifier(column.name)} {column.type}{default}{null}"


def constraint_definition(constraint: Constraint) -> str:
    return f"CONSTRAINT {identifier(constraint.name)} {constraint.definition}"


def storage_parameters(storage: Mapping[str, str]) -> str:
    return ", ".join(f"{name} = {value}" for name, value in storage.items())


def comment_on_table(table: Table) -> str:
    return f"COMMENT ON TABLE {table.name} IS {_comment(table.comment)}"


def comment_on_column(table: Table, column: Column) -> str:
    return f"COMMENT ON COLUMN {table.name}.{identifier(column.name)} IS {_comment(column.comment)}"


def alter_table(table: str, *actions: str) -> str:
    return f"ALTER TABLE {table} {', '.join(actions)}"


def alter_column(table: str, column: str, action: str) -> str:
    return alter_table(table, f"ALTER COLUMN {identifier(column)} {action}")


def _comment(text: str | None) -> str:
    return "NULL" if text is None else literal(text)
