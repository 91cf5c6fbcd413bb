"""Deletes intermediates of loads: staging tables, and copies of sources on this machine."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, Field

from geomill.sdk import HandlerContext, register_handler


class CleanupStagingParams(BaseModel):
    job_id: str | None = None
    """Delete only those of this job, whatever its age."""
    older_than_hours: Annotated[float, Field(ge=0)] = 24.0


class CleanupStagingOutput(BaseModel):
    dropped: list[str]


@register_handler(
    "vector.cleanup_staging",
    queue="container-tasks",
    timeout_seconds=600,
    params=CleanupStagingParams,
    output=CleanupStagingOutput,
)
def cleanup_staging(ctx: HandlerContext[CleanupStagingParams]) -> CleanupStagingOutput:
    """Drops the staging tables of one job, or of all jobs that ended long ago."""
    from geomill.vector import tables
    from geomill.vector.database import session
    from geomill.vector.workspace import forget

    params = ctx.params
    with session(ctx.database) as conn:
        tables.ensure_schemas(conn)
        if params.job_id is None:
            return CleanupStagingOutput(dropped=tables.sweep(conn, params.older_than_hours * 3600))
        dropped = tables.drop_staging(conn, tables.staging_tables(conn, tables.staging_name(params.job_id)))
    forget(params.job_id)
    return CleanupStagingOutput(dropped=dropped)
