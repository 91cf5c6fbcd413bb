"""How long the schema takes: to write, to create in an empty database, and to find complete."""

from __future__ import annotations

import asyncio
import time

import psycopg

from benchmarks.figures import Figure
from benchmarks.server import database
from geomill.store.connection import connect
from geomill.store.ddl import schema_text
from geomill.store.migrate import migrate


def run() -> list[Figure]:
    begun = time.perf_counter()
    text = schema_text()
    figures = [Figure("DDL of all tables, generated", (time.perf_counter() - begun) * 1000, "ms", f"{len(text)} bytes")]
    with database(migrated=False) as url:
        with psycopg.connect(url, autocommit=True) as conn:
            conn.execute("CREATE EXTENSION postgis")
        figures.append(Figure("migrate an empty database (PostGIS there)", _migrate(url), "ms"))
        figures.append(Figure("migrate again: nothing to do", _migrate(url), "ms"))
    return figures


def _migrate(url: str) -> float:
    async def work() -> float:
        async with await connect(url) as conn:
            begun = time.perf_counter()
            await migrate(conn)
            return (time.perf_counter() - begun) * 1000

    return asyncio.run(work())
