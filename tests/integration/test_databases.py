"""The promise of `tests.databases`: no test sees what another one did."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from tests.databases import ReusedDatabase

JOB = """
    INSERT INTO dagapp.dag_jobs (job_id, workflow_id, status, started_at, completed_at)
    VALUES ('a', 'hello_world', 'failed', now(), now())
"""
MANY = """
    INSERT INTO dagapp.dag_definitions (definition_hash, workflow_id, version, body)
    SELECT n, 'hello_world', 1, '{}' FROM generate_series(1, 50000) AS n
"""
ITEM = """{
    "id": "b", "collection": "a", "geometry": {"type": "Point", "coordinates": [0, 0]},
    "properties": {"datetime": "2024-01-01T00:00:00Z"}
}"""
EVENT = "INSERT INTO dagapp.dag_job_events (job_id, event_type) VALUES ('a', 'job_created') RETURNING event_id"


@pytest.fixture
def reused(server: str, migrated_template: str) -> Iterator[ReusedDatabase]:
    reused = ReusedDatabase(server, migrated_template)
    yield reused
    reused.drop()


def execute(reused: ReusedDatabase, *statements: str) -> list[Any]:
    with psycopg.connect(reused.url(), autocommit=True) as conn:
        cursors = [conn.execute(statement.encode()) for statement in statements]
        return cursors[-1].fetchall() if cursors[-1].description else []


def test_rows_are_deleted_and_sequences_begin_again(reused: ReusedDatabase) -> None:
    url = reused.url()
    for _ in range(2):
        assert execute(reused, JOB, EVENT) == [(1,)]
        reused.clean()
        assert reused.url() == url
        assert execute(reused, "SELECT FROM dagapp.dag_jobs") == []


def test_seeds_are_put_back(reused: ReusedDatabase) -> None:
    url, before = reused.url(), execute(reused, "SELECT * FROM app.platforms ORDER BY 1")
    for change in ("DELETE FROM app.platforms", "UPDATE app.platforms SET display_name = 'another'"):
        execute(reused, change)
        reused.clean()
        assert execute(reused, "SELECT * FROM app.platforms ORDER BY 1") == before
    assert reused.url() == url


def test_tables_and_schemas_that_were_added_are_dropped(reused: ReusedDatabase) -> None:
    url, query = reused.url(), "SELECT oid::regclass::text FROM pg_class WHERE relkind IN ('r', 'p') ORDER BY 1"
    before = execute(reused, query)
    execute(
        reused,
        "CREATE SCHEMA geo",
        "CREATE TABLE geo.layer (a int REFERENCES spatial_ref_sys)",
        "CREATE TABLE app.more ()",
        """SELECT pgstac.create_collection('{"id": "a"}')""",
        f"SELECT pgstac.create_item('{ITEM}')",
    )
    assert len(execute(reused, query)) == len(before) + 3
    reused.clean()
    assert reused.url() == url
    assert execute(reused, query) == before
    assert execute(reused, "SELECT FROM pgstac.partitions") == execute(reused, "SELECT FROM pgstac.collections") == []


def test_a_change_that_was_rolled_back_costs_no_copy(reused: ReusedDatabase) -> None:
    url = reused.url()
    execute(reused, "BEGIN", "CREATE TABLE app.more (a int)", "ROLLBACK", "CREATE TEMPORARY TABLE passing (a int)")
    reused.clean()
    assert reused.url() == url


@pytest.mark.parametrize(
    "change",
    [
        "CREATE VIEW app.more AS SELECT 1",
        "ALTER TABLE dagapp.dag_jobs ADD COLUMN more int",
        "ALTER TABLE dagapp.dag_jobs DISABLE TRIGGER ALL",
        "DROP INDEX dagapp.idx_dag_jobs_created",
        "CREATE FUNCTION app.more() RETURNS int LANGUAGE sql RETURN 1",
        "GRANT SELECT ON app.platforms TO PUBLIC",
        "ALTER TYPE dagapp.job_status ADD VALUE 'more'",
        "ANALYZE catalogue.schema_objects",
        "DELETE FROM catalogue.schema_objects",
        MANY,
        "DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET work_mem = 1024', current_database()); END $$",
    ],
)
def test_what_cannot_be_undone_costs_a_copy(reused: ReusedDatabase, change: str) -> None:
    url = reused.url()
    execute(reused, change)
    reused.clean()
    assert reused.url() != url


def test_a_session_that_was_left_open_costs_a_copy(reused: ReusedDatabase) -> None:
    url = reused.url()
    with psycopg.connect(url, autocommit=True) as left:
        reused.clean()
        with pytest.raises(psycopg.OperationalError):
            left.execute("SELECT")
    assert reused.url() != url
