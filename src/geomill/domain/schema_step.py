"""The numbered migration steps that a database has had."""

from __future__ import annotations

from typing import ClassVar

from pydantic import AwareDatetime, Field

from geomill.domain.entity import Entity


class SchemaStep(Entity):
    """A migration step that has run in this database, or was not needed because the database was new."""

    __sql_schema__: ClassVar = "catalogue"
    __sql_table__: ClassVar = "schema_steps"
    __sql_primary_key__: ClassVar = ("number",)

    number: int
    title: str = Field(max_length=200)
    applied_at: AwareDatetime
