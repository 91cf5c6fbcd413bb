"""Makes tables of what was loaded: key, indexes, statistics, and the move to where they are served."""

from __future__ import annotations

from functools import partial
from typing import Annotated, Any

from pydantic import BaseModel, Field

from geomill.sdk import HandlerContext, register_handler
from geomill.vector.facts import LayerColumn, LoadingPlan
from geomill.vector.repairs import warnings

LONGEST_NAME = 56
"""Of PostgreSQL's 63 bytes: the tables of a layer that is split have an ending more."""


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
    """Turns staging tables into finished ones, all at once or not at all."""
    from geomill.vector.database import session
    from geomill.vector.extent import footprint
    from geomill.vector.publishing import publish

    params, rules = ctx.params, ctx.params.plan.rules

    def tell(fraction: float, message: str) -> None:
        ctx.raise_if_cancelled()
        ctx.progress(fraction, message=message)

    sessions = partial(session, ctx.database)
    made = publish(sessions, params.plan, params.table_name, params.chunks, params.id_column, tell)
    geometry, bbox = footprint(made.extent, rules.target_crs)
    empty = [f"the column '{name}' is empty in all rows" for name in made.empty_columns]
    split = [f"the layer is split into {', '.join(made.tables.values())}"] if len(made.tables) > 1 else []
    return FinishOutput(
        table_name=params.table_name,
        tables=[
            MadeTable(table_name=name, geometry_type=rules.type_of(family), rows=made.rows.get(family, 0))
            for family, name in made.tables.items()
        ],
        row_count=sum(made.rows.values()),
        geometry_type=rules.type_of(rules.family),
        srid=rules.srid,
        columns=params.plan.facts.columns,
        geometry=geometry,
        bbox=bbox,
        repairs=made.repairs,
        warnings=[*warnings(made.repairs), *empty, *split, *made.warnings],
    )
