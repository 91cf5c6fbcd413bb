"""Finishes loaded tables: builds key, indexes and statistics, and moves them to the served schema."""

from __future__ import annotations

from functools import partial
from typing import Annotated, Any

from pydantic import BaseModel, Field

from geomill.sdk import HandlerContext, register_handler
from geomill.vector.facts import LayerColumn, LoadingPlan
from geomill.vector.repairs import warnings

LONGEST_NAME = 56
"""Shorter than PostgreSQL's 63 bytes, because the tables of a split layer have a suffix."""


class FinishParams(BaseModel):
    plan: LoadingPlan
    chunks: int
    table_name: Annotated[str, Field(pattern=r"^[a-z0-9_]+$", max_length=LONGEST_NAME)]
    id_column: str | None = None


class MadeTable(BaseModel):
    table_name: str
    geometry_type: str
    rows: int


class FinishOutput(BaseModel):
    table_name: str
    tables: list[MadeTable]
    row_count: int
    geometry_type: str
    srid: int
    columns: list[LayerColumn]
    geometry: dict[str, Any]
    bbox: list[float]
    repairs: dict[str, int]
    warnings: list[str]


@register_handler(
    "vector.finish", queue="container-tasks", timeout_seconds=7200, params=FinishParams, output=FinishOutput
)
def finish(ctx: HandlerContext[FinishParams]) -> FinishOutput:
    """Turns staging tables into finished ones in one transaction."""
    from geomill.vector.database import session
    from geomill.vector.extent import footprint
    from geomill.vector.publishing import publish

    params, rules = ctx.params, ctx.params.plan.rules

    def tell(fraction: float, message: str) -> None:
        ctx.raise_if_cancelled()
        ctx.progress(fraction, message=message)

    sessions = partial(session, ctx.database)
    published = publish(sessions, params.plan, params.table_name, params.chunks, params.id_column, tell)
    geometry, bbox = footprint(published.extent, rules.target_crs)
    empty = [f"the column '{name}' is empty in all rows" for name in published.empty_columns]
    split = [f"the layer is split into {', '.join(published.tables.values())}"] if len(published.tables) > 1 else []
    return FinishOutput(
        table_name=params.table_name,
        tables=[
            MadeTable(table_name=name, geometry_type=rules.type_of(family), rows=published.rows.get(family, 0))
            for family, name in published.tables.items()
        ],
        row_count=sum(published.rows.values()),
        geometry_type=rules.type_of(rules.family),
        srid=rules.srid,
        columns=params.plan.facts.columns,
        geometry=geometry,
        bbox=bbox,
        repairs=published.repairs,
        warnings=[*warnings(published.repairs), *empty, *split, *published.warnings],
    )
