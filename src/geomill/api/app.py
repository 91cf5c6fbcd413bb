"""Assembles the API. It has no global state, so one process can run several apps."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, nullcontext
from typing import Any

from fastapi import Depends, FastAPI
from starlette.middleware.cors import CORSMiddleware

from geomill import __version__
from geomill.api import openapi, problems
from geomill.api.access import RULES, AccessRules, Who, confirmed, describe, mounted, require_complete
from geomill.api.authentication import Authenticator, CallerAuthenticator
from geomill.api.checking import WorkflowChecks
from geomill.api.disks import WARNING_BYTES, Disks
from geomill.api.figures import Figures
from geomill.api.gateway import Gateway
from geomill.api.guard import RequestGuard
from geomill.api.limits import BodyLimit, BrowserGuard
from geomill.api.links import Links
from geomill.api.measuring import Measuring
from geomill.api.mounting import Mountable
from geomill.api.oidc import OidcSignIn
from geomill.api.rates import Buckets
from geomill.api.readiness import Readiness
from geomill.api.replanning import Replanning
from geomill.api.routes import (
    assets,
    bootstrap,
    callbacks,
    circuits,
    console,
    docs,
    earlier_names,
    health,
    inspection,
    instances,
    job_lists,
    jobs,
    keys,
    nodes,
    operations,
    parked,
    platform,
    platforms,
    schedules,
    session,
    sign_in,
    stage_jobs,
    storage_usage,
    stream,
    streams,
    styles,
    submission,
    uploads,
    workflows,
)
from geomill.api.routes import queues as queue_routes
from geomill.api.sessions import Sessions
from geomill.api.storage_figures import StorageFigures
from geomill.api.streams import STREAMS_PER_CALLER, Streams
from geomill.api.tokens import Tokens
from geomill.api.tus import REQUEST_HEADERS, RESPONSE_HEADERS, TusVersion, carries_bytes
from geomill.domain.assets.asset import DataType
from geomill.platform.desk import Desk, SizeRoute
from geomill.platform.export import WorkflowExporter
from geomill.platform.inspector import Inspector
from geomill.sdk.registry import Registry
from geomill.settings import (
    AccessSettings,
    ConsoleSettings,
    InspectionSettings,
    PlatformSettings,
    QueueSettings,
    RetentionSettings,
    SettingInEffect,
    UploadSettings,
)
from geomill.stages.registry import StageJobs
from geomill.storage import NO_STORAGE, Storage
from geomill.store.pool import Pool, open_pool
from geomill.workflows.registry import WorkflowRegistry

LOOPBACK_NAMES = ("127.0.0.1", "localhost", "::1")
MEGABYTE = 1024 * 1024

_DESCRIPTION = """\
Submit, review and find published data; submit, follow and control jobs. Errors are problem documents (RFC 9457) with
a stable `code`.

