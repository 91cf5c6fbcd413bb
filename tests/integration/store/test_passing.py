"""Errors that pass, made by a real server."""

from __future__ import annotations

import psycopg
import pytest

from geomill.errors import ConflictError, DatabaseUnreachable
from geomill.store.passing import passes, spoils_session
from geomill.store.pool import Pool, open_pool


async def _error_of(pool: Pool, *statements: str) -> psycopg.Error:
    try:
        async with pool.connection() as conn:
            for statement in statements:
                await conn.execute(statement)
    except psycopg.Error as error:
        return error
    pytest.fail("no statement failed")


@pytest.mark.parametrize(
    ("statements", "spoilt"),
    [
        (("SET default_transaction_read_only = on", "CREATE TABLE refused (n int)"), True),
        (("SET statement_timeout = 1", "SELECT pg_sleep(10)"), False),
        (("SELECT pg_terminate_backend(pg_backend_pid())",), True),
        (("DO $$ BEGIN RAISE SQLSTATE '25P03'; END $$",), True),
        (("DO $$ BEGIN RAISE SQLSTATE '40001'; END $$",), False),
        (("DO $$ BEGIN RAISE SQLSTATE '40P01'; END $$",), False),
        (("DO $$ BEGIN RAISE SQLSTATE '55P03'; END $$",), False),
        (("DO $$ BEGIN RAISE SQLSTATE '53100'; END $$",), False),
        (("DO $$ BEGIN RAISE SQLSTATE '53300'; END $$",), False),
    ],
)
async def test_what_passes(empty_database: str, statements: tuple[str, ...], spoilt: bool) -> None:
    async with open_pool(empty_database, size=1) as pool:
        async with pool.connection() as conn:
            session = conn.pgconn.backend_pid
        error = await _error_of(pool, *statements)
        assert passes(error)
        assert spoils_session(error) is spoilt
        async with pool.connection() as conn:
            assert (conn.pgconn.backend_pid != session) is spoilt
            await conn.execute("RESET statement_timeout")
            await conn.execute("SELECT 1")


async def test_what_spoils_one_session_may_have_spoiled_the_others(empty_database: str) -> None:
    """Sessions that begin afterwards are kept."""
    async with open_pool(empty_database, size=2) as pool:
        async with pool.connection() as first, pool.connection() as second:
            before = {first.pgconn.backend_pid, second.pgconn.backend_pid}
        assert passes(await _error_of(pool, "SET default_transaction_read_only = on", "CREATE TABLE refused (n int)"))
        async with pool.connection() as first, pool.connection() as second:
            after = {first.pgconn.backend_pid, second.pgconn.backend_pid}
        assert not before & after
        async with pool.connection() as first, pool.connection() as second:
            assert {first.pgconn.backend_pid, second.pgconn.backend_pid} == after


async def test_a_plan_that_a_migration_has_changed(empty_database: str) -> None:
    """The statement runs inside a transaction, which cannot run it again by itself."""
    async with open_pool(empty_database, size=2) as pool:
        async with pool.connection() as conn:
            await conn.execute("CREATE TABLE grown (n int)")
            await conn.execute("SELECT * FROM grown", prepare=True)
        async with pool.connection() as first, pool.connection() as second:
            await second.execute("ALTER TABLE grown ADD COLUMN more int")
            with pytest.raises(psycopg.errors.FeatureNotSupported) as raised:
                async with first.transaction():
                    await first.execute("SELECT * FROM grown", prepare=True)
        assert passes(raised.value)
        assert spoils_session(raised.value)


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT 1 / 0",
        "SELECT nothing",
        "SELECT 'x'::int",
        "DO $$ BEGIN RAISE SQLSTATE '54000'; END $$",
        "DO $$ BEGIN RAISE SQLSTATE '0A000'; END $$",
        "DO $$ BEGIN RAISE EXCEPTION 'refused'; END $$",
    ],
)
async def test_what_does_not_pass(empty_database: str, statement: str) -> None:
    async with open_pool(empty_database, size=1) as pool:
        error = await _error_of(pool, statement)
        assert not passes(error)
        assert not spoils_session(error)


def test_errors_of_ours() -> None:
    assert passes(DatabaseUnreachable("no connection"))
    assert not passes(ConflictError("another process runs as this"))
    assert not passes(ValueError("x"))
