"""Drops the tables that the revisions of an asset have made."""

from __future__ import annotations

from pydantic import BaseModel

from geomill.sdk import HandlerContext, register_handler
from geomill.vector.facts import SUFFIXES


class DropTablesParams(BaseModel):
    table_stem: str
    revision: int


class DropTablesOutput(BaseModel):
    dropped: list[str]


@register_handler("vector.drop_tables", timeout_seconds=600, params=DropTablesParams, output=DropTablesOutput)
def drop_tables(ctx: HandlerContext[DropTablesParams]) -> DropTablesOutput:
    """Drops every revision's tables, up to the given one."""
    from geomill.vector.database import session
    from geomill.vector.tables import drop_published

    stem = ctx.params.table_stem
    revisions = [f"{stem}_r{number}" for number in range(1, ctx.params.revision + 1)]
    names = [revision + suffix for revision in revisions for suffix in ("", *SUFFIXES.values())]
    with session(ctx.database) as conn:
        return DropTablesOutput(dropped=drop_published(conn, names))
