"""Numbered steps of the migration, on tables that have rows."""

from __future__ import annotations

import asyncio
from typing import Any

import psycopg
import pytest

from geomill.domain.schema_step import SchemaStep
from geomill.errors import ConflictError, UnavailableError
from geomill.store import steps as steps_module
from geomill.store.connection import connect
from geomill.store.migrate import migrate, plan
from geomill.store.presence import lacking
from geomill.store.steps import MigrationStep, Moment, StepDatabase, applied_numbers
from tests.integration.store.models import model, text

NOTE = (model(fields={"note": text(20, "x")}), SchemaStep)
REMARK = (model(fields={"remark": text(20, "x")}), SchemaStep)
BOTH = (model(fields={"note": text(20, "x"), "remark": (str | None, None)}), SchemaStep)
RENAME = "ALTER TABLE lab.things RENAME COLUMN note TO remark"
BACKFILL = "UPDATE lab.things SET remark = note WHERE remark IS NULL"
BATCH = """
    UPDATE lab.things SET remark = note
    WHERE ctid = ANY (ARRAY(SELECT ctid FROM lab.things WHERE remark IS NULL LIMIT 10))
"""

Conn = psycopg.AsyncConnection[Any]


def step(statements: str, moment: Moment = Moment.BEFORE, number: int = 1) -> MigrationStep:
    return MigrationStep(number, "do it", moment, StepDatabase.INSIDE, statements)


async def filled(conn: Conn, rows: int = 25) -> None:
    """A database of an earlier release, which had no steps, with rows."""
    await migrate(conn, NOTE[:1], steps=())
    await conn.execute("INSERT INTO lab.things (id, note) SELECT n, 'n' || n FROM generate_series(1, %s) AS n", (rows,))
    await conn.commit()


async def column(conn: Conn, name: str) -> list[Any]:
    cursor = await conn.execute(f"SELECT {name} FROM lab.things ORDER BY id::integer")
    values = [row[0] for row in await cursor.fetchall()]
    await conn.commit()
    return values


async def numbers(conn: Conn) -> set[int]:
    async with conn.transaction():
        return await applied_numbers(conn)


async def test_a_column_is_renamed_and_keeps_its_values(conn: Conn) -> None:
    await filled(conn)
    shown = await plan(conn, REMARK, steps=[step(RENAME)])
    assert shown.destructive == ()
    assert "run step 1: do it" in [change.summary for change in shown.permitted]
    assert await column(conn, "note")  # to plan changes nothing
    report = await migrate(conn, REMARK, steps=[step(RENAME)])
    assert report.done == shown.permitted
    assert await column(conn, "remark") == [f"n{number}" for number in range(1, 26)]
    assert await numbers(conn) == {1}
    assert (await migrate(conn, REMARK, steps=[step(RENAME)])).done == ()


async def test_without_its_step_the_same_rename_would_lose_the_values_and_is_refused(conn: Conn) -> None:
    await filled(conn)
    assert [change.summary for change in (await plan(conn, REMARK, steps=[])).destructive] == [
        "drop column note of lab.things"
    ]


async def test_a_new_column_is_filled_after_it_was_added(conn: Conn) -> None:
    await filled(conn)
    await migrate(conn, BOTH, steps=[step(BACKFILL, Moment.AFTER)])
    assert await column(conn, "remark") == await column(conn, "note")


async def test_a_new_database_needs_no_step_and_has_them_recorded(conn: Conn) -> None:
    report = await migrate(conn, REMARK, steps=[step(RENAME), step(BATCH, Moment.BATCHES, 2)])
    assert not [change for change in report.done if change.number]
    assert await numbers(conn) == {1, 2}
    assert (await plan(conn, REMARK, steps=[step(RENAME), step(BATCH, Moment.BATCHES, 2)])).changes == ()


async def test_steps_run_in_the_order_of_their_numbers(conn: Conn) -> None:
    await filled(conn, 1)
    await migrate(conn, REMARK, steps=[step(RENAME)])
    later = [step("UPDATE lab.things SET remark = remark || 'a'", number=2)]
    later += [step("UPDATE lab.things SET remark = remark || 'b'", number=3)]
    await migrate(conn, REMARK, steps=[step(RENAME), *later])
    assert await column(conn, "remark") == ["n1ab"]
    assert await numbers(conn) == {1, 2, 3}


async def test_a_large_table_is_filled_in_batches_and_a_broken_one_goes_on(conn: Conn) -> None:
    await filled(conn)
    stops = "lab.things WHERE remark IS NULL LIMIT 10)) RETURNING 1 / (id::integer - 15)"
    broken = step(BATCH.replace("lab.things WHERE remark IS NULL LIMIT 10))", stops), Moment.BATCHES)
    with pytest.raises(ConflictError, match=r"refuses to run step 1: do it \(division by zero\)"):
        await migrate(conn, BOTH, steps=[broken])
    values = await column(conn, "remark")
    assert 0 < sum(value is not None for value in values) < 25  # what was committed stays
    assert await numbers(conn) == set()
    await migrate(conn, BOTH, steps=[step(BATCH, Moment.BATCHES)])
    assert await column(conn, "remark") == await column(conn, "note")
    assert await numbers(conn) == {1}


async def test_a_step_that_fails_changes_nothing_and_is_named(conn: Conn) -> None:
    await filled(conn)
    bad = step(RENAME + "; ALTER TABLE lab.things RENAME COLUMN lost TO found")
    with pytest.raises(ConflictError, match=r'run step 1: do it \(column "lost" does not exist\)'):
        await migrate(conn, REMARK, steps=[bad])
    assert len(await column(conn, "note")) == 25
    assert await numbers(conn) == set()


async def test_a_rename_waits_a_little_for_readers_and_names_them(conn: Conn, empty_database: str) -> None:
    await filled(conn)
    async with await connect(empty_database) as reader, reader.transaction():
        await reader.execute("SELECT FROM lab.things")
        with pytest.raises(UnavailableError, match=f"process {reader.info.backend_pid}"):
            await plan(conn, REMARK, steps=[step(RENAME)])
    assert len(await column(conn, "note")) == 25


async def test_of_two_processes_that_migrate_at_once_one_runs_the_step(conn: Conn, empty_database: str) -> None:
    await filled(conn)
    add = [step("UPDATE lab.things SET note = note || 'a'")]
    async with await connect(empty_database) as other:
        reports = await asyncio.gather(migrate(conn, NOTE, steps=add), migrate(other, NOTE, steps=add))
    assert sorted(len([change for change in report.done if change.number]) for report in reports) == [0, 1]
    assert (await column(conn, "note"))[0] == "n1a"


async def test_a_process_says_which_step_its_database_lacks(database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    added = step("UPDATE dagapp.dag_jobs SET status = status", Moment.AFTER, 99)
    monkeypatch.setattr(steps_module, "shipped_steps", lambda: (added,))
    async with await connect(database) as conn:
        await conn.execute("COMMENT ON SCHEMA dagapp IS 'geomill schema of another release'")
        assert await lacking(conn) == ["run step 99: do it"]
        await migrate(conn)
        assert await lacking(conn) == []
