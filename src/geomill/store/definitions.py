"""Pinned workflow definitions in the database."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

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


@dataclass(frozen=True, slots=True)
class DefinitionUse:
    """A definition that jobs were pinned to, and how many of the workflow's newest jobs have it."""

    definition_hash: str
    version: int
    first_used_at: datetime
    recent_jobs: int
    last_used_at: datetime | None


async def versions(
    conn: Connection, workflow_id: str, *, limit: int, sample: int, before: tuple[datetime, str] | None = None
) -> list[DefinitionUse]:
    """Return the definitions of a workflow, the newest first. Jobs are counted among the newest `sample` jobs."""
    moment, definition_hash = before or (None, None)
    parameters = {
        "workflow_id": workflow_id,
        "limit": limit,
        "sample": sample,
        "before": moment,
        "before_id": definition_hash,
    }
    cursor = await conn.execute(queries("definitions").versions, parameters)
    return [DefinitionUse(**row) for row in await cursor.fetchall()]


async def find(conn: Connection, definition_hash: str) -> Definition | None:
    """Return a definition as it was stored, which may be by an older release."""
    row = await (await conn.execute(queries("definitions").get, {"definition_hash": definition_hash})).fetchone()
    return Definition.from_row(row) if row else None
