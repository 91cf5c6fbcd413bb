from __future__ import annotations

import pytest

from geomill.store.locking import impatient
from geomill.store.pool import open_pool


@pytest.mark.parametrize("hot", [False, True])
async def test_long_values_are_compressed_fast_where_the_server_can(empty_database: str, hot: bool) -> None:
    async with open_pool(empty_database, size=1, hot=hot) as pool, pool.connection() as conn:
        setting = (
            "SELECT setting, 'lz4' = ANY (enumvals) AS can FROM pg_settings WHERE name = 'default_toast_compression'"
        )
        row = await (await conn.execute(setting)).fetchone()
        assert row is not None
        assert row["setting"] == ("lz4" if row["can"] else "pglz")


@pytest.mark.parametrize("hot", [False, True])
async def test_a_transaction_that_is_forgotten_ends(empty_database: str, hot: bool) -> None:
    async with open_pool(empty_database, size=1, hot=hot) as pool, pool.connection() as conn:
        row = await (await conn.execute("SHOW idle_in_transaction_session_timeout")).fetchone()
        assert row == {"idle_in_transaction_session_timeout": "15s" if hot else "1min"}


async def test_sessions_of_the_engine_do_not_wait_for_locks_for_ever(empty_database: str) -> None:
    async with open_pool(empty_database, size=1, hot=True) as pool, pool.connection() as conn:
        async with impatient(conn):
            assert await (await conn.execute("SHOW lock_timeout")).fetchone() == {"lock_timeout": "25ms"}
        assert await (await conn.execute("SHOW lock_timeout")).fetchone() == {"lock_timeout": "500ms"}
