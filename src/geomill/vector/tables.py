"""Tables of features, from their creation in staging to their place among the served tables.

A chunk is loaded once, however often it is tried: its line in the ledger and its rows are one transaction, and an
attempt that finds the line has nothing to do. Finishing is one transaction as well. A process that dies therefore
leaves either nothing or a complete step. Staging tables of dead jobs are deleted later.
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
    """The staging tables of one job."""

    name: str
    rules: LoadingRules

    def table(self, family: Family) -> Identifier:
        return Identifier(STAGING, self.name + SUFFIXES[family])

    @property
    def ledger(self) -> Identifier:
        return Identifier(STAGING, self.name + LEDGER)


def composed(statement: LiteralString, /, **parts: Composable) -> Composed:
    """Return the statement with quoted identifiers in the place of its braces."""
    return SQL(statement).format(**parts)


def run(conn: Connection, statement: LiteralString, /, **parts: Composable) -> None:
    conn.execute(composed(statement, **parts))


def ensure_schemas(conn: Connection) -> None:
    row = conn.execute(queries("vectors").schemas_there).fetchone()
    if not (row and row["there"]):
        conn.execute(queries("vectors").make_schemas)


def make_staging(conn: Connection, staging: Staging, columns: Sequence[LayerColumn], job_id: str) -> None:
    """Create empty tables and an empty ledger in place of existing ones."""
    with conn.transaction():
        row = conn.execute(queries("vectors").known_srid, {"srid": staging.rules.srid}).fetchone()
        if not (row and row["known"]):
            raise refused("bad_crs", f"PostGIS has no CRS {staging.rules.srid}: give another target_crs")
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
    parts += [SQL("{} {}").format(Identifier(column.name), _type(column.type)) for column in columns]
    place = SQL("geometry({}, {})").format(SQL(kind), Literal(rules.srid))
    return SQL(", ").join([*parts, SQL("{} {}").format(Identifier(GEOMETRY), place)])


def _type(name: str) -> SQL:
    """Return a type name as SQL. It is one of `attributes.postgres_type`, never a name from a file."""
    return SQL(name)


def enter(conn: Connection, staging: Staging, chunk: int) -> dict[str, Any] | None:
    """Enter a chunk into the ledger, within a transaction.

    Returns None if the caller must load it, or the recorded outcome of the attempt that did.
    """
    try:
        entered = conn.execute(
            composed(queries("vectors").enter_chunk, ledger=staging.ledger), {"chunk": chunk}
        ).fetchone()
    except errors.UndefinedTable as error:
        raise refused(
            "staging_gone", f"the staging table {staging.name} no longer exists: submit the source again"
        ) from error
    if entered:
        return None
    row = conn.execute(composed(queries("vectors").chunk_outcome, ledger=staging.ledger), {"chunk": chunk}).fetchone()
    assert row is not None
    outcome: dict[str, Any] = row["outcome"]
    return outcome


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
    """Return the table names of the families that have rows. The main family has the plain name."""
    names = {plan.rules.family: table_name}
    if plan.rules.mixed is Mixed.SPLIT:
        others = [family for family in Family if family is not plan.rules.family and counts.get(family)]
        names |= {family: table_name + SUFFIXES[family] for family in others}
    return names


def drop_staging(conn: Connection, names: Iterable[str]) -> list[str]:
    """Drop the tables that no session uses and return their names. The others are left for the next time."""
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
    """Return a job's staging tables. The ledger comes last, because the others are found through it."""
    names = [*(stem + suffix for suffix in SUFFIXES.values()), stem + LEDGER]
    rows = conn.execute(queries("vectors").tables_named, {"schema": STAGING, "names": names}).fetchall()
    return sorted((row["name"] for row in rows), key=lambda name: name.endswith(LEDGER))


def sweep(conn: Connection, seconds: float) -> list[str]:
    """Drop the staging tables of jobs that ended at least `seconds` ago."""
    rows = conn.execute(queries("vectors").abandoned, {"seconds": seconds}).fetchall()
    stems = [row["ledger"].removesuffix(LEDGER) for row in rows]
    return drop_staging(conn, [name for stem in stems for name in staging_tables(conn, stem)])
