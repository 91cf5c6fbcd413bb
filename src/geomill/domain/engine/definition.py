"""A stored workflow definition. Jobs are pinned to its hash, so a later edit never changes them."""

from __future__ import annotations

from typing import Annotated, ClassVar

from pydantic import Field

from geomill.domain.entity import Entity, Index, Json, Key, Now, SqlType


class Definition(Entity):
    __sql_table__: ClassVar = "dag_definitions"
    __sql_primary_key__: ClassVar = ("definition_hash",)
    __sql_indexes__: ClassVar = (Index("idx_dag_definitions_workflow", ("workflow_id", "version DESC")),)

    definition_hash: Key = Field(description="SHA-256 of the canonical JSON of the body")
    workflow_id: Key
    version: Annotated[int, Field(ge=1)]
    body: Annotated[Json, SqlType("json")] = Field(description="The whole definition; json keeps the order of nodes")
    created_at: Now
