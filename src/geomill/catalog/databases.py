"""The external zone's database: a catalogue of its own, the tables that were exported, and who they belong to."""

from __future__ import annotations

import psycopg
from psycopg.sql import SQL, Identifier

from geomill.domain.tables import EXTERNAL_TABLES
from geomill.sql import queries
from geomill.store.connection import connect
from geomill.store.migrate import Plan, Report, Status, migrate, plan, status


async def create_database(server_url: str, name: str) -> bool:
    """Beside the one of the URL. False if it is there."""
    async with await connect(server_url) as conn:
        try:
            await conn.execute(SQL(queries("migration").create_database).format(name=Identifier(name)))
        except (psycopg.errors.DuplicateDatabase, psycopg.errors.UniqueViolation):  # also when two make it at once
            return False
    return True


async def migrate_external(url: str) -> Report:
    async with await connect(url) as conn:
        return await migrate(conn, EXTERNAL_TABLES)


async def plan_external(url: str) -> Plan:
    async with await connect(url) as conn:
        return await plan(conn, EXTERNAL_TABLES)


async def external_status(url: str) -> Status:
    async with await connect(url) as conn:
        return await status(conn, EXTERNAL_TABLES)
