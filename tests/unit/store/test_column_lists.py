"""Column lists in the files of statements come from the models."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import fields
from typing import Any, get_args, get_type_hints

import pytest

from geomill.domain.assets.asset import AssetCollection
from geomill.sql import queries
from geomill.sql.files import parse
from geomill.store.rounds import NewJob, Writes

RECORD = re.compile(r"json_to_recordset\(%\((\w+)\)s::json\) AS \w+ \(([^()]+)\)")
EVENTS = """\
-- columns: event of dagapp.dag_job_events: job_id, item_index,
--   event_type, event_data
-- columns: rest of dagapp.dag_job_events without event_id, job_id, node_id, item_index, event_type, event_data

"""


def test_the_columns_of_a_table_are_those_of_its_model():
    table = "app.asset_collections"
    text = f"-- name: all\nSELECT {{columns of {table}}} FROM {table}\n-- name: by_alias\n{{columns of {table} as c}}"
    names = list(AssetCollection.model_fields)
    assert parse("collections", text) == {
        "all": f"SELECT {', '.join(names)} FROM app.asset_collections",
        "by_alias": ", ".join(f"c.{name}" for name in names),
    }
    with pytest.raises(ValueError, match=r"jobs\.sql: there is no table 'dagapp\.dag_job'"):
        parse("jobs", "-- name: all\nSELECT {columns of dagapp.dag_job}")


@pytest.mark.parametrize(
    ("placeholder", "text"),
    [
        ("{columns of event}", "job_id, item_index, event_type, event_data"),
        ("{columns of event as e}", "e.job_id, e.item_index, e.event_type, e.event_data"),
        ("{values of event}", "%(job_id)s, %(item_index)s, %(event_type)s, %(event_data)s"),
        ("{record of event}", "job_id text, item_index integer, event_type dagapp.event_type, event_data jsonb"),
        ("{columns of rest}", "event_status, checkpoint_name, created_at"),
        ("{record of rest}", "event_status dagapp.event_status, checkpoint_name text, created_at timestamptz"),
    ],
)
def test_a_list_is_defined_once_and_written_in_several_forms(placeholder, text):
    assert parse("events", f"{EVENTS}-- name: insert\n{placeholder}") == {"insert": text}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("-- columns: job of dagapp.dag_job: job_id", "there is no table 'dagapp.dag_job'"),
        ("-- columns: job of dagapp.dag_jobs: job_id, correlation", "dagapp.dag_jobs has no column 'correlation'"),
        ("-- columns: job of dagapp.dag_jobs without correlation", "dagapp.dag_jobs has no column 'correlation'"),
        (
            "-- columns: job of dagapp.dag_jobs: job_id, job_id",
            "the column list 'job' is there twice or repeats a column",
        ),
        ("-- name: all\n{columns of job}", "there is no table 'job'"),
    ],
)
def test_a_list_that_does_not_fit_its_model_does_not_load(text, message):
    with pytest.raises(ValueError, match=re.escape(f"jobs.sql: {message}")):
        parse("jobs", text)


def records() -> Iterator[tuple[str, type[Any], set[str]]]:
    """The parts of a round that read rows: name of the part, class of the rows, names of the record's columns."""
    hints = get_type_hints(Writes)
    classes = {part.name: get_args(hints[name])[0] for part, name in zip(*parts_and_fields(), strict=True)}
    for name, kind in {**classes, "created": NewJob}.items():
        (parameter, columns) = RECORD.findall(vars(queries("rounds"))[name])[0]
        assert parameter == name
        yield name, kind, {column.split()[0] for column in columns.split(",")}


def parts_and_fields() -> tuple[list[Any], list[str]]:
    writes = Writes(**{field.name: [field.name] for field in fields(Writes)})
    recordsets = writes.recordsets()
    return [part for part, _ in recordsets], [rows[0] for _, rows in recordsets]


def test_a_record_has_columns_for_the_fields_of_its_rows_and_no_others():
    read: dict[type[Any], set[str]] = {}
    for name, kind, columns in records():
        assert columns <= {field.name for field in fields(kind)}, name
        read[kind] = read.get(kind, set()) | columns
    assert read == {kind: {field.name for field in fields(kind)} for kind in read}
