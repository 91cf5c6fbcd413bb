"""What operators ask about assets, answered from their rows."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Any

from geomill.sql import queries

if TYPE_CHECKING:  # the command line needs the names of the reports, and no database
    from geomill.store.pool import Connection


class ReportName(StrEnum):
    STUCK = "stuck"
    FAILED = "failed"
    SLA = "sla"
    RETRIED = "retried"
    LOAD = "load"


DEFAULT_SECONDS = {ReportName.STUCK: 3600.0, ReportName.SLA: 7 * 86_400.0}
"""How long is too long, and how far back to look."""


async def read(
    conn: Connection, report: ReportName, *, seconds: float | None = None, limit: int = 100
) -> list[dict[str, Any]]:
    parameters = {"seconds": seconds or DEFAULT_SECONDS.get(report, 0.0), "limit": limit}
    cursor = await conn.execute(getattr(queries("reports"), report.value), parameters)
    return await cursor.fetchall()
