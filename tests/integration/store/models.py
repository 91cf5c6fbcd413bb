"""Models made to order: one version of a table, then another."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

from pydantic import Field, create_model

from geomill.domain.entity import Entity, Key, StateRule
from geomill.domain.states import Machine

SCHEMA = "lab"


def model(table: str = "things", fields: dict[str, Any] | None = None, **sql: Any) -> type[Entity]:
    """A model of `lab.<table>` with a key `id`; `checks=(...)` sets `__sql_checks__`, and so on."""
    columns = {"id": (Key, ...), **(fields or {})}
    entity = create_model("Thing", __base__=Entity, **columns)
    attributes = {"schema": SCHEMA, "table": table, "primary_key": ("id",), **sql}
    for name, value in attributes.items():
        setattr(entity, f"__sql_{name}__", value)
    return entity


def phase(*values: str) -> type[StrEnum]:
    return StrEnum("Phase", [(value.upper(), value) for value in values])  # type: ignore[return-value]


def chain(enum: type[StrEnum], column: str = "phase") -> StateRule:
    """A machine in which each value leads to the next."""
    states = list(enum)
    steps = {state: frozenset(states[place + 1 : place + 2]) for place, state in enumerate(states)}
    return StateRule(column, Machine(name="thing", steps=steps, terminal=frozenset(states[-1:])))


def text(length: int, default: Any = ...) -> tuple[Any, Any]:
    return (str, Field(default, max_length=length))
