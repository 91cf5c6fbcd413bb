"""The parts of a schema, by which both the models and a live database are described.

Definitions are SQL: the models' own text, or PostgreSQL's rewriting of it if they come from a database. Only the latter
are compared with each other.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum


@dataclass(frozen=True, slots=True)
class Column:
    name: str
    type: str
    nullable: bool = False
    default: str | None = None
    identity: str = ""
    comment: str | None = None


class ConstraintKind(StrEnum):
    """The letters are those of pg_constraint.contype."""

    PRIMARY_KEY = "p"
    UNIQUE = "u"
    CHECK = "c"
    FOREIGN_KEY = "f"


@dataclass(frozen=True, slots=True)
class Constraint:
    name: str
    kind: ConstraintKind
    definition: str


@dataclass(frozen=True, slots=True)
class TableIndex:
    name: str
    definition: str
    unique: bool = False


@dataclass(frozen=True, slots=True)
class Trigger:
    name: str
    definition: str


@dataclass(frozen=True, slots=True)
class Table:
    """A table. `name` is qualified, and quoted if necessary; so are the keys of `Database`."""

    name: str
    columns: Mapping[str, Column]
    constraints: Mapping[str, Constraint]
    indexes: Mapping[str, TableIndex]
    triggers: Mapping[str, Trigger]
    storage: Mapping[str, str]
    comment: str | None = None
    seed: tuple[str, ...] = ()
    """Statements that insert the first rows of a new table."""
    retired: tuple[str, ...] = ()
    """Constraints of older releases, which may be dropped."""


@dataclass(frozen=True, slots=True)
class Database:
    schemas: tuple[str, ...]
    enums: Mapping[str, tuple[str, ...]]
    functions: Mapping[str, str]
    tables: Mapping[str, Table]
    views: Mapping[str, str] = field(default_factory=dict)
