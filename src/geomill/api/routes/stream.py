"""One stream for a whole page: several topics in one response."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import Annotated

from fastapi import APIRouter, Depends, Header, Query
from fastapi.sse import EventSourceResponse, ServerSentEvent

from geomill.api.access import RULES, ThePrincipal
from geomill.api.gateway import Gateway, TheGateway
from geomill.api.merged_streams import Positions, merged
from geomill.api.problems import problem_responses
from geomill.api.routes.jobs import admitted, existing_job
from geomill.contract.streams import StreamTopics
from geomill.errors import Forbidden
from geomill.store.job_lists import JobFilter

router = APIRouter(responses=problem_responses(503))


async def _topics(gateway: TheGateway, principal: ThePrincipal, order: Annotated[StreamTopics, Query()]) -> list[str]:
    """Check the topics before the stream begins, while a refusal can still be sent."""
    if "reviews" in order.topic and not RULES["GET /api/assets/review/stream"].admits(principal):
        raise Forbidden("the topic 'reviews' needs the role reviewer", remedy="leave it out")
    for topic in order.topic:
        if topic.startswith("job:"):
            await existing_job(gateway, topic.removeprefix("job:"))
    return order.topic


@router.get(
    "/api/v1/stream",
    tags=["jobs"],
    summary="Follow several topics in one stream",
    response_class=EventSourceResponse,
    responses=problem_responses(403, 404, 429),
    dependencies=[Depends(admitted)],
)
async def stream_topics(
    gateway: TheGateway,
    topics: Annotated[list[str], Depends(_topics)],
    last_event_id: Annotated[str, Header(max_length=512)] = "",
) -> AsyncIterator[ServerSentEvent]:
    """Server-sent events of the single streams, named after their topic: `jobs.job`, `instances.changed`, `job.end`. A
    client that reconnects with `Last-Event-ID` continues each of them."""
    positions = Positions(last_event_id)
    async for event in merged(_sources(gateway, topics, positions), positions):
        yield event


def _sources(gateway: Gateway, topics: list[str], positions: Positions) -> Mapping[str, AsyncIterator[ServerSentEvent]]:
    streams, sources = gateway.streams, dict[str, AsyncIterator[ServerSentEvent]]()
    for topic in topics:
        name, _, job_id = topic.partition(":")
        if name == "jobs":
            sources[name] = streams.follow_jobs(JobFilter(), positions.number(name))
        elif name == "instances":
            sources[name] = streams.follow_instances(positions.get(name))
        elif name == "reviews":
            sources[name] = streams.follow_reviews(positions.get(name))
        else:
            sources[name] = streams.follow(job_id, positions.number(name) or 0)
    return sources
