"""A search of the catalogue reads what its answer needs, and not what the caller may not see."""

from __future__ import annotations

from typing import Any

from geomill.catalogue import bulk
from geomill.store.pool import Connection, Pool
from tests.integration.catalogue.conftest import an_item

MANY = 3_000


def items(count: int, *, public: int) -> list[dict[str, Any]]:
    return [
        an_item(number % 300 - 150, 10, when=f"{2000 + number % 24}-01-01T00:00:00Z")
        | {"id": f"item-{number}", "collection": "many"}
        | {
            "properties": {
                "datetime": f"{2000 + number % 24}-01-01T00:00:00Z",
                "geomill:public": number % (count // public) == 0,
                "geomill:platform": "ddh",
                "geomill:asset_id": f"a{number}",
            }
        }
        for number in range(count)
    ]


async def rows_read(conn: Connection) -> int:
    await conn.execute("SELECT pg_stat_force_next_flush()")
    row = await (
        await conn.execute(
            "SELECT sum(seq_tup_read + coalesce(idx_tup_fetch, 0)) AS n FROM pg_stat_user_tables"
            " WHERE schemaname = 'pgstac' AND relname LIKE '\\_items\\_%%'",
            [],
        )
    ).fetchone()
    assert row is not None
    return int(row["n"])


async def test_what_is_hidden_is_not_read(pool: Pool) -> None:
    async with pool.connection() as conn:
        await bulk.put_items(conn, items(MANY, public=30), {"many": {"description": "x"}}, platform_id="ddh")
        await conn.execute("ANALYZE")
        before = await rows_read(conn)
        row = await (
            await conn.execute("SELECT catalogue.search_items('{}', false, NULL, NULL, NULL, false) AS found")
        ).fetchone()
        assert row is not None
        assert (row["found"]["numberMatched"], len(row["found"]["features"])) == (30, 10)
        assert await rows_read(conn) - before <= 60
