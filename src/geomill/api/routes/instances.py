"""Routes of running processes and of the handlers that they have."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path

from geomill.api.gateway import TheGateway
from geomill.api.problems import problem_responses
from geomill.api.views.handlers import handler_details, handler_list
from geomill.contract.instances import HandlerDetails, HandlerList, InstanceDetails, InstanceList
from geomill.errors import NotFoundError, nearest
from geomill.store import instances

router = APIRouter(prefix="/api/v1", tags=["instances"], responses=problem_responses(503))

HandlerInPath = Annotated[str, Path(max_length=64, pattern=r"^[^\x00]+$")]


@router.get("/instances", summary="List orchestrators and workers with their work")
async def list_instances(gateway: TheGateway) -> InstanceList:
    """Shows how the work is divided: jobs and tasks that each process has now, and counts since its start."""
    async with gateway.connection() as conn:
        loads = await instances.overview(conn)
    return InstanceList(instances=[InstanceDetails.model_validate(load, from_attributes=True) for load in loads])


@router.get("/handlers", summary="List the handlers")
async def list_handlers(gateway: TheGateway) -> HandlerList:
    """Lists the handlers of this gateway, and those that only workers have."""
    async with gateway.connection() as conn:
        serving = await instances.serving(conn)
    return handler_list(gateway.handlers, serving)


@router.get(
    "/handlers/{name}", summary="Get a handler with its parameters and output", responses=problem_responses(404)
)
async def get_handler(gateway: TheGateway, name: HandlerInPath) -> HandlerDetails:
    """A former name leads to the handler, too."""
    async with gateway.connection() as conn:
        serving = await instances.serving(conn)
    names = {*gateway.handlers, *(handler for instance in serving for handler in instance.handlers)}
    if name not in names:
        raise NotFoundError(f"there is no handler '{name}'", remedy=nearest(name, names))
    return handler_details(gateway.handlers, serving, name)
