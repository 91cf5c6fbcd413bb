"""Describes the schema of the models."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from inspect import cleandoc
from typing import Any, TypeVar

from geomill.domain.entity import Entity, Follower, ForeignKey, Guard, Index, StateRule
from geomill.sql import function_sql, view_sql
from geomill.sql.column_types import enum_name, enum_of
from geomill.store.columns import column
from geomill.store.quoting import column_list, identifier, literal, qualified
from geomill.store.spec import Column, Constraint, ConstraintKind, Database, Table, TableIndex, Trigger

ILLEGAL_TRANSITION = "GM001"
"""The SQLSTATE of a change of state that the state machine forbids."""

REFUSED_CHANGE = "GM002"
"""The SQLSTATE of a change that a guard forbids."""

REFUSE_FUNCTION = "refuse_transition"
GUARD_FUNCTION = "refuse_change"

_OUR_SCHEMA = re.compile(r"(?<!\w)(dagapp|app|catalogue|external)\.")
_INDEX_COLUMN = re.compile(r"([A-Za-z_]\w*)((?:\s+\w+)*)")

Named = TypeVar("Named", Column, Constraint, TableIndex, Trigger)


def describe(models: Sequence[type[Entity]], prefix: str = "") -> Database:
    """Return the schema of the models. `prefix` moves it to other schemas beside the real ones."""
    schemas = dict.fromkeys(prefix + model.__sql_schema__ for model in models)
    tables = [_table(model, prefix) for model in models]
    return Database(
        schemas=tuple(schemas),
        enums={name: values for model in models for name, values in _enums(model, prefix)},
        functions={name: text for model in models for name, text in _functions(model, prefix)},
        tables={table.name: table for table in tables},
        views={prefix + name: _moved(view_sql(name), prefix) for name in view_names(models)},
    )


def function_names(models: Sequence[type[Entity]]) -> list[str]:
    """Return the names of the functions, without schemas."""
    named = [name for model in models for name in _named_functions(model)]
    return [REFUSE_FUNCTION, GUARD_FUNCTION, *(name.rpartition(".")[2] for name in named)]


def view_names(models: Sequence[type[Entity]]) -> list[str]:
    return [name for model in models for name in model.__sql_views__]


def table_name(model: type[Entity], prefix: str = "") -> str:
    return qualified(prefix + model.__sql_schema__, model.__sql_table__)


def _table(model: type[Entity], prefix: str) -> Table:
    schema, name = prefix + model.__sql_schema__, table_name(model, prefix)
    return Table(
        name=name,
        columns=_by_name(column(field, model.model_fields[field], schema) for field in _fields(model)),
        constraints=_by_name(_constraints(model, prefix)),
        indexes=_by_name(_index(index, name) for index in model.__sql_indexes__),
        triggers=_by_name(_triggers(model, prefix)),
        storage=dict(model.__sql_storage__),
        comment=_comment(model),
        seed=tuple(_seed_row(name, row) for row in model.__sql_seed__),
        retired=model.__sql_retired__,
    )


def _fields(model: type[Entity]) -> list[str]:
    """Return the fields, the primary key first, because a model may inherit other fields before it."""
    return sorted(model.model_fields, key=lambda name: name not in model.__sql_primary_key__)


def _by_name(parts: Iterable[Named]) -> dict[str, Named]:
    return {part.name: part for part in parts}


def _comment(model: type[Entity]) -> str | None:
    """Return the first paragraph of the model's own docstring, on one line."""
    docstring = model.__dict__.get("__doc__")
    return " ".join(cleandoc(docstring).split("\n\n")[0].split()) if docstring else None


def _enums(model: type[Entity], prefix: str) -> Iterator[tuple[str, tuple[str, ...]]]:
    for info in model.model_fields.values():
        enum = enum_of(info)
        if enum is not None:
            yield qualified(prefix + model.__sql_schema__, enum_name(enum)), tuple(item.value for item in enum)


