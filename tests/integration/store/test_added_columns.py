"""A newer release adds a column to each table while processes run: their statements, which are prepared, go on.

A prepared statement is asked what it returns, which makes PostgreSQL look at its tables again: one whose result would
be another is refused, for as long as the session lives.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
from psycopg.pq import ExecStatus, PGconn

from geomill.domain.tables import EXTERNAL_TABLES, TABLES
from geomill.queues import postgres
from geomill.sql import queries
from geomill.sql.files import query_nouns
from geomill.store import assets, job_lists
from geomill.store.job_lists import JobFilter
from tests.rounds import round_statement

OURS = re.compile(r"\b(dagapp|app|catalogue|external)\.")
PARAMETER = re.compile(r"%(?:\((\w+)\)[sbt]|(%))")
PARTS = {
    "assets.page": [
        assets.page_statement(assets.AssetFilter()),
        assets.page_statement(assets.AssetFilter(text="a")),
    ],
    "job_lists.page": [
        job_lists._question(chosen).statement(queries("job_lists").page)
        for chosen in (JobFilter(), JobFilter(parked=True), JobFilter(error="xy"))
    ],
    "job_lists.waiting_page": [job_lists._waiting_statement(queries("job_lists").waiting_page)],
    "logs.page": [f"WITH examined AS ({queries('logs').examined}) {queries('logs').page}"],
    "queue.leased": [postgres.lease_statement(), postgres.lease_lines_statement()],
    "queue.line": [postgres.lines_statement()],
    "rounds.fence": [
        round_statement("taken", "inserted", "updated", "items", "completed", "spread", "sent", "noted", "decided"),
        round_statement("summarised", "withdrawn"),
        round_statement("claimed", "created", "inserted", "spread", "sent", "noted", "called", fence="unclaimed"),
    ],
}
"""The statements that are put together from others."""
JOINED = {"queue.lines", "queue.head", "queue.relaxed", "queue.alone", "queue.chosen", "queue.leased_only"} | {
    "queue.leased_or_shared",
    "assets.identified_assets",
    "job_lists.judgement",
    *(f"rounds.{name}" for name in vars(queries("rounds"))),
}
TYPES = {"threshold": "integer", "failures": "integer"}


def every_text() -> Iterator[tuple[str, str, str]]:
    for noun in query_nouns():
        for name, text in vars(queries(noun)).items():
            yield noun, name, text


def all_statements() -> Iterator[tuple[str, str]]:
    """Those that use our tables, by name."""
    for noun, name, text in every_text():
        place = f"{noun}.{name}"
        for number, statement in enumerate(PARTS.get(place, [] if place in JOINED else [text])):
            if OURS.search(statement) and not re.search(r"\{\w+\}", statement):
                yield f"{place} {number}", statement


def numbered(statement: str) -> bytes:
    """Return the statement with numbered parameters, as the server knows them."""
    names: list[str] = []

    def number(match: re.Match[str]) -> str:
        if match[2]:
            return "%"
        if match[1] not in names:
            names.append(match[1])
        return f"${names.index(match[1]) + 1}" + (f"::{TYPES[match[1]]}" if match[1] in TYPES else "")

    return PARAMETER.sub(number, statement).encode()


def described(session: PGconn, name: str) -> list[tuple[bytes | None, int]] | str:
    """Names and types of what the statement returns, or the error."""
    result = session.describe_prepared(name.encode())
    if result.status != ExecStatus.COMMAND_OK:
        return result.error_message.decode()
    return [(result.fname(column), result.ftype(column)) for column in range(result.nfields)]


def prepare(session: PGconn, statements: dict[str, str]) -> None:
    problems = {}
    for name, statement in statements.items():
        result = session.prepare(name.encode(), numbered(statement))
        if result.status != ExecStatus.COMMAND_OK:
            problems[name] = result.error_message.decode()
    assert not problems, "\n".join(map(str, problems.items()))


@contextmanager
def session(url: str) -> Iterator[PGconn]:
    """Open a session without psycopg, which would prepare statements by rules of its own."""
    opened = PGconn.connect(url.encode())
    try:
        opened.exec_(queries("catalogue").incoming.replace("ON COMMIT DROP", "").encode())  # some statements use it
        yield opened
    finally:
        opened.finish()


def add_columns(url: str, tables: list[str]) -> None:
    with psycopg.connect(url, autocommit=True) as admin:
        for table in tables:
            admin.execute(f"ALTER TABLE {table} ADD COLUMN of_a_newer_release integer DEFAULT 7")


def names(models) -> list[str]:
    return [f"{model.__sql_schema__}.{model.__sql_table__}" for model in models]


def check(url: str, statements: dict[str, str], tables: list[str]) -> None:
    with session(url) as used, session(url) as fresh:
        prepare(used, statements)
        before = {name: described(used, name) for name in statements}
        add_columns(url, tables)
        assert {name: described(used, name) for name in statements} == before
        prepare(fresh, statements)
        assert {name: described(fresh, name) for name in statements} == before


def test_no_statement_notices_that_its_tables_have_more_columns(database: str) -> None:
    statements = {name: text for name, text in all_statements() if "external" not in name}
    assert len(statements) > 150
    check(database, statements, names(TABLES))


def test_nor_outside(external_database: str) -> None:
    statements = {name: text for name, text in all_statements() if ".external" in name}
    assert statements
    check(external_database, statements, names(EXTERNAL_TABLES))


def test_one_that_says_star_would(database: str) -> None:
    with session(database) as used:
        prepare(used, {"star": "SELECT * FROM dagapp.dag_jobs"})
        add_columns(database, ["dagapp.dag_jobs"])
        assert "cached plan must not change result type" in described(used, "star")


def test_none_says_star() -> None:
    star = re.compile(r"(?:\b(?:SELECT|RETURNING)\s+|,\s*|\w\.)\*")
    for noun, name, text in every_text():
        assert not star.search(text), f"{noun}.{name} names no columns; write {{columns of SCHEMA.TABLE}}"
