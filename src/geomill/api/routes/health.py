"""Liveness, readiness, health and metrics, for people, load balancers and Prometheus."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal

import psycopg
from fastapi import APIRouter, Response
from fastapi.responses import PlainTextResponse
from prometheus_client import CONTENT_TYPE_LATEST
from pydantic import BaseModel, ConfigDict, Field

from geomill import __version__
from geomill.api.gateway import TheGateway
from geomill.api.problems import problem_responses
from geomill.store import attendance, metrics
from geomill.store import jobs as job_store
from geomill.store.pool import Connection

router = APIRouter(tags=["health"])


class Live(BaseModel):
    status: Literal["live"] = "live"
    version: str = __version__


class ReadyAnswer(BaseModel):
    status: Literal["ready", "not_ready"]
    reasons: list[str] = []


class _FromRow(BaseModel):
    model_config = ConfigDict(from_attributes=True)


class DutyHealth(BaseModel):
    """A duty that has failed since its process began."""

    error: str
    failed_at: datetime
    failing: bool = Field(description="Whether its latest run failed")


class InstanceView(_FromRow):
    instance_id: str
    role: str
    version: str
    hostname: str
    pid: int
    queues: list[str]
    started_at: datetime
    heartbeat_seconds: float = Field(description="Seconds since its last heartbeat")
    alive: bool = Field(description="Whether it holds its lock, which the database releases when the process ends")
    owned_jobs: int
    duties: dict[str, DutyHealth] = {}


class QueueView(_FromRow):
    queue_name: str
    waiting: int
    leased: int
    oldest_seconds: float
    consumers: int = Field(default=0, description="Processes that take messages from the queue")


class DeadLetterView(_FromRow):
    """Messages of one queue that could not be handled for one reason."""

    queue_name: str
    reason: str
    letters: int


class SpaceView(_FromRow):
    """A disk of this gateway's machine that holds a zone or the data folder."""

    place: str
    free_bytes: int
    total_bytes: int
    low: bool = Field(default=False, description="Whether less than `GEOMILL_SPACE_WARNING_MB` is free")


class ParkedView(_FromRow):
    """A parked job. Nobody works on it until it is released."""

    job_id: str
    workflow_id: str
    parked_at: datetime
    parked_reason: str


class HolderView(_FromRow):
    """A session, prepared transaction or replication slot that keeps dead rows from being vacuumed."""

    kind: Literal["session", "prepared", "slot"]
    name: str
    seconds: float | None = Field(description="Its age; null if this database role may not see it")
    transactions: int = Field(description="Number of transactions that have begun since")


class Health(BaseModel):
    status: Literal["ok", "degraded"]
    version: str = __version__
    reasons: list[str] = []
    instances: list[InstanceView]
    queues: list[QueueView]
    jobs: dict[str, int] = Field(description="Number of unfinished jobs: pending, running, paused, parked")
    oldest_transaction: HolderView | None = Field(
        default=None, description="The oldest holder that keeps dead rows from being vacuumed"
    )
    parked: list[ParkedView] = Field(default=[], description="The twenty jobs that have been parked longest")
    dead_letters: list[DeadLetterView] = Field(
        default=[], description="All dead letters; `reasons` lists those of the last day"
    )
    space: list[SpaceView] = []
    database_bytes: int | None = Field(
        default=None, description="Size of the database; null if reading it took too long"
    )


@router.get("/health/live", summary="Whether this process is up")
async def live() -> Live:
    return Live()


@router.get(
    "/health/ready",
    summary="Whether jobs will run",
    responses={503: {"model": ReadyAnswer, "description": "Not ready, with the reasons"}},
)
async def ready(gateway: TheGateway, response: Response) -> ReadyAnswer:
    """Ready if the database answers with the current schema and at least one orchestrator and one worker are alive. A
    queue that no process serves is listed among the reasons, but does not make the platform unready."""
    standing = await gateway.readiness.look()
    if standing.obstacles:
        response.status_code = 503
        return ReadyAnswer(status="not_ready", reasons=standing.reasons)
    return ReadyAnswer(status="ready", reasons=standing.reasons)


@router.get("/health", summary="Get processes, queues and current problems", responses=problem_responses(503))
async def health(gateway: TheGateway) -> Health:
    reasons = (await gateway.readiness.look()).reasons
    async with gateway.connection() as conn:
        instances = [InstanceView.model_validate(instance) for instance in await metrics.instances(conn)]
        queues = [QueueView.model_validate(depth) for depth in await metrics.queues(conn)]
        jobs = await metrics.active_jobs(conn)
        holders = await metrics.horizon(conn)
        parked = [ParkedView.model_validate(row) for row in await job_store.parked(conn)]
        consumers = await attendance.consumers(conn)
        dead_letters = await metrics.dead_letters(conn)
        reasons += [_dead(letters) for letters in await metrics.fresh_dead_letters(conn)]
        database_bytes = await _database_bytes(conn)
    for instance in instances:
        reasons += [
            f"{duty} of {instance.instance_id} fails" for duty, state in instance.duties.items() if state.failing
        ]
    reasons += [holder.told() for holder in holders if holder.old]
    reasons += [f"the job {job.job_id} is parked: {job.parked_reason}" for job in parked]
    reasons += await gateway.disks.reasons()
    return Health(
        status="degraded" if reasons else "ok",
        reasons=reasons,
        instances=instances,
        queues=[queue.model_copy(update={"consumers": consumers.get(queue.queue_name, 0)}) for queue in queues],
        jobs=jobs,
        oldest_transaction=HolderView.model_validate(holders[0]) if holders else None,
        parked=parked,
        dead_letters=[DeadLetterView.model_validate(letters) for letters in dead_letters],
        space=[
            SpaceView.model_validate(space).model_copy(update={"low": gateway.disks.is_low(space)})
            for space in await gateway.disks.look()
        ],
        database_bytes=database_bytes,
    )


def _dead(letters: metrics.DeadLetters) -> str:
    count = "1 dead letter" if letters.letters == 1 else f"{letters.letters} dead letters"
    return f"{count} on {letters.queue_name}: {letters.reason}"


async def _database_bytes(conn: Connection) -> int | None:
    try:
        return await metrics.database_bytes(conn)
    except psycopg.errors.QueryCanceled:
        return None


@router.get("/metrics", summary="Get metrics for Prometheus", response_class=PlainTextResponse)
async def prometheus(gateway: TheGateway) -> Any:
    return Response(await gateway.figures.text(), media_type=CONTENT_TYPE_LATEST)
