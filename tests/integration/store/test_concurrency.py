"""Many processes, one lock; and no waiting for ever."""

from __future__ import annotations

import asyncio

import pytest

from geomill.errors import UnavailableError
from geomill.store.connection import connect
from geomill.store.migrate import LOCK_KEY, migrate, plan
from tests.integration.store.models import model
from tests.integration.store.test_additive import versions_of_a_machine


async def in_a_process_of_its_own(url, tables):
    async with await connect(url) as conn:
        return await migrate(conn, tables) if tables else await migrate(conn)


async def test_eight_at_once_and_one_does_it(empty_database):
    reports = await asyncio.gather(*(in_a_process_of_its_own(empty_database, None) for _ in range(8)))
    assert sum(bool(report.done) for report in reports) == 1


async def test_eight_at_once_where_enum_values_are_new(empty_database, conn):
    old, new = versions_of_a_machine()
    await migrate(conn, old)
    reports = await asyncio.gather(*(in_a_process_of_its_own(empty_database, new) for _ in range(8)))
    done = [change for report in reports for change in report.done]
    assert len(done) == len(set(done))  # two processes may share the work, none repeats it
    assert (await plan(conn, new)).changes == ()


async def test_the_second_waits_for_the_first(empty_database, conn):
    async with conn.transaction():
        await conn.execute("SELECT pg_advisory_xact_lock(%s)", [LOCK_KEY])
        second = asyncio.create_task(in_a_process_of_its_own(empty_database, [model()]))
        await until_somebody_waits(conn)
        assert not second.done()
    assert (await second).done


async def test_a_reader_that_holds_the_table_is_named(empty_database, conn):
    await migrate(conn, [model()])
    async with await connect(empty_database) as reader, reader.transaction():
        await reader.execute("SELECT FROM lab.things")
        with pytest.raises(UnavailableError, match=f"process {reader.info.backend_pid} \\(geomill, idle in tr"):
            await migrate(conn, [model(fields={"note": (str | None, None)})], lock_timeout=0.05)
    assert len((await migrate(conn, [model(fields={"note": (str | None, None)})])).done) == 1


async def test_whatever_the_isolation_level_is(empty_database, conn):
    await conn.set_autocommit(False)
    await conn.execute("SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL SERIALIZABLE")
    await conn.commit()
    assert (await migrate(conn, [model()])).done
    assert (await in_a_process_of_its_own(empty_database, [model()])).done == ()


async def test_it_does_not_commit_what_somebody_else_began(conn):
    async with conn.transaction():
        with pytest.raises(RuntimeError, match="no transaction is open"):
            await migrate(conn)


async def until_somebody_waits(conn, kind="advisory"):
    waiting = (
        "SELECT count(*) FROM pg_locks l JOIN pg_database d ON d.oid = l.database"
        " WHERE d.datname = current_database() AND l.locktype = %s AND NOT l.granted"
    )
    async with asyncio.timeout(10):
        while await (await conn.execute(waiting, [kind])).fetchone() != (1,):  # noqa: ASYNC110  the event is in the server
            await asyncio.sleep(0.01)


async def test_a_deadlock_with_a_process_that_runs_begins_again(database):
    """A migration locks table after table; a process that runs may do it in the other order."""
    async with await connect(database) as runs, await connect(database) as migrates:
        await runs.execute("DROP INDEX dagapp.idx_dag_jobs_owner, dagapp.idx_dag_callbacks_due")
        await runs.execute("SET deadlock_timeout = '60s'")
        await migrates.execute("SET deadlock_timeout = '3s'")
        async with runs.transaction():
            await runs.execute("LOCK TABLE dagapp.dag_callbacks IN ROW EXCLUSIVE MODE")
            migration = asyncio.create_task(migrate(migrates, lock_timeout=60.0))
            await until_somebody_waits(runs, "relation")
            await runs.execute("LOCK TABLE dagapp.dag_jobs IN ROW EXCLUSIVE MODE")
        summaries = [change.summary for change in (await migration).done]
        assert summaries == [
            "create index idx_dag_jobs_owner on dagapp.dag_jobs",
            "create index idx_dag_callbacks_due on dagapp.dag_callbacks",
        ]
