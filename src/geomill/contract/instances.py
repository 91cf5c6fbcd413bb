"""Responses about running processes and handlers."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from pydantic import BaseModel, ConfigDict, Field


class InstanceCounts(BaseModel):
    """The work of a process since its start, as of its latest heartbeat. Orchestrators have the first five counts,
    workers the last four."""

    model_config = ConfigDict(extra="ignore")

    claimed: int = Field(default=0, description="Submissions that it claimed")
    reclaimed: int = Field(default=0, description="Jobs that it took over from others")
    dispatched: int = Field(default=0, description="Tasks that it sent to queues")
    results: int = Field(default=0, description="Reports of workers that it applied")
    errors: int = Field(default=0, description="Lost connections, refused rounds and failed looks")
    leased: int = Field(default=0, description="Tasks that it began")
    completed: int = Field(default=0, description="Tasks that ended well")
    failed: int = Field(default=0, description="Tasks that failed")
    retried: int = Field(default=0, description="Begun tasks that had failed before, here or elsewhere")


class InstanceDetails(BaseModel):
    """A running orchestrator or worker."""

    model_config = ConfigDict(from_attributes=True)

    instance_id: str
    role: str
    hostname: str
    pid: int
    version: str
    queues: list[str]
    slots: int | None = Field(description="How many tasks a worker runs at once; null for an orchestrator")
    started_at: datetime
    heartbeat_seconds: float = Field(description="Seconds since its latest heartbeat")
    looked_at: datetime | None = Field(description="When it last looked for work, as of its latest heartbeat")
    alive: bool = Field(description="Whether it holds its lock, which the database releases when the process ends")
    owned_jobs: int = Field(description="Unfinished jobs of an orchestrator")
    leased_tasks: int = Field(description="Tasks that a worker has now")
    counts: InstanceCounts


class InstanceList(BaseModel):
    instances: list[InstanceDetails]


class HandlerInstance(BaseModel):
    """A live worker that has a handler."""

    instance_id: str
    version: str = Field(description="Its version of geomill")
    code_version: str | None = Field(description="The code version of the handler; null for an earlier release")
    hostname: str
    queues: list[str]


class HandlerSummary(BaseModel):
    name: str
    description: str | None = Field(description="Null if only workers know the handler, and not this gateway")
    queue: str | None = Field(description="The queue of its tasks, unless the workflow names another")
    isolated: bool | None = Field(description="Whether it runs in a child process of the worker")
    timeout_seconds: float | None
    former_names: list[str] = []
    workers: int = Field(description="Live workers that have it")
    versions: list[str] = Field(description="Versions of geomill of these workers")
    code_versions: list[str] = Field(description="Code versions of the handler on these workers")
    code_differs: bool = Field(description="Whether these workers have different code of the handler")


class HandlerList(BaseModel):
    handlers: list[HandlerSummary]


class HandlerDetails(HandlerSummary):
    params_schema: dict[str, Any] | None = Field(description="JSON Schema of its params; null if it declares none")
    output_schema: dict[str, Any] | None = Field(description="JSON Schema of its output; null if it declares none")
    instances: list[HandlerInstance]
