from __future__ import annotations

from typing import Any

import psycopg
import pytest

from geomill.store.migrate import migrate


@pytest.fixture
async def migrated(conn: psycopg.AsyncConnection[Any]) -> psycopg.AsyncConnection[Any]:
    await migrate(conn)
    return conn
