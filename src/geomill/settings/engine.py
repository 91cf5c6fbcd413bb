"""The engine: workflows, queues, the broker, orchestrators, workers and callbacks."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from pydantic import AliasChoices, Field, SecretStr, field_validator
from pydantic_settings import NoDecode

from geomill.domain.engine.attendance import LONGEST_JOB_QUEUE
from geomill.domain.engine.callback import Allowance
from geomill.domain.engine.message import JOBS_QUEUE, TASK_QUEUES
from geomill.settings.concern import Concern, split_commas


class WorkflowSettings(Concern):
    """The sources of workflows and handlers, beside the built-in ones and those from entry points."""

    workflows: Annotated[list[Path], NoDecode, Field(description="Folders of workflow files, comma-separated")] = Field(
        default_factory=list
    )
    handlers: Annotated[list[str], NoDecode, Field(description="Modules that register handlers, comma-separated")] = (
        Field(default_factory=list)
    )

    _lists = field_validator("workflows", "handlers", mode="before")(split_commas)


class QueueSettings(Concern):
    job_queue_name: Annotated[
        str, Field(min_length=1, max_length=LONGEST_JOB_QUEUE, description="Queue of job submissions")
    ] = Field(default=JOBS_QUEUE, validation_alias=AliasChoices("JOB_QUEUE_NAME", "GEOMILL_JOB_QUEUE_NAME"))
    queues: Annotated[
        list[str], NoDecode, Field(description="Task queues in addition to the default ones, comma-separated")
    ] = Field(default_factory=list)

    _lists = field_validator("queues", mode="before")(split_commas)

    @property
    def task_queues(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys((*TASK_QUEUES, *self.queues)))


class BrokerSettings(Concern):
    """Which messages wake workers, and where other applications may submit."""

    broker: Annotated[
        Literal["postgres", "servicebus"],
        Field(description="`postgres`, or `servicebus` for Azure Service Bus beside the database"),
    ] = "postgres"
    service_bus_connection_string: Annotated[
        SecretStr | None, Field(description="Connection string of the namespace, for development")
    ] = Field(
        default=None,
        validation_alias=AliasChoices("SERVICE_BUS_CONNECTION_STRING", "GEOMILL_SERVICE_BUS_CONNECTION_STRING"),
    )
    service_bus_namespace: Annotated[
        str | None,
        Field(
            pattern=r"^[A-Za-z0-9.-]+$",
            description="Namespace of Service Bus, as `name` or `name.servicebus.windows.net`",
        ),
    ] = Field(default=None, validation_alias=AliasChoices("SERVICE_BUS_NAMESPACE", "GEOMILL_SERVICE_BUS_NAMESPACE"))
    service_bus_certificates: Annotated[
        Path | None, Field(description="File of authorities that Service Bus's certificate may come from")
    ] = None
    service_bus_client_id: Annotated[
        str | None, Field(description="Client id of the managed identity for Service Bus")
    ] = Field(default=None, validation_alias=AliasChoices("MANAGED_IDENTITY_CLIENT_ID", "AZURE_CLIENT_ID"))


class EngineSettings(Concern):
    """How processes notice that another one has died.

    A crash releases the lock of the process's session, and the next scan or two notice it. The threshold is for
    processes that are silent although their session is alive. It must be the same in all processes, because a worker
    ends its tasks before others give them away.
    """

    heartbeat_interval_sec: Annotated[float, Field(gt=0, description="Seconds between two heartbeats of a process")] = (
        Field(default=5.0, validation_alias=AliasChoices("HEARTBEAT_INTERVAL_SEC", "GEOMILL_HEARTBEAT_INTERVAL_SEC"))
    )
    orphan_threshold_sec: Annotated[
        float, Field(gt=0, description="Seconds of silence after which a process counts as dead")
    ] = Field(default=25.0, validation_alias=AliasChoices("ORPHAN_THRESHOLD_SEC", "GEOMILL_ORPHAN_THRESHOLD_SEC"))
    orphan_scan_interval_sec: Annotated[
        float, Field(gt=0, description="Seconds between two scans for dead processes and their work")
    ] = Field(
        default=1.0, validation_alias=AliasChoices("ORPHAN_SCAN_INTERVAL_SEC", "GEOMILL_ORPHAN_SCAN_INTERVAL_SEC")
    )
    dispatch_timeout_sec: Annotated[
        float,
        Field(
            ge=0,
            le=31_536_000,
            description="Seconds that a task waits in a queue that no worker serves before it fails; 0: forever",
        ),
    ] = 86_400.0
    max_deliveries: Annotated[
        int, Field(ge=1, description="Number of workers that may die while they run a task before its attempt fails")
    ] = 4

    @property
    def beat_seconds(self) -> float:
        """The heartbeat interval, shortened so that five heartbeats fit into the threshold."""
        return min(self.heartbeat_interval_sec, self.orphan_threshold_sec / 5)


class WorkerSettings(Concern):
    """Handler processes. Handlers that are not async run in them; async ones are subject to the drain time only."""

    task_processes: Annotated[
        int | None,
        Field(ge=1, le=1000, description="Handler processes that a worker keeps ready; default: the number of CPUs"),
    ] = None
    task_memory_mb: Annotated[
        int | None,
        Field(
            ge=64, description="Megabytes of memory of one handler process; beyond it the task fails; default: no limit"
        ),
    ] = None
    task_spare: Annotated[
        int,
        Field(ge=0, le=100, description="Extra tasks that a full worker takes from platforms that have no task in it"),
    ] = 1
    task_recycle: Annotated[
        int, Field(ge=1, description="Tasks that a handler process runs before a new one replaces it")
    ] = 100
    task_network: Annotated[
        Literal["auto", "open"],
        Field(
            description="auto: handler processes have network access only if zones or database need it; open: always"
        ),
    ] = "auto"
    task_environment: Annotated[
        list[str],
        NoDecode,
        Field(description="Environment variables to pass to handlers in addition to the usual ones, comma-separated"),
    ] = Field(default_factory=list)
    scratch: Annotated[
        Path | None, Field(description="Folder for temporary files of tasks; default: `scratch` in the data folder")
    ] = None
    drain_seconds: Annotated[
        float, Field(ge=0, le=86_400, description="Seconds that a stopping worker waits for its tasks")
    ] = 30.0
    handler_wait_seconds: Annotated[
        float,
        Field(ge=0, le=86_400, description="Seconds that tasks wait for a handler that no worker of their queue has"),
    ] = 60.0

    _lists = field_validator("task_environment", mode="before")(split_commas)


class CallbackSettings(Concern):
    """Callbacks: the calls to a job's `callback_url` when the job has ended."""

    callback_secret: Annotated[
        Annotated[SecretStr, Field(min_length=16)] | None,
        Field(description="Secret that signs callbacks (HMAC-SHA256); default: they are not signed"),
    ] = None
    callback_allow: Annotated[
        list[str],
        NoDecode,
        Field(description="Hosts and networks outside the public internet that callbacks may reach, comma-separated"),
    ] = Field(default_factory=list)
    public_url: Annotated[
        str | None, Field(description="Public URL of the gateway; links in its answers begin with it")
    ] = None

    _lists = field_validator("callback_allow", mode="before")(split_commas)

    @field_validator("callback_allow")
    @classmethod
    def _readable(cls, value: list[str]) -> list[str]:
        Allowance.of(value)
        return value
