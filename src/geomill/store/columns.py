"""From a field of a model to a column: type, nullability, default and comment."""

from __future__ import annotations

import json
import re
import types
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from enum import Enum, StrEnum
from typing import Annotated, Any, Union, get_args, get_origin
from uuid import UUID

from pydantic import AwareDatetime, BaseModel
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from geomill.domain.entity import SqlDefault, SqlType
from geomill.store.quoting import literal, qualified
from geomill.store.spec import Column

_TYPES: dict[Any, str] = {
    int: "integer",
    float: "double precision",
    bool: "boolean",
    AwareDatetime: "timestamptz",
    date: "date",
    UUID: "uuid",
    Decimal: "numeric",
    bytes: "bytea",
    dict: "jsonb",
    list: "jsonb",
    Any: "jsonb",
}


@dataclass(frozen=True, slots=True)
class Facet:
    """An annotation taken apart: the bare type, whether None is allowed, and the metadata on the way."""

    bare: Any
    nullable: bool
    metadata: tuple[Any, ...]


def column(name: str, field: FieldInfo, schema: str) -> Column:
    """The column of a field; enum types live in the schema of the table."""
    facet = dissect(field.annotation, tuple(field.metadata))
    return Column(
        name=name,
        type=_sql_type(name, facet, schema),
        nullable=facet.nullable,
        default=_sql_default(name, field, facet),
        comment=field.description,
    )


def dissect(annotation: Any, metadata: tuple[Any, ...] = ()) -> Facet:
    """`Annotated[str, Field(max_length=9)] | None` is a str, nullable, of at most 9 characters."""
    nullable = False
    while True:
        origin, arguments = get_origin(annotation), get_args(annotation)
        if origin is Annotated:
            annotation, metadata = arguments[0], (*metadata, *_flat(arguments[1:]))
        elif origin in (Union, types.UnionType) and type(None) in arguments:
            nullable = True
            rest = tuple(argument for argument in arguments if argument is not type(None))
            annotation = rest[0] if len(rest) == 1 else Union[rest]  # noqa: UP007  made at run time
        else:
            return Facet(annotation, nullable, metadata)


def enum_of(field: FieldInfo) -> type[StrEnum] | None:
    bare = dissect(field.annotation).bare
    return bare if isinstance(bare, type) and issubclass(bare, StrEnum) else None


def enum_name(enum: type[StrEnum]) -> str:
    """The name of the type in the database: that of the class, or its `__sql_name__`, which outlives a rename."""
    return str(getattr(enum, "__sql_name__", snake(enum.__name__)))


def snake(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).lower()


def _flat(metadata: tuple[Any, ...]) -> Iterator[Any]:
    """Inside a union Pydantic leaves `Field(...)` as it is; its constraints are what counts."""
    for item in metadata:
        if isinstance(item, FieldInfo):
            yield from item.metadata
        else:
            yield item


def _sql_type(name: str, facet: Facet, schema: str) -> str:
    for item in facet.metadata:
        if isinstance(item, SqlType):
            return item.name
    bare = get_origin(facet.bare) or facet.bare
    if bare is str:
        return _string_type(facet)
    if bare in _TYPES:
        return _TYPES[bare]
    if isinstance(bare, type) and issubclass(bare, StrEnum):
        return qualified(schema, enum_name(bare))
    if isinstance(bare, type) and issubclass(bare, BaseModel):
        return "jsonb"
    raise TypeError(f"field '{name}' is a {bare!r}, for which there is no column type; annotate it with SqlType")


def _string_type(facet: Facet) -> str:
    lengths = [item.max_length for item in facet.metadata if getattr(item, "max_length", None) is not None]
    return f"varchar({min(lengths)})" if lengths else "text"


def _sql_default(name: str, field: FieldInfo, facet: Facet) -> str | None:
    for item in facet.metadata:
        if isinstance(item, SqlDefault):
            return item.expression
    if field.default_factory in (dict, list):
        return "'{}'::jsonb" if field.default_factory is dict else "'[]'::jsonb"
    if field.default is PydanticUndefined or field.default is None:
        return None
    return _value(name, field.default)


def _value(name: str, value: Any) -> str:
    if isinstance(value, Enum):
        value = value.value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float | Decimal):
        return str(value)
    if isinstance(value, dict | list):
        return literal(json.dumps(value)) + "::jsonb"
    if isinstance(value, str | UUID | date | datetime):
        return literal(str(value))
    raise TypeError(
        f"field '{name}' has the default {value!r}, which cannot be a column's; annotate it with SqlDefault"
    )
