"""The operators' audit in the database. Rows are only added."""

from __future__ import annotations

from typing import Any

from geomill.domain.access.operator_audit import OperatorAction, OperatorAuditEntry
from geomill.domain.jsonvalue import to_json
from geomill.sql import queries
from geomill.store.pool import Connection

LONGEST_TARGET = 200


async def add(
    conn: Connection, action: OperatorAction, target: str, actor: str, reason: str | None = None, **details: Any
) -> None:
    """Write who changed what, in the transaction of the change."""
    parameters = {
        "action": action.value,
        "target": target[:LONGEST_TARGET],
        "actor": actor,
        "reason": reason,
        "details": to_json(details),
    }
    await conn.execute(queries("operator_audit").add, parameters)


async def page(
    conn: Connection, *, action: OperatorAction | None, limit: int, before: int | None = None
) -> list[OperatorAuditEntry]:
    """Return entries, the newest first. `before` is the number of the last one of the page before."""
    parameters = {"action": action.value if action else None, "limit": limit, "before": before}
    cursor = await conn.execute(queries("operator_audit").page, parameters)
    return [OperatorAuditEntry.from_row(row) for row in await cursor.fetchall()]
