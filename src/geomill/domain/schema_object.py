"""The objects that the last migration left in a database, so that a missing or changed one is noticed later."""

from __future__ import annotations

from typing import ClassVar

from geomill.domain.entity import Entity


class SchemaObject(Entity):
    """A table, column, constraint, index, trigger or function of geomill or pgstac as the last migration left it."""

    __sql_schema__: ClassVar = "catalogue"
    __sql_table__: ClassVar = "schema_objects"
    __sql_primary_key__: ClassVar = ("object",)

    object: str
    definition: str
