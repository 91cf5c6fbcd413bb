"""Every difference that can be made up for is seen, made up for, and gone."""

from __future__ import annotations

from typing import Annotated, Any

import pytest
from pydantic import Field

from geomill.domain.entity import Check, ForeignKey, Identity, Index, Now, SqlType, Unique
from geomill.errors import ConflictError
from geomill.store.migrate import migrate, plan
from tests.integration.store.models import chain, model, phase, text

PRIORITY = """
    ALTER TABLE dagapp.dag_jobs
        DROP CONSTRAINT dag_jobs_priority, ADD CONSTRAINT dag_jobs_priority CHECK ({}) {}
"""

DAMAGE = {
    "index": ("DROP INDEX dagapp.idx_dag_jobs_owner", "create index idx_dag_jobs_owner on dagapp.dag_jobs"),
    "other index": (
        "DROP INDEX dagapp.idx_dag_jobs_owner; CREATE INDEX idx_dag_jobs_owner ON dagapp.dag_jobs (owner_id)",
        "change index idx_dag_jobs_owner on dagapp.dag_jobs",
    ),
    "column": (
        "ALTER TABLE dagapp.dag_jobs DROP COLUMN callback_url",
        "add column callback_url to dagapp.dag_jobs",
    ),
    "check": (
        "ALTER TABLE dagapp.dag_jobs DROP CONSTRAINT dag_jobs_priority",
        "add constraint dag_jobs_priority of dagapp.dag_jobs",
    ),
    "other check": (
        PRIORITY.format("priority > 3", ""),
        "change constraint dag_jobs_priority of dagapp.dag_jobs",
    ),
    "check not validated": (
        PRIORITY.format("priority BETWEEN -5 AND 10", "NOT VALID"),
        "change constraint dag_jobs_priority of dagapp.dag_jobs",
    ),
    "foreign key": (
        "ALTER TABLE dagapp.dag_jobs DROP CONSTRAINT dag_jobs_definition_hash_fkey",
        "add constraint dag_jobs_definition_hash_fkey of dagapp.dag_jobs",
    ),
    "trigger": (
        "DROP TRIGGER dag_jobs_status_transitions ON dagapp.dag_jobs",
        "create trigger dag_jobs_status_transitions on dagapp.dag_jobs",
    ),
    "function": (
        "CREATE OR REPLACE FUNCTION dagapp.refuse_transition() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN END'",
        "create function dagapp.refuse_transition",
    ),
    "default": (
        "ALTER TABLE dagapp.dag_jobs ALTER COLUMN status DROP DEFAULT",
        "set default of column status of dagapp.dag_jobs",
    ),
    "other default": (
        "ALTER TABLE dagapp.dag_jobs ALTER COLUMN priority SET DEFAULT 5",
        "set default of column priority of dagapp.dag_jobs",
    ),
    "narrow column": (
        "ALTER TABLE dagapp.dag_jobs ALTER COLUMN callback_url TYPE varchar(100)",
        "change column callback_url from character varying(100) to character varying(512) of dagapp.dag_jobs",
    ),
    "not null": (
        "ALTER TABLE dagapp.dag_jobs ALTER COLUMN callback_url SET NOT NULL",
        "allow NULL in column callback_url of dagapp.dag_jobs",
    ),
    "storage": (
        "ALTER TABLE dagapp.dag_jobs RESET (fillfactor)",
        "set storage parameters of dagapp.dag_jobs",
    ),
    "table comment": (
        "COMMENT ON TABLE dagapp.dag_queue IS NULL",
        "comment on dagapp.dag_queue",
    ),
    "column comment": (
        "COMMENT ON COLUMN dagapp.dag_jobs.priority IS 'old'",
        "comment on column priority of dagapp.dag_jobs",
    ),
    "comment too many": (
        "COMMENT ON COLUMN dagapp.dag_jobs.workflow_id IS 'old'",
        "comment on column workflow_id of dagapp.dag_jobs",
    ),
    "table": ("DROP TABLE dagapp.dag_schedules", "create table dagapp.dag_schedules"),
    "type": (
        "DROP TABLE dagapp.dag_schedules; DROP TYPE dagapp.catch_up",
        "create type dagapp.catch_up",
    ),
    "extension": ("DROP EXTENSION pg_trgm CASCADE", "create extension pg_trgm"),
}


@pytest.mark.parametrize(("damage", "summary"), DAMAGE.values(), ids=DAMAGE)
async def test_damage_is_seen_and_repaired(migrated, damage, summary):
    await migrated.execute(damage)
    planned = await plan(migrated)
    assert planned.destructive == ()
    assert summary in [change.summary for change in planned.permitted]
    report = await migrate(migrated)
    assert report.done == planned.permitted
    assert (await plan(migrated)).changes == ()


GEOMETRY: dict[str, Any] = {
    "fields": {"place": (Annotated[str, SqlType("geometry(Point, 4326)")] | None, None)},
    "indexes": (Index("things_place", ("place",), method="gist"),),
}

