"""Every statement has a declared name, is used under it, and reads as the file says."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import LiteralString

import pytest
from psycopg._queries import MAX_CACHED_STATEMENT_LENGTH

import geomill
from geomill.domain.assets.request import NewRequest, PlatformRequest
from geomill.queues import postgres
from geomill.sql import queries
from geomill.sql.declaration import declarations
from geomill.sql.files import Statements, parse, query_nouns
from geomill.store import rounds
from tests.rounds import round_statement

SOURCE = Path(geomill.__file__).parent
USE = re.compile(r'queries\("(\w+)"\)\.(\w+)')
TEXT = """\
-- About jobs.

-- name: claim
-- Takes one.
SELECT 1
-- name: count_all
SELECT count(*)
FROM jobs
"""


class ExampleStatements(Statements):
    noun = "example"

    claim: LiteralString
    count_all: LiteralString


def test_statements_are_attributes():
    example = ExampleStatements(TEXT)
    assert vars(example) == {"claim": "SELECT 1", "count_all": "SELECT count(*)\nFROM jobs"}
    assert example.claim == "SELECT 1"


@pytest.mark.parametrize(
    ("text", "names"),
    [
        (TEXT.replace("claim", "clam"), "claim, clam"),
        (TEXT + "-- name: more\nSELECT 2", "more"),
        ("-- name: claim\nSELECT 1", "count_all"),
    ],
)
def test_a_file_with_other_names_than_its_class_does_not_load(text, names):
    with pytest.raises(ValueError, match=rf"example\.sql and statements\.py differ in: {names}; run script/schema"):
        ExampleStatements(text)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("SELECT 1\n-- name: one\nSELECT 1", "before the first"),
        ("-- name: one\nSELECT 1\n-- name: one\nSELECT 2", "'one' is empty or there twice"),
        ("-- name: one\n\n-- name: two\nSELECT 2", "'one' is empty"),
    ],
)
def test_a_file_that_is_wrong_does_not_load(text, message):
    with pytest.raises(ValueError, match=message):
        parse("jobs", text)


def test_every_file_loads_and_is_read_once():
    for noun in query_nouns():
        assert queries(noun) is queries(noun)
    with pytest.raises(KeyError):
        queries("nothing")


def test_the_declared_names_are_those_of_the_files():
    assert (SOURCE / "sql" / "statements.py").read_text() == declarations(), "run script/schema"


def test_an_undeclared_name_is_an_error_for_mypy_too():
    """With `__getattr__`, mypy would accept every name."""
    assert not hasattr(Statements, "__getattr__")
    with pytest.raises(AttributeError):
        _ = queries("jobs").cliam


def test_no_file_is_read_before_a_statement_of_it_is_used():
    code = "import geomill.sql.statements as s; print(s._read.cache_info().currsize)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True).stdout == "0\n"


def uses() -> set[str]:
    paths = [path for path in SOURCE.rglob("*.py") if path.parent != SOURCE / "sql"]
    return {f"{noun}.{name}" for path in paths for noun, name in USE.findall(path.read_text())}


def test_every_statement_is_used_under_its_name():
    declared = {f"{noun}.{name}" for noun in query_nouns() for name in vars(queries(noun))}
    assert uses() == declared, "a statement that is not used is deleted"


def test_no_statement_is_reached_by_a_text():
    """Neither `getattr(queries("jobs"), name)` nor a second name for `queries("jobs")` can be searched for."""
    for path in SOURCE.rglob("*.py"):
        if path.parent == SOURCE / "sql":
            continue
        calls = re.findall(r"(?<![\w.])queries\([^)]*\)(?:\.\w+)?", path.read_text())
        assert [call for call in calls if not USE.fullmatch(call)] == [], path


@pytest.mark.parametrize(
    "statement",
    [
        queries("inbox").settle,
        postgres.lease_statement(),
        postgres.lease_lines_statement(),
        postgres.lines_statement(),
        round_statement("claimed", "created", "inserted", "spread", "noted", "called", fence="unclaimed"),
        round_statement("taken", "updated", "completed", "spread", "noted"),
    ],
)
def test_hot_statements_are_short_enough_for_psycopg_to_remember_them(statement):
    assert len(statement) <= MAX_CACHED_STATEMENT_LENGTH


def test_a_round_is_one_statement_of_the_parts_that_it_needs():
    parts = (rounds.RoundPart("taken", "DELETE"), rounds.RoundPart("called", "SELECT"))
    text = "WITH fence AS MATERIALIZED (LOCK), taken AS (DELETE), called AS (SELECT) SELECT held FROM fence, called"
    assert rounds.round_statement("LOCK", parts) == text
    assert rounds.round_statement("LOCK", ()) == "WITH fence AS MATERIALIZED (LOCK) SELECT held FROM fence"


def test_the_columns_of_an_insert_are_those_of_the_new_model():
    table = "app.platform_requests"
    text = f"-- name: create\n({{columns of new {table} as n}}) ({{values of new {table}}})"
    names = list(NewRequest.model_fields)
    columns, values = ", ".join(f"n.{name}" for name in names), ", ".join(f"%({name})s" for name in names)
    assert parse("requests", text)["create"] == f"({columns}) ({values})"
    assert set(names) < set(PlatformRequest.model_fields)
    with pytest.raises(ValueError, match=r"jobs\.sql: the model of 'app\.asset_collections' does not say"):
        parse("jobs", "-- name: create\nINSERT {columns of new app.asset_collections}")
