"""A migration that would lose data or weaken a guarantee is refused whole. The message has the SQL that does it, and
that SQL works."""

from __future__ import annotations

from typing import Any

import pytest

from geomill.domain.entity import Check, ForeignKey, Index, Unique
from geomill.errors import DestructiveMigration
from geomill.store.migrate import migrate, plan
from geomill.store.schema_reading import read_live
from tests.integration.store.models import chain, model, phase, text

OLD, NEW = phase("draft", "lost", "done"), phase("draft", "done")

LOSSES: dict[str, tuple[dict[str, Any], dict[str, Any], str]] = {
    "column": (
        {"fields": {"note": (str | None, None)}},
        {},
        "ALTER TABLE lab.things DROP COLUMN note",
    ),
    "narrower": (
        {"fields": {"note": text(9, "x")}},
        {"fields": {"note": text(5, "x")}},
        "ALTER TABLE lab.things ALTER COLUMN note TYPE character varying(5) USING note::character varying(5)",
    ),
    "other type": (
        {"fields": {"size": (int | None, None)}},
        {"fields": {"size": (float | None, None)}},
        "ALTER TABLE lab.things ALTER COLUMN size TYPE double precision USING size::double precision",
    ),
    "not null": (
        {"fields": {"size": (int | None, 1)}},
        {"fields": {"size": (int, 1)}},
        "ALTER TABLE lab.things ALTER COLUMN size SET NOT NULL",
    ),
    "default": (
        {"fields": {"size": (int, 1)}},
        {"fields": {"size": (int, ...)}},
        "ALTER TABLE lab.things ALTER COLUMN size DROP DEFAULT",
    ),
    "primary key": (
        {"fields": {"size": (int, 1)}},
        {"fields": {"size": (int, 1)}, "primary_key": ("id", "size")},
        "ALTER TABLE lab.things DROP CONSTRAINT things_pkey, ADD CONSTRAINT things_pkey PRIMARY KEY (id, size)",
    ),
    "check": (
        {"checks": (Check("short", "length(id) < 9"),)},
        {},
        "ALTER TABLE lab.things DROP CONSTRAINT short",
    ),
    "unique": (
        {"fields": {"size": (int, 1)}, "unique": (Unique("one", ("size",)),)},
        {"fields": {"size": (int, 1)}, "unique": (Unique("one", ("size", "id")),)},
        "ALTER TABLE lab.things DROP CONSTRAINT one, ADD CONSTRAINT one UNIQUE (size, id)",
    ),
    "unique index": (
        {"indexes": (Index("one", ("lower(id)",), unique=True),)},
        {"indexes": (Index("one", ("lower(id)",)),)},
        "DROP INDEX lab.one",
    ),
    "foreign key": (
        {"fields": {"up": (str | None, None)}, "foreign_keys": (ForeignKey(("up",), "lab.things", ("id",)),)},
        {"fields": {"up": (str | None, None)}},
        "ALTER TABLE lab.things DROP CONSTRAINT things_up_fkey",
    ),
    "trigger": (
        {"fields": {"phase": (NEW, NEW("draft"))}, "states": (chain(NEW),)},
        {"fields": {"phase": (NEW, NEW("draft"))}},
        "DROP TRIGGER things_phase_transitions ON lab.things",
    ),
    "enum value": (
        {
            "fields": {"phase": (OLD, OLD("draft"))},
            "states": (chain(OLD),),
            "checks": (Check("c", "phase <> 'done' OR id <> ''"),),
            "indexes": (Index("i", ("id",), where="phase = 'draft'"), Index("j", ("phase",))),
        },
        {
            "fields": {"phase": (NEW, NEW("draft"))},
            "states": (chain(NEW),),
            "checks": (Check("c", "phase <> 'done' OR id <> ''"),),
            "indexes": (Index("i", ("id",), where="phase = 'draft'"), Index("j", ("phase",))),
        },
        "ALTER TYPE lab.phase RENAME TO phase_before",
    ),
}


@pytest.mark.parametrize(("old", "new", "statement"), LOSSES.values(), ids=LOSSES)
async def test_refused_whole_and_done_by_hand(conn, old, new, statement):
    before, after = [model(**old)], [model("extra"), model(**new)]
    await migrate(conn, before)
    await conn.execute("INSERT INTO lab.things (id) VALUES ('a')")
    live = await read_live(conn, after)

    with pytest.raises(DestructiveMigration, match="nothing was changed") as caught:
        await migrate(conn, after)
    assert caught.value.statements[0] == statement
    assert await read_live(conn, after) == live

    await conn.execute(";".join(caught.value.statements).encode())
    await migrate(conn, after)
    assert (await plan(conn, after)).changes == ()


async def test_a_retired_constraint_is_dropped_without_asking(conn):
    up = {"up": (str | None, None)}
    await migrate(conn, [model(fields=up, foreign_keys=(ForeignKey(("up",), "lab.things", ("id",)),))])
    report = await migrate(conn, [model(fields=up, retired=("things_up_fkey",))])
    assert [change.summary for change in report.done] == ["drop constraint things_up_fkey of lab.things"]
    await conn.execute("INSERT INTO lab.things (id, up) VALUES ('a', 'nowhere')")


async def test_a_required_column_on_a_table_with_rows(conn):
    await migrate(conn, [model()])
    await conn.execute("INSERT INTO lab.things (id) VALUES ('a')")
    with pytest.raises(
        DestructiveMigration, match="which has rows: the column is NOT NULL and has no default"
    ) as caught:
        await migrate(conn, [model(fields={"size": (int, ...)})])
    assert caught.value.statements == (
        "ALTER TABLE lab.things ADD COLUMN size integer",
        "UPDATE lab.things SET size = ... WHERE size IS NULL",
        "ALTER TABLE lab.things ALTER COLUMN size SET NOT NULL",
    )


async def test_the_message_counts_what_else_there_is(migrated):
    await migrated.execute("ALTER TABLE dagapp.dag_jobs ADD COLUMN a int, ADD COLUMN b int")
    with pytest.raises(DestructiveMigration, match=r"drop column a of dagapp\.dag_jobs and 1 more"):
        await migrate(migrated)
