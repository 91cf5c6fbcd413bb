"""Numbered steps of the migration that a database has had."""

from __future__ import annotations

from typing import ClassVar

from pydantic import AwareDatetime, Field

from geomill.domain.entity import Entity


class SchemaStep(Entity):
    """A numbered step of the migration that has run here, or was not needed because the database was new."""

    __sql_schema__: ClassVar = "catalogue"
    __sql_table__: ClassVar = "schema_steps"
    __sql_primary_key__: ClassVar = ("number",)

    number: int
    title: str = Field(max_length=200)
    applied_at: AwareDatetime
