"""Reports about assets for operators."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Any, LiteralString

from geomill.sql import queries

if TYPE_CHECKING:  # the command line needs the names of the reports, and no database
    from geomill.store.pool import Connection


class ReportName(StrEnum):
    STUCK = "stuck"
    FAILED = "failed"
    EXPORTS = "exports"
    SLA = "sla"
    RETRIED = "retried"
    LOAD = "load"


DEFAULT_SECONDS = {ReportName.STUCK: 3600.0, ReportName.SLA: 7 * 86_400.0}
"""The default of `seconds`: how long is too long, or how far back to look."""


async def read(
    conn: Connection, report: ReportName, *, seconds: float | None = None, limit: int = 100
) -> list[dict[str, Any]]:
    parameters = {"seconds": seconds or DEFAULT_SECONDS.get(report, 0.0), "limit": limit}
    cursor = await conn.execute(_statement(report), parameters)
    return await cursor.fetchall()


def _statement(report: ReportName) -> LiteralString:
    statements: dict[ReportName, LiteralString] = {
        ReportName.STUCK: queries("reports").stuck,
        ReportName.FAILED: queries("reports").failed,
        ReportName.EXPORTS: queries("reports").exports,
        ReportName.SLA: queries("reports").sla,
        ReportName.RETRIED: queries("reports").retried,
        ReportName.LOAD: queries("reports").load,
    }
    return statements[report]
