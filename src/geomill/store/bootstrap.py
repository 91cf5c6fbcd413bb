"""The schema over HTTP: GET /api/v1/bootstrap/ddl and POST /api/v1/bootstrap/migrate?confirm=yes."""

from __future__ import annotations

from typing import Any

from psycopg import AsyncConnection

from geomill.errors import InputError
from geomill.store.ddl import schema_text
from geomill.store.migrate import MigrationReport, migrate
from geomill.store.presence import lacking, may_compare


def bootstrap_ddl() -> str:
    return schema_text()


async def bootstrap_migrate(conn: AsyncConnection[Any], *, confirm: bool) -> MigrationReport:
    """A gateway whose role owns nothing says that there is nothing to do, or who has to."""
    if not confirm:
        raise InputError("a migration changes the database and 'confirm' was not given", remedy="add confirm=yes")
    if not await may_compare(conn) and not await lacking(conn):
        return MigrationReport(())
    return await migrate(conn)
