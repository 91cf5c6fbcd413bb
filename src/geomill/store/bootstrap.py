"""The schema over HTTP: GET /api/v1/bootstrap/ddl and POST /api/v1/bootstrap/migrate?confirm=yes."""

from __future__ import annotations

from typing import Any

from psycopg import AsyncConnection

from geomill.errors import InputError
from geomill.store.ddl import schema_text
from geomill.store.migrate import Report, migrate


def bootstrap_ddl() -> str:
    return schema_text()


async def bootstrap_migrate(conn: AsyncConnection[Any], *, confirm: bool) -> Report:
    if not confirm:
        raise InputError("a migration changes the database and 'confirm' was not given", remedy="add confirm=yes")
    return await migrate(conn)