def _constraints(model: type[Entity], prefix: str) -> Iterator[Constraint]:
    table, kind = model.__sql_table__, ConstraintKind
    yield Constraint(f"{table}_pkey", kind.PRIMARY_KEY, f"PRIMARY KEY ({column_list(model.__sql_primary_key__)})")
    for unique in model.__sql_unique__:
        yield Constraint(unique.name, kind.UNIQUE, f"UNIQUE ({column_list(unique.columns)})")
    for check in model.__sql_checks__:
        yield Constraint(check.name, kind.CHECK, f"CHECK ({check.expression})")
    for foreign in model.__sql_foreign_keys__:
        name = f"{table}_{'_'.join(foreign.columns)}_fkey"
        yield Constraint(name, kind.FOREIGN_KEY, _foreign_key(foreign, prefix))


def _foreign_key(foreign: ForeignKey, prefix: str) -> str:
    schema, _, table = foreign.table.partition(".")
    target = f"{qualified(prefix + schema, table)} ({column_list(foreign.references)})"
    return f"FOREIGN KEY ({column_list(foreign.columns)}) REFERENCES {target} ON DELETE {foreign.on_delete}"


def _index(index: Index, table: str) -> TableIndex:
    unique = "UNIQUE " if index.unique else ""
    columns = ", ".join(map(_index_column, index.columns))
    where = f" WHERE {index.where}" if index.where else ""
    definition = f"CREATE {unique}INDEX {identifier(index.name)} ON {table} USING {index.method} ({columns}){where}"
    return TableIndex(index.name, definition, index.unique)


def _index_column(text: str) -> str:
    """Return the SQL of a column with optional words (DESC, an operator class), of an expression, or of one in
    brackets."""
    if text.startswith("("):
        return text
    match = _INDEX_COLUMN.fullmatch(text)
    return identifier(match[1]) + match[2] if match else f"({text})"


def _triggers(model: type[Entity], prefix: str) -> Iterator[Trigger]:
    schema = prefix + model.__sql_schema__
    yield from (_trigger(rule, model.__sql_table__, schema) for rule in model.__sql_states__)
    yield from (_guard(guard, model.__sql_table__, schema) for guard in model.__sql_guards__)
    yield from (_follower(follower, model.__sql_table__, schema, prefix) for follower in model.__sql_followers__)


def _guard(guard: Guard, table: str, schema: str) -> Trigger:
    scope = "STATEMENT" if guard.events == "TRUNCATE" else "ROW"
    when = f" WHEN ({guard.when})" if guard.when else ""
    return Trigger(
        guard.name,
        f"CREATE OR REPLACE TRIGGER {identifier(guard.name)}\n"
        f"    BEFORE {guard.events} ON {qualified(schema, table)}\n"
        f"    FOR EACH {scope}{when}\n"
        f"    EXECUTE FUNCTION {qualified(schema, GUARD_FUNCTION)}({literal(guard.message)})",
    )


def _follower(follower: Follower, table: str, schema: str, prefix: str) -> Trigger:
    when = f" WHEN ({follower.when})" if follower.when else ""
    return Trigger(
        follower.name,
        f"CREATE OR REPLACE TRIGGER {identifier(follower.name)}\n"
        f"    AFTER {follower.events} ON {qualified(schema, table)}\n"
        f"    FOR EACH ROW{when}\n"
        f"    EXECUTE FUNCTION {prefix}{follower.function}()",
    )


def _seed_row(table: str, row: Mapping[str, Any]) -> str:
    values = ", ".join(literal(value if isinstance(value, str) else json.dumps(value)) for value in row.values())
    return f"INSERT INTO {table} ({column_list(tuple(row))}) VALUES ({values}) ON CONFLICT DO NOTHING"  # noqa: S608  no user input


