"""The last step of a load: builds keys, indexes and statistics and moves the tables to the served schema.

All of it is one transaction.
"""

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
"""The chunk number of the ledger's line for this step."""


class Published(BaseModel):
    """The result of a load."""

    tables: dict[Family, str]
    rows: dict[Family, int]
    repairs: dict[str, int]
    empty_columns: list[str]
    extent: list[LayerExtent]
    warnings: list[str]


def publish(
    sessions: Sessions, plan: LoadingPlan, table_name: str, chunks: int, id_column: str | None, tell: Tell
) -> Published:
    """Publish the load once. An attempt after one that died after its commit returns the recorded result."""
    staging = Staging(plan.staging, plan.rules)
    with sessions() as conn, conn.transaction():
        if (earlier := tables.enter(conn, staging, FINISHED)) is not None:
            return Published.model_validate(earlier)
        outcomes = _complete_outcomes(conn, staging, plan, chunks)
        published = _summary(outcomes, plan, table_name)
        tell(0.1, "indexing")
        indexing.build(conn, sessions, staging, published.tables, sum(published.rows.values()))
        tell(0.8, "analyzing")
        for family in plan.rules.families:
            if family in published.tables:
                published.warnings += _finish(conn, staging, family, published.tables[family], plan, id_column)
            else:
                tables.run(conn, queries("vectors").drop_table, table=staging.table(family))
        tables.note(conn, staging, FINISHED, published.model_dump(mode="json"))
    return published


def _summary(outcomes: Sequence[Loaded], plan: LoadingPlan, table_name: str) -> Published:
    rows = {family: sum(outcome.rows.get(family, 0) for outcome in outcomes) for family in Family}
    repairs: Counter[str] = Counter()
    filled: Counter[str] = Counter()
    for outcome in outcomes:
        repairs.update(outcome.repairs)
        filled.update(outcome.filled)
    return Published(
        tables=tables.table_names(plan, table_name, rows),
        rows={family: count for family, count in rows.items() if count},
        repairs=dict(repairs),
        empty_columns=[column.name for column in plan.facts.columns if not filled[column.name]],
        extent=[outcome.extent for outcome in outcomes],
        warnings=[],
    )


def _complete_outcomes(conn: Connection, staging: Staging, plan: LoadingPlan, chunks: int) -> list[Loaded]:
    loaded = tables.outcomes(conn, staging)
    if {outcome.chunk for outcome in loaded} != set(range(chunks)):
        raise refused(
            "staging_gone", f"only {len(loaded)} of {chunks} chunks are in {plan.staging}: submit the source again"
        )
    read, declared, name = sum(outcome.read for outcome in loaded), plan.facts.rows, plan.source.file_name
    if plan.facts.format is not Format.GEOPACKAGE and read != declared:  # the count in a GeoPackage may be wrong
        raise refused("unreadable", f"'{name}' declares {declared:,} features, but {read:,} could be read")
    if not any(outcome.extent.hull for outcome in loaded):
        raise refused("no_geometry", f"none of the {read:,} features of '{name}' has a usable geometry")
    return loaded


def _finish(
    conn: Connection, staging: Staging, family: Family, name: str, plan: LoadingPlan, id_column: str | None
) -> list[str]:
    table = Identifier(SCHEMA, name)
    tables.run(conn, queries("vectors").drop_table, table=table)  # of an earlier job of the same revision, never served
    tables.run(conn, queries("vectors").rename, table=staging.table(family), name=Identifier(name))
    tables.run(conn, queries("vectors").move_to_geo, table=Identifier(STAGING, name))
    indexing.settle(conn, staging, family, name)
    warnings = _index_ids(conn, table, plan.facts.columns, id_column) if id_column else []
    _describe(conn, table, plan)
    tables.run(conn, queries("vectors").settle_storage, table=table)
    tables.run(conn, queries("vectors").analyze, table=table)
    return warnings


def _index_ids(conn: Connection, table: Identifier, columns: Sequence[LayerColumn], id_column: str) -> list[str]:
    column = next(candidate for candidate in columns if id_column in (candidate.source, candidate.name))
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
