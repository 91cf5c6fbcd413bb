"""Migration of the external zone's database, which has a catalogue of its own and the exported tables."""

from __future__ import annotations

from geomill.domain.tables import EXTERNAL_TABLES
from geomill.store.connection import connect
from geomill.store.migrate import MigrationPlan, MigrationReport, MigrationStatus, migrate, plan, status


async def migrate_external(url: str) -> MigrationReport:
    async with await connect(url) as conn:
        return await migrate(conn, EXTERNAL_TABLES)


async def plan_external(url: str) -> MigrationPlan:
    async with await connect(url) as conn:
        return await plan(conn, EXTERNAL_TABLES)


async def external_status(url: str) -> MigrationStatus:
    async with await connect(url) as conn:
        return await status(conn, EXTERNAL_TABLES)
