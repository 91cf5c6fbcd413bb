"""Cuts a layer into chunks, and makes the staging tables that they go to."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, Field

from geomill.datasets.source import Source
from geomill.sdk import HandlerContext, register_handler
from geomill.vector.facts import Chunk, LayerFacts, LoadingPlan, LoadingRules, Reading
from geomill.vector.planning import chunks

SWEPT_SECONDS = 24 * 3600.0
"""A job that failed may be retried for so long: then its staging tables are dropped by whoever comes next."""


class PlanChunksParams(BaseModel):
    source: Source
    reading: Reading
    facts: LayerFacts
    rules: LoadingRules
    bounds: tuple[int, int]
    chunk_rows: Annotated[int | None, Field(ge=1)] = None


class PlanChunksOutput(BaseModel):
    plan: LoadingPlan
    chunks: list[Chunk]


@register_handler(
    "vector.plan_chunks",
    queue="container-tasks",
    timeout_seconds=600,
    params=PlanChunksParams,
    output=PlanChunksOutput,
)
def plan_chunks(ctx: HandlerContext[PlanChunksParams]) -> PlanChunksOutput:
    """Decides on chunks and makes empty staging tables."""
    from geomill.vector import tables
    from geomill.vector.database import session

    params = ctx.params
    name = tables.staging_name(ctx.job_id)
    with session(ctx.database) as conn:
        tables.ensure_schemas(conn)
        tables.sweep(conn, SWEPT_SECONDS)
        tables.make_staging(conn, tables.Staging(name, params.rules), params.facts.columns, ctx.job_id)
    plan = LoadingPlan(
        source=params.source, reading=params.reading, facts=params.facts, rules=params.rules, staging=name
    )
    return PlanChunksOutput(plan=plan, chunks=chunks(params.facts, *params.bounds, params.chunk_rows))
