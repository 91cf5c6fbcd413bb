"""Tables of features, from their making in staging to their place among the served ones.

A chunk is loaded once, however often it is tried: its line in the ledger and its rows are one transaction, and who
finds the line there has nothing to do. Finishing is one transaction as well. So whoever dies leaves either nothing or
the whole, and what a dead job has left in staging is swept later.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, LiteralString

from psycopg import errors
from psycopg.sql import SQL, Composable, Composed, Identifier, Literal
from psycopg.types.json import Jsonb

from geomill.datasets.refusals import refused
from geomill.sql import queries
from geomill.vector.columns import GEOMETRY, ID
from geomill.vector.database import Connection
from geomill.vector.facts import SUFFIXES, Family, LayerColumn, Loaded, LoadingPlan, LoadingRules, Mixed

SCHEMA, STAGING = "geo", "geo_staging"
LEDGER = "_chunks"
LOCK_SECONDS = 2.0


def staging_name(job_id: str) -> str:
    return f"load_{job_id.replace('-', '')[:40]}"


@dataclass(frozen=True)
class Staging:
    """What one job loads into."""

    name: str
    rules: LoadingRules

    def table(self, family: Family) -> Identifier:
        return Identifier(STAGING, self.name + SUFFIXES[family])

    @property
    def ledger(self) -> Identifier:
        return Identifier(STAGING, self.name + LEDGER)


def composed(statement: LiteralString, **parts: Composable) -> Composed:
    """Returns the statement with quoted identifiers in the place of its braces."""
    return SQL(statement).format(**parts)


def run(conn: Connection, statement: LiteralString, **parts: Composable) -> None:
    conn.execute(composed(statement, **parts))


def ensure_schemas(conn: Connection) -> None:
    row = conn.execute(queries("vectors").schemas_there).fetchone()
    if not (row and row["there"]):
        conn.execute(queries("vectors").make_schemas)


def make_staging(conn: Connection, staging: Staging, columns: Sequence[LayerColumn], job_id: str) -> None:
    """Empty tables and an empty ledger, whatever was there."""
    with conn.transaction():
        row = conn.execute(queries("vectors").known_srid, {"srid": staging.rules.srid}).fetchone()
        if not (row and row["known"]):
            raise refused("bad_crs", f"PostGIS does not know the CRS {staging.rules.srid}: give another target_crs")
        run(conn, queries("vectors").drop_table, table=staging.ledger)
        run(conn, queries("vectors").make_ledger, ledger=staging.ledger)
        run(conn, queries("vectors").comment_table, table=staging.ledger, text=Literal(job_id))
        for family in staging.rules.families:
            run(conn, queries("vectors").drop_table, table=staging.table(family))
            definitions = _definitions(columns, staging.rules, family)
            run(conn, queries("vectors").make_staging, table=staging.table(family), columns=definitions)


def _definitions(columns: Sequence[LayerColumn], rules: LoadingRules, family: Family) -> Composed:
    kind = rules.type_of(family) + ("Z" if rules.keep_z else "")
    parts: list[Composable] = [SQL("{} bigint NOT NULL").format(Identifier(ID))]
    parts += [SQL("{} {}").format(Identifier(one.name), _type(one.type)) for one in columns]
    place = SQL("geometry({}, {})").format(SQL(kind), Literal(rules.srid))
    return SQL(", ").join([*parts, SQL("{} {}").format(Identifier(GEOMETRY), place)])


def _type(name: str) -> SQL:
    """One of `attributes.postgres_type`, never a name from a file."""
    return SQL(name)


def enter(conn: Connection, staging: Staging, chunk: int) -> dict[str, Any] | None:
    """Within a transaction: None, and the chunk is ours to load; or what was noted of it by somebody who has."""
    try:
        entered = conn.execute(
            composed(queries("vectors").enter_chunk, ledger=staging.ledger), {"chunk": chunk}
        ).fetchone()
    except errors.UndefinedTable as error:
        raise refused(
            "staging_gone", f"the staging table {staging.name} is not there any more: submit the source again"
        ) from error
    if entered:
        return None
    row = conn.execute(composed(queries("vectors").chunk_outcome, ledger=staging.ledger), {"chunk": chunk}).fetchone()
    assert row is not None
    found: dict[str, Any] = row["outcome"]
    return found


def note(conn: Connection, staging: Staging, chunk: int, outcome: dict[str, Any]) -> None:
    conn.execute(
        composed(queries("vectors").note_chunk, ledger=staging.ledger), {"chunk": chunk, "outcome": Jsonb(outcome)}
    )


def copy_rows(
    conn: Connection, staging: Staging, family: Family, columns: Iterable[str], data: Iterable[bytes | memoryview]
) -> None:
    names = SQL(", ").join(map(Identifier, columns))
    with (
        conn.cursor() as cursor,
        cursor.copy(composed(queries("vectors").copy_rows, table=staging.table(family), columns=names)) as copy,
    ):
        for part in data:
            copy.write(part)


def outcomes(conn: Connection, staging: Staging) -> list[Loaded]:
    rows = conn.execute(composed(queries("vectors").outcomes, ledger=staging.ledger)).fetchall()
    return [Loaded.model_validate(row["outcome"]) for row in rows]


def table_names(plan: LoadingPlan, table_name: str, counts: Mapping[Family, int]) -> dict[Family, str]:
    """Of the families that have rows; the main one has the plain name."""
    wanted = {plan.rules.family: table_name}
    if plan.rules.mixed is Mixed.SPLIT:
        others = [family for family in Family if family is not plan.rules.family and counts.get(family)]
        wanted |= {family: table_name + SUFFIXES[family] for family in others}
    return wanted


def drop_staging(conn: Connection, names: Iterable[str]) -> list[str]:
    """Those that nobody uses right now; the others are left for the next time."""
    dropped = []
    for name in names:
        try:
            with conn.transaction():
                conn.execute(queries("vectors").lock_timeout, {"milliseconds": int(LOCK_SECONDS * 1000)})
                run(conn, queries("vectors").drop_table, table=Identifier(STAGING, name))
        except errors.LockNotAvailable:
            continue
        dropped.append(name)
    return dropped


def staging_tables(conn: Connection, stem: str) -> list[str]:
    """The ledger last: as long as it is there, so may be the others."""
    names = [*(stem + suffix for suffix in SUFFIXES.values()), stem + LEDGER]
    rows = conn.execute(queries("vectors").tables_named, {"schema": STAGING, "names": names}).fetchall()
    return sorted((row["name"] for row in rows), key=lambda name: name.endswith(LEDGER))


def sweep(conn: Connection, seconds: float) -> list[str]:
    """Drop the staging tables of jobs that ended so long ago."""
    rows = conn.execute(queries("vectors").abandoned, {"seconds": seconds}).fetchall()
    stems = [row["ledger"].removesuffix(LEDGER) for row in rows]
    return drop_staging(conn, [name for stem in stems for name in staging_tables(conn, stem)])