Credentials are API keys (`geomill keys create`) or tokens of the configured OIDC issuer. `x-roles` of each operation
lists the roles that may call it.
"""
_TAGS = [
    {"name": "platform", "description": "Submit data, read its status, review it."},
    {"name": "uploads", "description": "Upload files, resumably, by the tus protocol; or have them fetched."},
    {"name": "platforms", "description": "Partner applications and their identifiers."},
    {"name": "assets", "description": "Published data and its history."},
    {"name": "styles", "description": "Named ways to draw an asset."},
    {"name": "jobs", "description": "Submit jobs and follow them."},
    {"name": "stage jobs", "description": "Submit stage jobs and read their status."},
    {"name": "control", "description": "Cancel, pause, resume and retry jobs."},
    {"name": "workflows", "description": "The workflows that can be run."},
    {"name": "queues", "description": "Queues and dead letters."},
    {"name": "schedules", "description": "Start workflows at set times."},
    {"name": "callbacks", "description": "Calls that tell submitters that a job has ended."},
    {"name": "instances", "description": "Running processes and the handlers that they have."},
    {"name": "circuits", "description": "Handlers that failed in a row and are held back."},
    {"name": "storage", "description": "The use of storage."},
    {"name": "keys", "description": "API keys."},
    {"name": "session", "description": "Who the caller is; sessions of the console."},
    {"name": "operations", "description": "Settings of the gateway, and changes by operators."},
    {"name": "bootstrap", "description": "The database schema."},
    {"name": "health", "description": "Liveness, readiness, health and metrics."},
]


class _Application(FastAPI):
    def openapi(self) -> dict[str, Any]:
        described = super().openapi()
        described["components"]["schemas"].update(problems.component_schemas())
        describe(described, RULES, problems.problem_responses)
        openapi.complete(described)
        return described


def create_app(
    url: str,
    workflow_registry: WorkflowRegistry,
    queues: QueueSettings,
    access: AccessSettings,
    defaults: PlatformSettings | None = None,
    *,
    storage: Storage = NO_STORAGE,
    job_types: StageJobs | None = None,
    handlers: Registry | None = None,
    settings: Sequence[SettingInEffect] = (),
    hosts: Collection[str] = LOOPBACK_NAMES,
    pool_size: int = 8,
    services: Mountable | None = None,
    links: Links | None = None,
    external_url: str | None = None,
    streams_per_caller: int = STREAMS_PER_CALLER,
    space_warning_bytes: int = WARNING_BYTES,
    authenticator: CallerAuthenticator | None = None,
    inspection_settings: InspectionSettings | None = None,
    upload_settings: UploadSettings | None = None,
    retention: RetentionSettings | None = None,
    console_settings: ConsoleSettings | None = None,
) -> FastAPI:
    """Build the application.

    `hosts` are the names by which callers may address a gateway on this machine; empty allows any. `services` are
    mounted beside the gateway's own routes. `external_url` is the external zone's database. `authenticator` identifies
    callers; by default by the keys in the database and the tokens of the issuer. `handlers` and `settings` are shown to
    operators; workflows are checked by these handlers. `upload_settings` are the limits of uploads,
    and `retention` tells the ages at which orchestrators delete data.
    """
    upload_limits = upload_settings or UploadSettings()
    registry = handlers or Registry({})
    console_options = console_settings or ConsoleSettings()

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        async with AsyncExitStack() as stack:
            pool = await stack.enter_async_context(open_pool(url, size=pool_size, name="geomill gateway"))
            outside = await stack.enter_async_context(_outside(external_url))
            caller_authenticator = authenticator or Authenticator(pool, Tokens.of(access))
            sessions = Sessions(pool, console_options)
            disks = Disks(storage, space_warning_bytes)
            inspector = Inspector(storage, inspection_settings or InspectionSettings())
            await stack.enter_async_context(inspector.running())
            storage_figures = StorageFigures(pool, storage, disks)
            app.state.gateway = Gateway(
                pool=pool,
                workflow_registry=workflow_registry,
                job_queue=queues.job_queue_name,
                streams=Streams(pool, queues.job_queue_name, streams_per_caller),
                figures=Figures(pool, disks=disks, storage=storage_figures),
                readiness=Readiness(pool),
                disks=disks,
                desk=_desk(workflow_registry, queues.job_queue_name, storage, defaults or PlatformSettings(), outside),
                inspector=inspector,
                authenticator=caller_authenticator,
                stage_jobs=job_types or StageJobs(),
                links=links or Links(),
                handlers=registry,
                task_queues=queues.task_queues,
                settings=settings,
                storage_figures=storage_figures,
                workflow_checks=WorkflowChecks(registry.info, queues.task_queues),
                sessions=sessions,
                oidc=OidcSignIn.of(access, console_options),
                external_url=external_url,
                uploads=upload_limits,
                retention=retention or RetentionSettings(),
            )
            app.state.pool, app.state.sessions = pool, sessions
            app.state.authenticator, app.state.figures = caller_authenticator, app.state.gateway.figures
            await stack.enter_async_context(sessions.noting())
            async with caller_authenticator.noting(), services.running(pool) if services else nullcontext():
                yield

    app = _Application(
        title="geomill",
        version=__version__,
        description=_DESCRIPTION,
        openapi_tags=_TAGS,
        lifespan=lifespan,
        docs_url=None,
        redoc_url=None,
        dependencies=[Depends(confirmed)],
        responses=problems.problem_responses(422),
        generate_unique_id_function=openapi.operation_id,
    )
    rules = _add_routes(app, services)
    problems.install(app)
    _add_middleware(app, access, rules, hosts, upload_limits.upload_max_bytes)
    return app


def _add_routes(app: FastAPI, services: Mountable | None) -> Mapping[str, Who]:
    """Add all routes and return the rules that say who may call them."""
    # Routes are tried in order, so the one where latency matters most is first.
    jobs_and_nodes = (submission, parked, job_lists, stream, streams, jobs, nodes)
    nouns = (platform, uploads, inspection, platforms, assets, styles, stage_jobs, workflows, bootstrap, health, docs)
    operated = (queue_routes, schedules, callbacks, instances, circuits, storage_usage, keys, operations)
    for noun in (*jobs_and_nodes, *nouns, *operated, session, sign_in, console, earlier_names):
        app.include_router(noun.router)
    rules = dict(RULES)
    if services:
        rules |= mounted(services.prefixes)
        for prefix in services.prefixes:
            app.mount(prefix, services.part(prefix))
    require_complete(app, rules)
    return rules


def _add_middleware(
    app: FastAPI, access: AccessSettings, rules: Mapping[str, Who], hosts: Collection[str], largest_upload: int
) -> None:
    """Add what every request passes. The last one added is the first that it passes."""
    app.add_middleware(Replanning)
    app.add_middleware(
        RequestGuard, rules=AccessRules(rules), submissions=Buckets(access.submit_rate, access.submit_burst)
    )
    app.add_middleware(
        BodyLimit, largest=access.body_limit, largest_of=lambda scope: largest_upload if carries_bytes(scope) else None
    )
    app.add_middleware(BrowserGuard, hosts=hosts, origins=access.cors_origins)
    if access.cors_origins:
        app.add_middleware(
            CORSMiddleware,
            allow_origins=access.cors_origins,
            allow_methods=["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"],
            allow_headers=["Authorization", "X-API-Key", "Content-Type", "Last-Event-ID", *REQUEST_HEADERS],
            expose_headers=["Location", "Retry-After", "WWW-Authenticate", *RESPONSE_HEADERS],
        )
    app.add_middleware(TusVersion)
    app.add_middleware(Measuring)


@asynccontextmanager
async def _outside(url: str | None) -> AsyncIterator[Pool | None]:
    """Open the external zone's database, so that a decision takes effect there at once. Connects on first use."""
    if url is None:
        yield None
        return
    async with open_pool(url, size=2, name="geomill gateway outside", idle=True) as pool:
        yield pool


def _desk(
    workflow_registry: WorkflowRegistry,
    job_queue: str,
    storage: Storage,
    defaults: PlatformSettings,
    outside: Pool | None,
) -> Desk:
    workflows = {DataType.RASTER: defaults.raster_workflow, DataType.VECTOR: defaults.vector_workflow}
    large = SizeRoute(defaults.large_raster_workflow, defaults.large_raster_mb * MEGABYTE)
    return Desk(
        workflow_registry,
        job_queue,
        WorkflowExporter(workflow_registry, job_queue, defaults.factory, defaults.exporter == "data_factory"),
        workflows,
        storage,
        outside,
        large if defaults.large_raster_mb else None,
    )
