"""The process-wide objects that routes use: connections, workflows, streams, figures."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import Annotated, cast

from fastapi import Depends, Request

from geomill.api.authentication import CallerAuthenticator
from geomill.api.checking import WorkflowChecks
from geomill.api.definitions import PinnedGraphs
from geomill.api.disks import Disks
from geomill.api.figures import Figures
from geomill.api.links import Links
from geomill.api.oidc import OidcSignIn
from geomill.api.readiness import Readiness
from geomill.api.sessions import Sessions
from geomill.api.storage_figures import StorageFigures
from geomill.api.streams import Streams
from geomill.platform.desk import Desk
from geomill.platform.inspector import Inspector
from geomill.sdk.registry import Registry
from geomill.settings import RetentionSettings, SettingInEffect, UploadSettings
from geomill.stages.registry import StageJobs
from geomill.store.pool import Connection, Pool
from geomill.workflows.registry import WorkflowRegistry

PATIENCE_SECONDS = 5.0
"""How long to wait for a connection. A quick 503 serves a client better than a long wait."""


@dataclass(frozen=True)
class Gateway:
    pool: Pool
    workflow_registry: WorkflowRegistry
    job_queue: str
    streams: Streams
    figures: Figures
    readiness: Readiness
    disks: Disks
    authenticator: CallerAuthenticator
    desk: Desk
    inspector: Inspector
    stage_jobs: StageJobs
    links: Links
    handlers: Registry
    task_queues: tuple[str, ...]
    settings: Sequence[SettingInEffect]
    storage_figures: StorageFigures
    workflow_checks: WorkflowChecks
    uploads: UploadSettings
    retention: RetentionSettings
    sessions: Sessions
    oidc: OidcSignIn | None = None
    external_url: str | None = None
    graphs: PinnedGraphs = field(default_factory=PinnedGraphs)

    def connection(self) -> AbstractAsyncContextManager[Connection]:
        return self.pool.connection(timeout=PATIENCE_SECONDS)


async def gateway_of(request: Request) -> Gateway:
    """Return the gateway. It is a coroutine because FastAPI runs plain functions in a thread, which costs time on each
    request."""
    return cast("Gateway", request.app.state.gateway)


TheGateway = Annotated[Gateway, Depends(gateway_of)]
