"""The base class of every stored model, and the declarations by which a model describes its table.

The models are the schema. `store/ddl.py` writes the DDL from the `__sql_*__` attributes below and the fields'
annotations, and from nothing else.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field

from geomill.domain.states import Machine


@dataclass(frozen=True, slots=True)
class Index:
    """An index. A column may be followed by DESC: `Index("idx_x", ("created_at DESC",))`."""

    name: str
    columns: tuple[str, ...]
    unique: bool = False
    where: str = ""
    method: Literal["btree", "gin", "gist", "brin", "hash"] = "btree"


@dataclass(frozen=True, slots=True)
class ForeignKey:
    """A foreign key, for example `ForeignKey(("job_id",), "dagapp.dag_jobs", ("job_id",))`."""

    columns: tuple[str, ...]
    table: str
    references: tuple[str, ...]
    on_delete: Literal["CASCADE", "RESTRICT", "SET NULL"] = "CASCADE"


@dataclass(frozen=True, slots=True)
class Check:
    name: str
    expression: str


@dataclass(frozen=True, slots=True)
class Unique:
    name: str
    columns: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class StateRule:
    """Ties a status column to its machine. The table refuses transitions that the machine forbids."""

    column: str
    machine: Machine[Any]


@dataclass(frozen=True, slots=True)
class Guard:
    """A change that the table refuses with SQLSTATE GM002 and this message. `when` is SQL over OLD and NEW."""

    name: str
    events: str
    message: str
    when: str = ""


@dataclass(frozen=True, slots=True)
class Follower:
    """A trigger: after a change the database calls a function of `sql/functions`, in the same transaction."""

    name: str
    events: str
    function: str
    when: str = ""


def append_only(table: str) -> tuple[Guard, ...]:
    """Return the guards of a table whose rows are never changed or deleted."""
    message = "its rows are only added to, never changed or deleted"
    return (
        Guard(f"{table}_append_only", "UPDATE OR DELETE", message),
        Guard(f"{table}_no_truncate", "TRUNCATE", message),
    )


def changes(columns: tuple[str, ...]) -> str:
    """Return the SQL condition that one of the columns changes. It does not compare rows: PostgreSQL rewords such a
    comparison when a dump is restored, and the trigger would then look changed."""
    return "(" + " OR ".join(f"OLD.{column} IS DISTINCT FROM NEW.{column}" for column in columns) + ")"


@dataclass(frozen=True, slots=True)
class SqlType:
    """The column type, if it differs from the one that the annotation gives."""

    name: str


@dataclass(frozen=True, slots=True)
class SqlDefault:
    """The column default as SQL. Without it, a plain Python default becomes the column default."""

    expression: str


HOT: Mapping[str, str] = {
    "autovacuum_vacuum_scale_factor": "0",
    "autovacuum_vacuum_threshold": "1000",
    "autovacuum_vacuum_cost_delay": "0",
}
"""Storage parameters of tables whose rows live for milliseconds. Autovacuum counts dead rows and runs at full speed."""

BigInt = Annotated[int, SqlType("bigint")]
SmallInt = Annotated[int, SqlType("smallint")]
Identity = Annotated[int, SqlType("bigint GENERATED ALWAYS AS IDENTITY")]
Key = Annotated[str, Field(min_length=1, max_length=64)]
Name = Annotated[str, Field(max_length=64)]
Subject = Annotated[str, Field(max_length=200)]
"""The subject of a credential: who did something."""

Now = Annotated[AwareDatetime, SqlDefault("now()")]
Json = dict[str, Any]


class Entity(BaseModel):
    """A frozen row. All timestamps come from the database and have a time zone."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_enum_values=False)

    __sql_schema__: ClassVar[str] = "dagapp"
    __sql_table__: ClassVar[str]
    __sql_primary_key__: ClassVar[tuple[str, ...]]
    __sql_new__: ClassVar[type[BaseModel] | None] = None
    """The model of a row before it is stored. Its fields are the columns of the INSERT."""
    __sql_foreign_keys__: ClassVar[tuple[ForeignKey, ...]] = ()
    __sql_retired__: ClassVar[tuple[str, ...]] = ()
    """Constraints of earlier versions. A migration drops them without asking."""
    __sql_unique__: ClassVar[tuple[Unique, ...]] = ()
    __sql_indexes__: ClassVar[tuple[Index, ...]] = ()
    __sql_checks__: ClassVar[tuple[Check, ...]] = ()
    __sql_states__: ClassVar[tuple[StateRule, ...]] = ()
    __sql_guards__: ClassVar[tuple[Guard, ...]] = ()
    __sql_followers__: ClassVar[tuple[Follower, ...]] = ()
    __sql_functions__: ClassVar[tuple[str, ...]] = ()
    """Other functions of `sql/functions` that are created with the table."""
    __sql_views__: ClassVar[tuple[str, ...]] = ()
    """Views of `sql/views` that are created after all tables."""
    __sql_seed__: ClassVar[tuple[Mapping[str, Any], ...]] = ()
    __sql_storage__: ClassVar[Mapping[str, str]] = {}
    __log_fields__: ClassVar[tuple[str, ...]] = ()

    @classmethod
    def from_row(cls, row: Mapping[str, Any]) -> Self:
        """Build the entity from a row. Unknown columns are ignored: during an upgrade a newer release may have added
        them."""
        return cls.model_validate({name: row[name] for name in cls.model_fields if name in row})

    def evolve(self, **changes: Any) -> Self:
        """Return a validated copy with changed values."""
        return type(self).model_validate({**dict(self), **changes})

    def log_context(self) -> dict[str, Any]:
        """Return the ids for a log line about this entity."""
        fields = self.__log_fields__ or self.__sql_primary_key__
        return {name: getattr(self, name) for name in fields}
