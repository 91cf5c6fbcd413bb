"""Builds the key and the spatial index of loaded tables.

The spatial index takes most of the time after the last row, and PostgreSQL builds it with one core. So another session
builds the key at the same time and commits it. That only adds an index to a staging table, and a later attempt finds
it. Everything else happens in the transaction that finishes the load.
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
"""The number of rows from which a second session pays off."""
KEY, PLACES = "_key", "_gix"
_LONGEST = 63 - len(KEY)
"""The maximum length of a table's name in an index name. Main tables have shorter names, and those of a split layer
still differ."""


def build(conn: Connection, sessions: Sessions, staging: Staging, families: Iterable[Family], rows: int) -> None:
    """Build the indexes on the staging tables, within a transaction."""
    if rows < MANY:
        _exclude(conn, staging, families)
        _add_keys(conn, staging, families)
        _add_spatial_indexes(conn, staging, families)
        return
    with sessions() as second, ThreadPoolExecutor(1) as pool:
        with second.transaction():
            _exclude(second, staging, families)
        keys = pool.submit(_add_keys, second, staging, families)
        _add_spatial_indexes(conn, staging, families)
        keys.result()


def settle(conn: Connection, staging: Staging, family: Family, name: str) -> None:
    """Rename the indexes and add the primary key after the table has been moved."""
    stem = cut(name, _LONGEST)
    for end in (KEY, PLACES):
        index = Identifier(SCHEMA, _name(staging, family, end))
        tables.run(conn, queries("vectors").rename_index, index=index, name=Identifier(stem + end))
    tables.run(conn, queries("vectors").add_key, table=Identifier(SCHEMA, name), index=Identifier(stem + KEY))


def _exclude(conn: Connection, staging: Staging, families: Iterable[Family]) -> None:
    """Wait until no session works on the tables, such as one that a dead attempt has left behind."""
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


def _add_spatial_indexes(conn: Connection, staging: Staging, families: Iterable[Family]) -> None:
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
