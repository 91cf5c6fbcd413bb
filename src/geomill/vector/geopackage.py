"""A look into a GeoPackage before GDAL opens it.

It is a database, so it may hold programs: a view may be a query without an end, and a column may be computed by any
function that GDAL offers. Only tables are read, and views that take at most one row of each other table for a row of
one. SQLite itself says what a view would do: its planner how it would run, its authorizer what it would touch. Neither
runs it. What GDAL reads by itself, because the standard gives it a name, must be a table.
"""

from __future__ import annotations

import re
import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from geomill.datasets.refusals import refused
from geomill.sdk import HandlerError

LONGEST_SECONDS = 20.0
"""For one of our own queries, which read a few rows."""
_STEPS = 100_000
"""Of SQLite's machine, between two looks at the clock."""
_READ_BY_GDAL = ("gpkg", "rtree_", "sqlite_", "layer_styles", "ogr_")
_HARMLESS = frozenset((
    "abs", "coalesce", "date", "datetime", "ifnull", "iif", "instr", "julianday", "length", "like", "lower", "ltrim",
    "max", "min", "nullif", "round", "rtrim", "strftime", "substr", "substring", "time", "trim", "typeof", "upper",
))  # fmt: skip
_INDEXES = ("rtree", "fts")
"""Kinds of virtual tables that read no other files."""
_ALLOWED = (sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_FUNCTION)
_SCAN = re.compile(r"(SCAN|SEARCH) \S")
_ONE_ROW = re.compile(r"SEARCH .* USING INTEGER PRIMARY KEY \(rowid=\?\)")
_COMPUTED = 2
"""What `table_xinfo` says of a generated column that is not stored."""
_SORT = "USE TEMP B-TREE FOR ORDER BY"


def feature_layers(path: Path) -> list[str]:
    """Not asked of GDAL, which would leave journals beside a file that was written with a write-ahead log."""
    with reading(path) as database:
        rows = database.execute(
            "SELECT table_name FROM gpkg_contents WHERE data_type = 'features' ORDER BY 1"
        ).fetchall()
    return [name for (name,) in rows]


def refuse_programs(path: Path, name: str) -> None:
    """What could read other files, or never end, where GDAL would come upon it by itself."""
    with reading(path) as database:
        rows = database.execute("SELECT type, name, coalesce(sql, '') FROM sqlite_master").fetchall()
    for kind, item, statement in rows:
        words = " ".join(str(statement).lower().split())
        if words.startswith("create virtual table") and not any(f"using {one}" in words for one in _INDEXES):
            raise refused("outside_reference", f"'{name}' has a virtual table, which could read other files")
        if kind == "view" and str(item).lower().startswith(_READ_BY_GDAL):
            raise _unsafe(name, str(item), "is a query, where GeoPackage has a table")


def check_layer(path: Path, name: str, layer: str) -> None:
    """Refuse a layer that is no table and no plain view of one."""
    with reading(path) as database:
        kinds = database.execute(
            "SELECT type FROM sqlite_master WHERE lower(name) = lower(?) AND type IN ('table', 'view')", [layer]
        ).fetchall()
        if not kinds:
            raise refused("unreadable", f"'{name}' is damaged or incomplete: it has no table '{layer}'")
        plan, tables = _plan(database, name, layer)
        if any(_computes(database, table) for table in tables):
            raise _unsafe(name, layer, "has columns that are computed when they are read")
    if kinds[0][0] == "view" and (problem := _problem(plan)):
        raise _unsafe(name, layer, problem)


def _computes(database: sqlite3.Connection, table: str) -> bool:
    """By any function at all; the authorizer does not hear of these."""
    columns = database.execute(f"PRAGMA table_xinfo({quoted(table)})").fetchall()
    return any(column[6] == _COMPUTED for column in columns)


def _plan(database: sqlite3.Connection, name: str, layer: str) -> tuple[list[str], set[str]]:
    """How SQLite would read it, and which tables. Nothing is run."""
    denied: list[str] = []
    tables: set[str] = set()

    def authorize(action: int, first: str | None, second: str | None, _database: str | None, view: str | None) -> int:
        if view and view.lower() != layer.lower():
            denied.append("is made of other queries")
        elif action not in _ALLOWED:
            denied.append("repeats itself" if action == sqlite3.SQLITE_RECURSIVE else "does more than to read")
        elif action == sqlite3.SQLITE_FUNCTION and str(second).lower() not in _HARMLESS:
            denied.append(f"calls the function {str(second)[:40]}")
        elif action == sqlite3.SQLITE_READ and str(first).lower().startswith("sqlite_"):
            denied.append("reads the file's own schema")
        elif action == sqlite3.SQLITE_READ:
            tables.add(str(first))
        return sqlite3.SQLITE_DENY if denied else sqlite3.SQLITE_OK

    database.set_authorizer(authorize)
    try:
        rows = database.execute(f"EXPLAIN QUERY PLAN SELECT * FROM {quoted(layer)}").fetchall()  # noqa: S608  quoted
    except sqlite3.DatabaseError as error:
        if denied:
            raise _unsafe(name, layer, denied[0]) from error
        raise
    finally:
        database.set_authorizer(None)
    return [str(row[3]) for row in rows], tables


def _problem(plan: list[str]) -> str:
    first, *others = [step for step in plan if step != _SORT] or [""]
    if not _SCAN.match(first):
        return "is more than a view of a table"
    if not all(_ONE_ROW.match(step) for step in others):
        return "is a view in which a row of one table meets many of another"
    return ""


def _unsafe(name: str, layer: str, problem: str) -> HandlerError:
    return refused(
        "unsafe_view", f"'{layer[:80]}' in '{name}' {problem}, and is not read: store what it shows as a table"
    )


@contextmanager
def reading(path: Path) -> Iterator[sqlite3.Connection]:
    """A session that writes nothing, trusts nothing in the file, and ends a query that takes too long."""
    end = time.monotonic() + LONGEST_SECONDS
    database = sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro&immutable=1", uri=True)
    try:
        database.execute("PRAGMA trusted_schema = OFF")
        database.execute("PRAGMA cell_size_check = ON")
        database.set_progress_handler(lambda: time.monotonic() > end, _STEPS)
        yield database
    finally:
        database.close()


def quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
