from __future__ import annotations

import pytest

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
