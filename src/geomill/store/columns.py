"""Turns a field of a model into a column: type, nullability, default and comment."""

from __future__ import annotations

import json
from datetime import date, datetime
from decimal import Decimal
from enum import Enum
from typing import Any
from uuid import UUID

from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from geomill.domain.entity import SqlDefault
from geomill.sql.column_types import Facet, column_type, dissect
from geomill.store.quoting import literal
from geomill.store.spec import Column


def column(name: str, field: FieldInfo, schema: str) -> Column:
    """Return the column of a field. Enum types live in the schema of the table."""
    facet = dissect(field.annotation, tuple(field.metadata))
    return Column(
        name=name,
        type=column_type(name, facet, schema),
        nullable=facet.nullable,
        default=_sql_default(name, field, facet),
        comment=field.description,
    )


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
