"""A GeoPackage is a database that somebody else wrote: its views are looked at before anything runs."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from geomill.sdk import Storage
from tests.integration.vector import sources
from tests.integration.vector.steps import Steps, ok

SQUARES = sources.squares(40)
ENDLESS = (
    "CREATE VIEW v AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) "
    "SELECT n.i AS fid, m.geom AS geom, m.name AS name FROM n, made m"
)


@pytest.fixture
def steps(storage: Storage, database: str) -> Steps:
    return Steps(storage, database)


def with_view(folder: Path, *statements: str, layer: str = "v") -> bytes:
    """A file whose only layer of features is what the statements make."""
    path = sources.write(folder / "made.gpkg", sources.table(SQUARES), kind="Polygon", layer="made")
    with closing(sqlite3.connect(path)) as database, database:
        for statement in statements:
            database.execute(statement)
        for table in ("gpkg_contents", "gpkg_geometry_columns"):
            database.execute(f"UPDATE {table} SET table_name = ?", [layer])
    return path.read_bytes()


OTHER = "CREATE TABLE other (fid INTEGER PRIMARY KEY, word TEXT)"
ROWS = "INSERT INTO other SELECT fid, 'word ' || fid FROM made"
UNSAFE = {
    "endless": (ENDLESS,),
    "product": ("CREATE VIEW v AS SELECT a.fid, a.geom, a.name FROM made a, made b, made c, made d, made e, made f",),
    "self join": ("CREATE VIEW v AS SELECT a.* FROM made a JOIN made b ON a.name <> b.name",),
    "view of a view": ("CREATE VIEW w AS SELECT * FROM made", "CREATE VIEW v AS SELECT * FROM w"),
    "doubled": (
        "CREATE VIEW v0 AS SELECT * FROM made",
        *(f"CREATE VIEW v{n} AS SELECT * FROM v{n - 1} UNION ALL SELECT * FROM v{n - 1}" for n in range(1, 16)),
        "CREATE VIEW v AS SELECT * FROM v15",
    ),
    "union": ("CREATE VIEW v AS SELECT * FROM made UNION ALL SELECT * FROM made",),
    "function": ("CREATE VIEW v AS SELECT fid, geom, hex(zeroblob(900000000)) AS name FROM made",),
    "subquery": ("CREATE VIEW v AS SELECT fid, geom, (SELECT count(*) FROM made a, made b, made c) AS name FROM made",),
    "schema": ("CREATE VIEW v AS SELECT rowid AS fid, sql AS geom FROM sqlite_master",),
    "computed": (
        "CREATE TABLE v (fid INTEGER PRIMARY KEY, geom BLOB, name TEXT AS (hex(zeroblob(1000))))",
        "INSERT INTO v (fid, geom) SELECT fid, geom FROM made",
    ),
    "contents": (
        "ALTER TABLE gpkg_ogr_contents RENAME TO kept",
        "CREATE VIEW gpkg_ogr_contents AS SELECT 'made' AS table_name, a.fid AS feature_count FROM made a, made b",
        "CREATE VIEW v AS SELECT * FROM made",
    ),
}


@pytest.mark.parametrize("kind", UNSAFE)
@pytest.mark.slow
def test_a_layer_that_may_never_end_is_refused(steps: Steps, tmp_path: Path, kind: str) -> None:
    """The view is never run; otherwise this test would not end."""
    sources.put(steps.storage, "a.gpkg", with_view(tmp_path, *UNSAFE[kind]))
    run = steps.validate("a.gpkg")
    assert (run.ended.error_code, run.ended.retryable) == ("unsafe_view", False), run.error
    assert "store its rows as a table" in run.error


def test_the_list_of_layers_may_be_no_query(steps: Steps, tmp_path: Path) -> None:
    """The list of layers is the first thing that is read."""
    endless = (
        "CREATE VIEW gpkg_contents AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) "
        "SELECT 'made' || i AS table_name, 'features' AS data_type FROM n"
    )
    path = sources.write(tmp_path / "made.gpkg", sources.table(SQUARES), kind="Polygon", layer="made")
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("ALTER TABLE gpkg_contents RENAME TO kept")
        database.execute(endless)
    sources.put(steps.storage, "a.gpkg", path.read_bytes())
    assert steps.validate("a.gpkg").ended.error_code == "unsafe_view"


SAFE = {
    "columns": ("CREATE VIEW v AS SELECT fid, geom, upper(name) AS name FROM made WHERE number >= 0 ORDER BY name",),
    "one row of another": (
        OTHER,
        ROWS,
        "CREATE VIEW v AS SELECT m.fid, m.geom, o.word AS name FROM made m LEFT JOIN other o ON o.fid = m.fid",
    ),
}


@pytest.mark.parametrize("kind", SAFE)
def test_a_plain_view_is_loaded(steps: Steps, tmp_path: Path, kind: str) -> None:
    sources.put(steps.storage, "a.gpkg", with_view(tmp_path, *SAFE[kind]))
    ok(steps.validate("a.gpkg"))
    assert steps.publish("a.gpkg")["row_count"] == len(SQUARES)


def test_a_view_beside_the_layer_disturbs_nobody(steps: Steps, tmp_path: Path) -> None:
    sources.put(steps.storage, "a.gpkg", with_view(tmp_path, ENDLESS, layer="made"))
    assert steps.publish("a.gpkg")["row_count"] == len(SQUARES)
