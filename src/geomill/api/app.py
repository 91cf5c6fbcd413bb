"""Puts the API together. Nothing is global: two apps in one process do not know each other."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager
from typing import Any

from fastapi import FastAPI

from geomill import __version__
from geomill.api import problems
from geomill.api.figures import Figures
from geomill.api.gateway import Gateway
from geomill.api.limits import BodyLimit, BrowserGuard
from geomill.api.measuring import Measuring
from geomill.api.readiness import Readiness
from geomill.api.routes import bootstrap, health, jobs, workflows
from geomill.api.streams import Streams
from geomill.settings import QueueSettings
from geomill.store.pool import open_pool
from geomill.workflows.catalogue import WorkflowCatalogue

LOOPBACK_NAMES = ("127.0.0.1", "localhost", "::1")

_DESCRIPTION = """\
Submit jobs, follow them, steer them. Errors are problem documents (RFC 9457) with a stable `code`.
"""
_TAGS = [
    {"name": "jobs", "description": "Submit jobs and see what becomes of them."},
    {"name": "control", "description": "Cancel, pause, resume and retry jobs."},
    {"name": "workflows", "description": "What can be run."},
    {"name": "bootstrap", "description": "The database schema."},
    {"name": "health", "description": "Whether the platform lives, and how it does."},
]


class _Application(FastAPI):
    def openapi(self) -> dict[str, Any]:
        described = super().openapi()
        described["components"]["schemas"].update(problems.component_schemas())
        return described


def create_app(
    url: str,
    catalogue: WorkflowCatalogue,
    queues: QueueSettings,
    *,
    hosts: Collection[str] = LOOPBACK_NAMES,
    pool_size: int = 8,
) -> FastAPI:
    """`hosts` are the names that a caller may use for this gateway; any, when empty."""

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        async with open_pool(url, size=pool_size, name="geomill gateway") as pool:
            app.state.gateway = Gateway(
                pool=pool,
                catalogue=catalogue,
                job_queue=queues.job_queue_name,
                streams=Streams(pool, queues.job_queue_name),
                figures=Figures(pool),
                readiness=Readiness(pool),
            )
            yield

    app = _Application(
        title="geomill",
        version=__version__,
        description=_DESCRIPTION,
        openapi_tags=_TAGS,
        lifespan=lifespan,
        redoc_url=None,
        responses=problems.problem_responses(422),
    )
    for noun in (jobs, workflows, bootstrap, health):
        app.include_router(noun.router)
    problems.install(app)
    app.add_middleware(BodyLimit)
    app.add_middleware(BrowserGuard, hosts=hosts)
    app.add_middleware(Measuring)
    return app
