"""The PostgreSQL type of a field of a model."""

from __future__ import annotations

import re
import types
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from enum import StrEnum
from typing import Annotated, Any, Union, get_args, get_origin
from uuid import UUID

from pydantic import AwareDatetime, BaseModel
from pydantic.fields import FieldInfo

from geomill.domain.entity import SqlType

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


def _flat(metadata: tuple[Any, ...]) -> Iterator[Any]:
    """Inside a union Pydantic leaves `Field(...)` as it is; its constraints are what counts."""
    for item in metadata:
        if isinstance(item, FieldInfo):
            yield from item.metadata
        else:
            yield item


def enum_of(field: FieldInfo) -> type[StrEnum] | None:
    bare = dissect(field.annotation).bare
    return bare if isinstance(bare, type) and issubclass(bare, StrEnum) else None


def enum_name(enum: type[StrEnum]) -> str:
    """The name of the type in the database: that of the class, or its `__sql_name__`, which outlives a rename."""
    return str(getattr(enum, "__sql_name__", snake(enum.__name__)))


def snake(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).lower()


def column_type(name: str, facet: Facet, schema: str) -> str:
    """Returns the type of a field's column. Enum types live in the schema of the table."""
    for item in facet.metadata:
        if isinstance(item, SqlType):
            return item.name
    bare = get_origin(facet.bare) or facet.bare
    if bare is str:
        return _string_type(facet)
    if bare in _TYPES:
        return _TYPES[bare]
    if isinstance(bare, type) and issubclass(bare, StrEnum):
        return f"{schema}.{enum_name(bare)}"
    if isinstance(bare, type) and issubclass(bare, BaseModel):
        return "jsonb"
    raise TypeError(f"field '{name}' is a {bare!r}, for which there is no column type; annotate it with SqlType")


def _string_type(facet: Facet) -> str:
    lengths = [item.max_length for item in facet.metadata if getattr(item, "max_length", None) is not None]
    return f"varchar({min(lengths)})" if lengths else "text"
