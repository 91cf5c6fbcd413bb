"""Lists the time steps of which a collection is made."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, Field

from geomill.datasets.patience import first_look
from geomill.datasets.source import Source
from geomill.sdk import HandlerContext, Zone, register_handler

ALL = "all"
MOST_STEPS = 1000
TIMEOUT_SECONDS = 1800


class ListTimesParams(BaseModel):
    container_name: str
    file_name: str
    zone: Zone = Zone.BRONZE
    variable: str | None = None
    times: Annotated[list[str], Field(max_length=MOST_STEPS)] = []


class ListTimesOutput(BaseModel):
    times: list[str]


@register_handler(
    "raster.list_times",
    queue="container-tasks",
    timeout_seconds=TIMEOUT_SECONDS,
    params=ListTimesParams,
    output=ListTimesOutput,
)
def list_times(ctx: HandlerContext[ListTimesParams]) -> ListTimesOutput:
    """Returns the times as they are, or for `["all"]` those of all steps of the file."""
    from geomill.raster.placing import time_steps

    params = ctx.params
    if params.times != [ALL]:
        return ListTimesOutput(times=params.times)
    source = Source(zone=params.zone, container_name=params.container_name, file_name=params.file_name)
    size = ctx.storage.sync.stat(source.name).size
    with first_look(ctx, params.file_name, size, TIMEOUT_SECONDS):
        return ListTimesOutput(times=time_steps(ctx.storage, source.name, params.variable, MOST_STEPS))
