"""The fingerprint that a migration leaves in the database, and what commands conclude from it."""

from __future__ import annotations

import psycopg
import pytest

from geomill.cli.context import make_ready
from geomill.errors import ConflictError, DestructiveMigration, UnavailableError
from geomill.store import fingerprint
from geomill.store.connection import connect
from geomill.store.migrate import migrate

DAMAGE = "DROP INDEX dagapp.idx_dag_jobs_owner"
FORGET = "COMMENT ON SCHEMA dagapp IS NULL"
OTHER = "COMMENT ON SCHEMA dagapp IS 'geomill schema of another release'"


def run(url: str, *statements: str) -> None:
    with psycopg.connect(url, autocommit=True) as conn:
        for statement in statements:
            conn.execute(statement)


async def matches(url: str) -> bool:
    async with await connect(url) as conn:
        return await fingerprint.matches(conn)


async def test_a_command_notices_what_was_lost_since_the_last_migration(database: str) -> None:
    assert await matches(database)
    await make_ready(database, private=False)
    run(database, DAMAGE)
    with pytest.raises(ConflictError, match=r"the index idx_dag_jobs_owner on dagapp\.dag_jobs is missing"):
        await make_ready(database, private=False)
    await make_ready(database, private=True)
    await make_ready(database, private=False)


@pytest.mark.parametrize("mark", [FORGET, OTHER])
async def test_after_another_release_a_command_looks_itself(database: str, mark: str) -> None:
    run(database, mark)
    await make_ready(database, private=False)  # it looks, and all is there
    assert not await matches(database)  # a server of others is only read
    run(database, DAMAGE)
    with pytest.raises(ConflictError, match="schema"):
        await make_ready(database, private=False)
    await make_ready(database, private=True)
    assert await matches(database)
    run(database, mark)
    await make_ready(database, private=True)  # nothing to do, but the next command need not look
    assert await matches(database)


async def test_a_migration_that_is_refused_or_breaks_off_leaves_no_mark(database: str) -> None:
    run(database, OTHER, "ALTER TABLE dagapp.dag_jobs ADD COLUMN of_a_newer_release integer")
    await make_ready(database, private=True)  # what is more does not disturb
    async with await connect(database) as conn:
        with pytest.raises(DestructiveMigration):
            await migrate(conn)
    assert not await matches(database)
    run(database, "ALTER TABLE dagapp.dag_jobs DROP COLUMN of_a_newer_release", DAMAGE)
    with psycopg.connect(database) as holder:
        holder.execute("LOCK TABLE dagapp.dag_jobs IN ACCESS EXCLUSIVE MODE")
        async with await connect(database) as conn:
            with pytest.raises(UnavailableError, match="waited in vain"):
                await migrate(conn, lock_timeout=0.2)
    assert not await matches(database)
