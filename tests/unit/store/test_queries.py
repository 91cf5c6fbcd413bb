from __future__ import annotations

import pytest
from psycopg._queries import MAX_CACHED_STATEMENT_LENGTH

from geomill.domain.assets.asset import AssetCollection
from geomill.queues import postgres
from geomill.sql import Queries, queries
from geomill.store import rounds

TEXT = """\
-- About jobs.

-- name: claim
-- Takes one.
SELECT 1
-- name: count_all
SELECT count(*)
FROM jobs
"""


def test_statements_are_attributes():
    jobs = Queries("jobs", TEXT)
    assert dir(jobs) == ["claim", "count_all"]
    assert jobs.claim == "SELECT 1"
    assert jobs.count_all == "SELECT count(*)\nFROM jobs"


def test_an_unknown_statement_is_named_with_its_file():
    with pytest.raises(AttributeError, match=r"jobs\.sql has no statement 'cliam'"):
        _ = Queries("jobs", TEXT).cliam


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
        Queries("jobs", text)


def test_the_columns_of_a_table_are_those_of_its_model():
    table = "app.asset_collections"
    text = f"-- name: all\nSELECT {{columns of {table}}} FROM {table}\n-- name: by_alias\n{{columns of {table} as c}}"
    collections = Queries("collections", text)
    names = list(AssetCollection.model_fields)
    assert collections.all == f"SELECT {', '.join(names)} FROM app.asset_collections"
    assert collections.by_alias == ", ".join(f"c.{name}" for name in names)
    with pytest.raises(ValueError, match=r"jobs\.sql: there is no table 'dagapp\.dag_job'"):
        Queries("jobs", "-- name: all\nSELECT {columns of dagapp.dag_job}")


def test_files_are_read_once_and_unknown_ones_are_errors():
    assert queries("catalogue") is queries("catalogue")
    with pytest.raises(FileNotFoundError):
        queries("nothing")


@pytest.mark.parametrize(
    "statement",
    [
        queries("inbox").settle,
        postgres.lease_statement(),
        postgres.lease_lines_statement(),
        postgres.lines_statement(),
        rounds._statement(("claimed", "created", "inserted", "spread", "noted", "called"), "unclaimed"),
        rounds._statement(("taken", "updated", "completed", "spread", "noted")),
    ],
)
def test_hot_statements_are_short_enough_for_psycopg_to_remember_them(statement):
    assert len(statement) <= MAX_CACHED_STATEMENT_LENGTH
