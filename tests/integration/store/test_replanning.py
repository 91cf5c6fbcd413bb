"""A migration that changes what a prepared statement returns, as a wider column does, disturbs no session."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest

from geomill.store.pool import Connection, Pool, open_pool
from geomill.store.replanning import has_changed_plan

STATEMENT = "SELECT tenant FROM dagapp.dag_jobs"
WIDER = "ALTER TABLE dagapp.dag_jobs ALTER COLUMN tenant TYPE varchar(100)"


def run(url: str, statement: str) -> None:
    with psycopg.connect(url, autocommit=True) as conn:
        conn.execute(statement)


async def use(conn: Connection) -> None:
    """Often enough to be prepared."""
    for _ in range(7):
        await conn.execute(STATEMENT)


@pytest.mark.parametrize("hot", [True, False])
async def test_a_statement_is_run_again_with_a_new_plan(database: str, hot: bool) -> None:
    async with open_pool(database, size=1, hot=hot) as pool, pool.connection() as conn:
        await use(conn)
        before = await prepared(conn)
        assert before
        run(database, WIDER)
        await use(conn)
        assert before.isdisjoint(await prepared(conn))


async def test_a_transaction_is_lost_and_the_next_one_is_not(pool: Pool, database: str) -> None:
    async with pool.connection() as conn:
        await use(conn)
        run(database, WIDER)
        with pytest.raises(psycopg.errors.FeatureNotSupported) as refusal:
            async with conn.transaction():
                await conn.execute(STATEMENT)
        assert has_changed_plan(refusal.value)
        async with conn.transaction():
            await conn.execute(STATEMENT)


async def test_what_the_server_cannot_do_is_not_tried_again(pool: Pool) -> None:
    async with pool.connection() as conn:
        with pytest.raises(psycopg.errors.FeatureNotSupported) as refusal:
            await conn.execute("SELECT count(*) FROM dagapp.dag_jobs FOR UPDATE")
        assert not has_changed_plan(refusal.value)


async def prepared(conn: Connection) -> set[Any]:
    """When the session's statements were prepared."""
    rows = await (await conn.execute("SELECT prepare_time FROM pg_prepared_statements", prepare=False)).fetchall()
    return {row["prepare_time"] for row in rows}
