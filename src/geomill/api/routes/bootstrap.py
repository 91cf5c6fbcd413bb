"""Routes of the database schema."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query
from fastapi.responses import PlainTextResponse
from pydantic import BaseModel

from geomill.api.gateway import TheGateway
from geomill.api.problems import problem_responses
from geomill.catalogue.databases import migrate_external
from geomill.store.bootstrap import bootstrap_ddl, bootstrap_migrate

router = APIRouter(prefix="/api/v1/bootstrap", tags=["bootstrap"])


class Migration(BaseModel):
    changed: bool
    done: list[str]
    external: list[str] | None = None
    """Changes to the external zone's database; null if there is none."""


@router.get("/ddl", summary="Get the schema as SQL", response_class=PlainTextResponse)
async def get_ddl() -> PlainTextResponse:
    return PlainTextResponse(bootstrap_ddl())


@router.post(
    "/migrate", summary="Migrate the database to the current schema", responses=problem_responses(409, 422, 503)
)
async def migrate(
    gateway: TheGateway,
    confirm: Annotated[str, Query(description="Must be `yes`; otherwise the request is refused")] = "",
) -> Migration:
    """Adds missing objects, also in the external zone's database. Changes that would lose data are refused, with their
    SQL."""
    async with gateway.connection() as conn:
        done = (await bootstrap_migrate(conn, confirm=confirm == "yes")).done
    outside = (await migrate_external(gateway.external_url)).done if gateway.external_url else None
    return Migration(
        changed=bool(done or outside),
        done=[change.summary for change in done],
        external=None if outside is None else [change.summary for change in outside],
    )