GROWTH: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "nullable column": ({}, {"fields": {"note": (str | None, None)}}),
    "column with default": ({}, {"fields": {"size": (int, 3), "extra": (dict, Field(default_factory=dict))}}),
    "column with comment": ({}, {"fields": {"note": (str | None, Field(None, description="It's a note"))}}),
    "identity column": ({}, {"fields": {"number": (Identity, ...)}}),
    "time of the database": ({}, {"fields": {"made_at": (Now, ...)}}),
    "varchar to text": ({"fields": {"note": text(9, "x")}}, {"fields": {"note": (str, "x")}}),
    "reserved word": ({}, {"fields": {"order": (int, 0)}, "indexes": (Index("by_order", ("order DESC",)),)}),
    "unique": ({}, {"fields": {"tag": (str | None, None)}, "unique": (Unique("things_tag", ("tag",)),)}),
    "gin index": (
        {"fields": {"extra": (dict, Field(default_factory=dict))}},
        {"fields": {"extra": (dict, Field(default_factory=dict))}, "indexes": (Index("i", ("extra",), method="gin"),)},
    ),
    "expression index": ({}, {"indexes": (Index("by_lower", ("lower(id)",), unique=True),)}),
    "storage": ({}, {"storage": {"fillfactor": "50"}}),
    "geometry column": ({}, GEOMETRY),
}


@pytest.mark.parametrize(("old", "new"), GROWTH.values(), ids=GROWTH)
async def test_growth_with_rows_in_the_table(conn, old, new):
    await migrate(conn, [model(**old)])
    await conn.execute("INSERT INTO lab.things (id) VALUES ('a')")
    assert (await migrate(conn, [model(**new)])).done
    assert (await plan(conn, [model(**new)])).changes == ()


async def test_a_type_of_an_extension_that_is_not_there_yet(conn):
    await conn.execute("DROP SCHEMA pgstac CASCADE; DROP EXTENSION postgis")
    planned = await plan(conn, [model(**GEOMETRY)])
    assert (await migrate(conn, [model(**GEOMETRY)])).done == planned.permitted


async def test_a_required_column_comes_to_an_empty_table(conn):
    await migrate(conn, [model()])
    await migrate(conn, [model(fields={"size": (int, ...)})])
    assert (await plan(conn, [model(fields={"size": (int, ...)})])).changes == ()


async def test_a_foreign_key_to_a_table_that_is_new_too(conn):
    await migrate(conn, [model("books")])
    foreign = (ForeignKey(("shelf",), "lab.shelves", ("id",), on_delete="SET NULL"),)
    grown = [model("shelves"), model("books", {"shelf": (str | None, None)}, foreign_keys=foreign)]
    await migrate(conn, grown)
    assert (await plan(conn, grown)).changes == ()


def versions_of_a_machine() -> tuple[list[Any], list[Any]]:
    """The second has two more values, and a check, an index, a trigger and a default that use them."""
    old, new = phase("draft", "done"), phase("idea", "draft", "review", "done")
    return [model(fields={"phase": (old, old("draft"))}, states=(chain(old),))], [
        model(
            fields={"phase": (new, new("idea"))},
            states=(chain(new),),
            checks=(Check("things_phase", "phase <> 'review' OR id <> ''"),),
            indexes=(Index("things_in_review", ("id",), where="phase IN ('idea', 'review')"),),
        )
    ]


async def test_enum_values_that_the_same_migration_uses(conn):
    old, new = versions_of_a_machine()
    await migrate(conn, old)
    report = await migrate(conn, new)
    assert [change.summary for change in report.done][:2] == [
        "add value 'idea' to lab.phase",
        "add value 'review' to lab.phase",
    ]
    assert (await plan(conn, new)).changes == ()
    cursor = await conn.execute("SELECT enum_range(NULL::lab.phase)::text")
    assert await cursor.fetchone() == ("{idea,draft,review,done}",)


async def test_rows_that_break_a_new_check_stop_everything(conn):
    await migrate(conn, [model(fields={"size": (int, 0)})])
    await conn.execute("INSERT INTO lab.things (id, size) VALUES ('a', -1)")
    checked = [model(fields={"size": (int, 0), "note": (str | None, None)}, checks=(Check("positive", "size > 0"),))]
    with pytest.raises(ConflictError, match=r"add constraint positive of lab\.things"):
        await migrate(conn, checked)
    assert "add column note to lab.things" in [change.summary for change in (await plan(conn, checked)).permitted]


async def test_what_no_model_names_is_left_alone(migrated):
    await migrated.execute(
        "CREATE TABLE dagapp.notes_of_mine (id int); CREATE TYPE dagapp.mood AS ENUM ('good');"
        "CREATE INDEX idx_of_mine ON dagapp.dag_jobs (submitted_by);"
        "ALTER TABLE dagapp.dag_jobs SET (autovacuum_enabled = on)"
    )
    assert (await plan(migrated)).changes == ()
