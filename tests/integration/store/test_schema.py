"""The generated schema in a real database."""

from __future__ import annotations

import time

from geomill.domain.reserved import RESERVED
from geomill.domain.tables import TABLES
from geomill.sql import schema_sql
from geomill.store.describe import describe, table_name, view_names
from geomill.store.migrate import migrate, plan
from geomill.store.schema_reading import read_live, read_models


async def test_the_committed_script_makes_exactly_the_models_schema(conn):
    await conn.execute(schema_sql().encode())
    assert (await plan(conn, steps=())).changes == ()


async def test_the_catalogue_says_what_the_models_say(migrated):
    live, declared = await read_live(migrated, TABLES), await read_models(migrated, TABLES)
    assert live == declared
    model = describe(TABLES)
    assert live.enums == model.enums
    assert set(live.tables) == set(model.tables)
    for name, table in model.tables.items():
        assert list(live.tables[name].columns) == list(table.columns)
        assert set(live.tables[name].constraints) == set(table.constraints)
        assert set(live.tables[name].indexes) == set(table.indexes)
        assert live.tables[name].storage == table.storage


async def test_a_second_migration_does_nothing(conn):
    first = await migrate(conn)
    created = [f"create table {table_name(model)}" for model in TABLES]
    created += [f"create view {name}" for name in view_names(TABLES)]
    assert [change.summary for change in first.done][-len(created) :] == created
    assert (await migrate(conn)).done == ()


async def test_planning_leaves_nothing_behind_and_is_quick(migrated):
    began = time.perf_counter()
    await plan(migrated)
    assert time.perf_counter() - began < 5
    cursor = await migrated.execute("SELECT count(*) FROM pg_namespace WHERE nspname LIKE 'geomill%'")
    assert await cursor.fetchone() == (0,)


async def test_reserved_words_are_those_of_the_server(conn):
    cursor = await conn.execute("SELECT word FROM pg_get_keywords() WHERE catcode IN ('R', 'T', 'C')")
    assert {word for (word,) in await cursor.fetchall()} <= RESERVED
