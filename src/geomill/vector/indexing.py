"""Key and spatial index of tables that were loaded.

The spatial index takes most of the time after the last row, and PostgreSQL builds it with one core. So the key is built
beside it, by another session, and committed there: it is only an index more on a table in staging, and another attempt
finds it. All else happens in the transaction that finishes.
"""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor

from psycopg.sql import Identifier

from geomill.sql import queries
from geomill.vector import tables
from geomill.vector.columns import GEOMETRY, ID, cut
from geomill.vector.database import Connection, Sessions
from geomill.vector.facts import SUFFIXES, Family
from geomill.vector.tables import SCHEMA, Staging

MANY = 50_000
"""Rows for which a second session is worth its while."""
KEY, PLACES = "_key", "_gix"
_LONGEST = 63 - len(KEY)
"""Of a table's name in that of an index. Main tables have shorter ones, and those of a split layer still differ."""


def build(conn: Connection, sessions: Sessions, staging: Staging, families: Iterable[Family], rows: int) -> None:
    """On the staging tables, within a transaction."""
    if rows < MANY:
        _exclude(conn, staging, families)
        _add_keys(conn, staging, families)
        _add_places(conn, staging, families)
        return
    with sessions() as beside, ThreadPoolExecutor(1) as pool:
        with beside.transaction():
            _exclude(beside, staging, families)
        keys = pool.submit(_add_keys, beside, staging, families)
        _add_places(conn, staging, families)
        keys.result()


def settle(conn: Connection, staging: Staging, family: Family, name: str) -> None:
    """Once the table has its place and name."""
    stem = cut(name, _LONGEST)
    for end in (KEY, PLACES):
        index = Identifier(SCHEMA, _name(staging, family, end))
        tables.run(conn, queries("vectors").rename_index, index=index, name=Identifier(stem + end))
    tables.run(conn, queries("vectors").add_key, table=Identifier(SCHEMA, name), index=Identifier(stem + KEY))


def _exclude(conn: Connection, staging: Staging, families: Iterable[Family]) -> None:
    """Wait until nobody is at work on the tables any more: not a session that a dead attempt has left behind."""
    for family in families:
        tables.run(conn, queries("vectors").lock_staging, table=staging.table(family))


def _add_keys(conn: Connection, staging: Staging, families: Iterable[Family]) -> None:
    for family in families:
        name = Identifier(_name(staging, family, KEY))
        with conn.transaction():
            tables.run(conn, queries("vectors").prepare_to_finish)
            tables.run(
                conn, queries("vectors").index_ids, name=name, table=staging.table(family), column=Identifier(ID)
            )


def _add_places(conn: Connection, staging: Staging, families: Iterable[Family]) -> None:
    tables.run(conn, queries("vectors").prepare_to_finish)
    for family in families:
        name = Identifier(_name(staging, family, PLACES))
        tables.run(
            conn,
            queries("vectors").index_geometries,
            name=name,
            table=staging.table(family),
            column=Identifier(GEOMETRY),
        )


def _name(staging: Staging, family: Family, end: str) -> str:
    return staging.name + SUFFIXES[family] + end
