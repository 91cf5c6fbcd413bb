from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import psycopg
import pytest

from geomill.store.connection import connect


@pytest.fixture
async def migrated(database: str) -> AsyncIterator[psycopg.AsyncConnection[Any]]:
    async with await connect(database) as conn:
        yield conn
