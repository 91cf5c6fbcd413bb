"""Pinned workflow definitions in the database."""

from __future__ import annotations

from geomill.domain.engine.definition import Definition
from geomill.domain.engine.workflow import Workflow
from geomill.domain.jsonvalue import to_json
from geomill.errors import NotFoundError
from geomill.sql import queries
from geomill.store.pool import Connection


async def insert(conn: Connection, workflow: Workflow, definition_hash: str) -> None:
    await conn.execute(
        queries("definitions").insert,
        {
            "definition_hash": definition_hash,
            "workflow_id": workflow.workflow_id,
            "version": workflow.version,
            "body": to_json(workflow.body()),
        },
    )


async def get(conn: Connection, definition_hash: str) -> Workflow:
    cursor = await conn.execute(queries("definitions").get, {"definition_hash": definition_hash})
    row = await cursor.fetchone()
    if row is None:
        raise NotFoundError(f"there is no definition {definition_hash}")
    return Workflow.model_validate(Definition.from_row(row).body)
