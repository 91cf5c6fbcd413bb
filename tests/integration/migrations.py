"""Changes that migrations of newer releases make to tables in use."""

from __future__ import annotations

from collections.abc import Sequence

import psycopg
from psycopg.sql import SQL, Identifier, Literal

from geomill.domain.assets.request import PlatformRequest
from geomill.domain.entity import Entity
from geomill.domain.tables import TABLES

LENGTHS = """
    SELECT column_name, character_maximum_length FROM information_schema.columns
    WHERE table_schema = %s AND table_name = %s AND character_maximum_length IS NOT NULL
"""


def add_columns(url: str) -> None:
    with psycopg.connect(url, autocommit=True) as conn:
        for model in TABLES:
            table = Identifier(model.__sql_schema__, model.__sql_table__)
            conn.execute(SQL("ALTER TABLE {} ADD COLUMN of_a_newer_release integer DEFAULT 7").format(table))


def widen_requests(url: str) -> None:
    """Widen the table of requests, which a submission reaches in the middle of its transaction."""
    widen_columns(url, [PlatformRequest], at_least=5)


def widen_columns(url: str, models: Sequence[type[Entity]] = TABLES, at_least: int = 40) -> None:
    """Widen the columns on which no trigger depends."""
    widened = 0
    with psycopg.connect(url, autocommit=True) as conn:
        for model in models:
            schema, name = model.__sql_schema__, model.__sql_table__
            for column, length in conn.execute(LENGTHS, (schema, name)).fetchall():
                statement = SQL("ALTER TABLE {} ALTER COLUMN {} TYPE varchar({})").format(
                    Identifier(schema, name), Identifier(column), Literal(length + 10)
                )
                try:
                    conn.execute(statement)
                    widened += 1
                except psycopg.errors.FeatureNotSupported:
                    continue
    assert widened >= at_least
