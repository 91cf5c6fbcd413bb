"""The last step of a load: keys, indexes and statistics, and the move to where tables are served. One transaction."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

from psycopg.sql import Identifier, Literal
from pydantic import BaseModel

from geomill.datasets.refusals import refused
from geomill.sql import queries
from geomill.vector import indexing, tables
from geomill.vector.database import Connection, Sessions
from geomill.vector.facts import Family, Format, LayerColumn, LayerExtent, Loaded, LoadingPlan
from geomill.vector.tables import SCHEMA, STAGING, Staging

Tell = Callable[[float, str], None]
FINISHED = -1
"""The line of the ledger in which it is written, in place of a chunk."""


class Published(BaseModel):
    """What a load has become."""

    tables: dict[Family, str]
    rows: dict[Family, int]
    repairs: dict[str, int]
    empty_columns: list[str]
    extent: list[LayerExtent]
    warnings: list[str]


def publish(
    sessions: Sessions, plan: LoadingPlan, table_name: str, chunks: int, id_column: str | None, tell: Tell
) -> Published:
    """Once: an attempt whose forerunner died after its commit finds what that has written."""
    staging = Staging(plan.staging, plan.rules)
    with sessions() as conn, conn.transaction():
        if (earlier := tables.enter(conn, staging, FINISHED)) is not None:
            return Published.model_validate(earlier)
        outcomes = _whole(conn, staging, plan, chunks)
        found = _summary(outcomes, plan, table_name)
        tell(0.1, "indexing")
        indexing.build(conn, sessions, staging, found.tables, sum(found.rows.values()))
        tell(0.8, "analyzing")
        for family in plan.rules.families:
            if family in found.tables:
                found.warnings += _finish(conn, staging, family, found.tables[family], plan, id_column)
            else:
                tables.run(conn, queries("vectors").drop_table, table=staging.table(family))
        tables.note(conn, staging, FINISHED, found.model_dump(mode="json"))
    return found


def _summary(outcomes: Sequence[Loaded], plan: LoadingPlan, table_name: str) -> Published:
    rows = {family: sum(one.rows.get(family, 0) for one in outcomes) for family in Family}
    repairs: Counter[str] = Counter()
    filled: Counter[str] = Counter()
    for one in outcomes:
        repairs.update(one.repairs)
        filled.update(one.filled)
    return Published(
        tables=tables.table_names(plan, table_name, rows),
        rows={family: count for family, count in rows.items() if count},
        repairs=dict(repairs),
        empty_columns=[column.name for column in plan.facts.columns if not filled[column.name]],
        extent=[one.extent for one in outcomes],
        warnings=[],
    )


def _whole(conn: Connection, staging: Staging, plan: LoadingPlan, chunks: int) -> list[Loaded]:
    found = tables.outcomes(conn, staging)
    if {one.chunk for one in found} != set(range(chunks)):
        raise refused("staging_gone", f"only {len(found)} of {chunks} chunks are in {plan.staging}: submit it again")
    read, announced, name = sum(one.read for one in found), plan.facts.rows, plan.source.file_name
    if plan.facts.format is not Format.GEOPACKAGE and read != announced:  # a GeoPackage may have miscounted itself
        raise refused("unreadable", f"'{name}' announces {announced:,} features, and {read:,} came out of it")
    if not any(one.extent.hull for one in found):
        raise refused("no_geometry", f"none of the {read:,} features of '{name}' has a geometry that can be used")
    return found


def _finish(
    conn: Connection, staging: Staging, family: Family, name: str, plan: LoadingPlan, id_column: str | None
) -> list[str]:
    table = Identifier(SCHEMA, name)
    tables.run(
        conn, queries("vectors").drop_table, table=table
    )  # of an earlier job of the same revision, which nobody is shown
    tables.run(conn, queries("vectors").rename, table=staging.table(family), name=Identifier(name))
    tables.run(conn, queries("vectors").move_to_geo, table=Identifier(STAGING, name))
    indexing.settle(conn, staging, family, name)
    warnings = _index_ids(conn, table, plan.facts.columns, id_column) if id_column else []
    _describe(conn, table, plan)
    tables.run(conn, queries("vectors").settle_storage, table=table)
    tables.run(conn, queries("vectors").analyze, table=table)
    return warnings


def _index_ids(conn: Connection, table: Identifier, columns: Sequence[LayerColumn], wanted: str) -> list[str]:
    column = next(one for one in columns if wanted in (one.source, one.name))
    name = Identifier(column.name)
    row = conn.execute(tables.composed(queries("vectors").repeated_ids, table=table, column=name)).fetchone()
    assert row is not None
    if row["repeated"] or row["missing"]:
        tables.run(conn, queries("vectors").index_plain, table=table, column=name)
        repeated, missing = row["repeated"], row["missing"]
        which = f"{repeated:,} rows repeat a value, {missing:,} have none"
        return [f"the column '{column.name}' does not identify features: {which}"]
    tables.run(conn, queries("vectors").index_unique, table=table, column=name)
    return []


def _describe(conn: Connection, table: Identifier, plan: LoadingPlan) -> None:
    text = f"{plan.source.file_name}, {plan.facts.layer or plan.facts.format.value}"
    tables.run(conn, queries("vectors").comment_table, table=table, text=Literal(text))
    for column in plan.facts.columns:
        if column.source != column.name:
            tables.run(
                conn,
                queries("vectors").comment_column,
                table=table,
                column=Identifier(column.name),
                text=Literal(column.source),
            )