def _trigger(rule: StateRule, table: str, schema: str) -> Trigger:
    """Return the trigger of a state machine.

    The WHEN clause contains the whole rule, so that a legal change calls no function. It is an AFTER trigger, because a
    BEFORE trigger would make PostgreSQL lock each row and log that.
    """
    name, state = f"{table}_{rule.column}_transitions", identifier(rule.column)
    legal = [
        f"(OLD.{state} = {literal(source)} AND NEW.{state} IN ({', '.join(map(literal, _in_order(targets, source)))}))"
        for source, targets in rule.machine.commits.items()
        if targets
    ]
    return Trigger(
        name,
        f"CREATE OR REPLACE TRIGGER {identifier(name)}\n"
        f"    AFTER UPDATE OF {state} ON {qualified(schema, table)}\n"
        f"    FOR EACH ROW WHEN (OLD.{state} IS DISTINCT FROM NEW.{state} AND NOT (\n        "
        + "\n        OR ".join(legal or ["false"])
        + f"\n    ))\n    EXECUTE FUNCTION {qualified(schema, REFUSE_FUNCTION)}({literal(rule.column)})",
    )


def _in_order(states: Iterable[str], sibling: str) -> list[str]:
    """Return the states in the order of the enum, since a set has none and the generated text needs one."""
    return [state.value for state in type(sibling) if state in states]  # type: ignore[attr-defined]  # a StrEnum


def _functions(model: type[Entity], prefix: str) -> Iterator[tuple[str, str]]:
    schema = prefix + model.__sql_schema__
    if model.__sql_states__:
        yield _refuse_function(schema)
    if model.__sql_guards__:
        yield _guard_function(schema)
    for name in _named_functions(model):
        yield prefix + name, _moved(function_sql(name), prefix)


def _named_functions(model: type[Entity]) -> list[str]:
    """Return the functions of `sql/functions`."""
    return [*model.__sql_functions__, *(follower.function for follower in model.__sql_followers__)]


def _moved(text: str, prefix: str) -> str:
    """Return the text with the schema names of this description."""
    return _OUR_SCHEMA.sub(rf"{prefix}\1.", text)


def _guard_function(schema: str) -> tuple[str, str]:
    name = qualified(schema, GUARD_FUNCTION)
    return name, (
        f"CREATE OR REPLACE FUNCTION {name}() RETURNS trigger\n"
        "    LANGUAGE plpgsql SET search_path = pg_catalog AS $$\n"
        "BEGIN\n"
        "    RAISE EXCEPTION USING\n"
        f"        ERRCODE = '{REFUSED_CHANGE}',\n"
        "        MESSAGE = format('%I.%I: %s', TG_TABLE_SCHEMA, TG_TABLE_NAME, TG_ARGV[0]),\n"
        "        SCHEMA = TG_TABLE_SCHEMA, TABLE = TG_TABLE_NAME, CONSTRAINT = TG_NAME;\n"
        "END\n"
        "$$"
    )


def _refuse_function(schema: str) -> tuple[str, str]:
    name = qualified(schema, REFUSE_FUNCTION)
    return name, (
        f"CREATE OR REPLACE FUNCTION {name}() RETURNS trigger\n"
        "    LANGUAGE plpgsql SET search_path = pg_catalog AS $$\n"
        "BEGIN\n"
        "    RAISE EXCEPTION USING\n"
        f"        ERRCODE = '{ILLEGAL_TRANSITION}',\n"
        "        MESSAGE = format('%I.%I: %s cannot go from %s to %s', TG_TABLE_SCHEMA, TG_TABLE_NAME, TG_ARGV[0],\n"
        "                         to_jsonb(OLD) ->> TG_ARGV[0], to_jsonb(NEW) ->> TG_ARGV[0]),\n"
        "        SCHEMA = TG_TABLE_SCHEMA, TABLE = TG_TABLE_NAME, COLUMN = TG_ARGV[0];\n"
        "END\n"
        "$$"
    )
