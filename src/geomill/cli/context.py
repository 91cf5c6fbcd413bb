"""The context of a command: settings, the database, workflows, handlers and storage."""

from __future__ import annotations

import asyncio
import logging
import os
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from contextvars import ContextVar
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from geomill.cli import private
from geomill.domain.access.database_role import DatabaseRole
from geomill.embedded import Cluster
from geomill.errors import ConflictError
from geomill.settings import BrokerSettings, Settings
from geomill.telemetry.logging import configure

if TYPE_CHECKING:  # imported at run time where they are used: most commands need few of them
    from geomill.queues.servicebus import Bus, BusOptions
    from geomill.sdk.registry import Registry
    from geomill.stages.registry import StageJobs
    from geomill.storage import Storage
    from geomill.store.migrate import MigrationReport
    from geomill.store.pool import Connection
    from geomill.workflows.registry import WorkflowRegistry

log = logging.getLogger(__name__)

Result = TypeVar("Result")

ROLE_PATIENCE_SECONDS = 120.0
"""How long an orchestrator, worker or server waits for the database at its start, instead of exiting and restarting."""

data_option: ContextVar[Path | None] = ContextVar("data_option", default=None)
workflows_option: ContextVar[tuple[Path, ...]] = ContextVar("workflows_option", default=())
url_option: ContextVar[str | None] = ContextVar("url_option", default=None)


def settings() -> Settings:
    """Return the settings. Options of the command line override the environment."""
    return _settings(frozenset(os.environ.items()), data_option.get(), workflows_option.get(), url_option.get())


@lru_cache(maxsize=1)
def _settings(
    environ: frozenset[tuple[str, str]], data: Path | None, workflows: tuple[Path, ...], url: str | None
) -> Settings:
    """Cache the settings: reading them takes 10 ms, and a command needs them more than once."""
    return Settings(dict(environ), data=data, workflows=workflows, url=url)


@contextmanager
def database_url() -> Iterator[str]:
    """Yield the URL of the configured server, or start the private server and yield its URL for the owner role.

    A private server that was started here is stopped at the end, unless another process uses it.
    """
    options = settings().database
    if options.database_url:
        yield options.database_url
        return
    cluster = Cluster(options.data)
    started, prepared = cluster.start(), False
    try:
        private.prepare(cluster)
        prepared = True
        url = cluster.url(role=DatabaseRole.OWNER)
        with _presence(url):
            yield url
    finally:
        if started and (not prepared or asyncio.run(is_only_connection(cluster.url(role=DatabaseRole.OWNER)))):
            cluster.stop()


@contextmanager
def _presence(url: str) -> Iterator[None]:
    """Hold a session while the block runs. Another command that ends then sees that the private server is in use, even
    between two sessions of this one."""
    import psycopg

    with psycopg.connect(url, autocommit=True, application_name="geomill presence"):
        yield


def external_database_url(role: DatabaseRole = DatabaseRole.OWNER) -> str | None:
    """Return the URL of the external zone's database: as set, or the second database of the private server.

    The private server must already run. Returns None if neither exists.
    """
    options = settings().database
    if options.external_database_url or options.database_url:
        return options.external_database_url
    return Cluster(options.data).url(private.EXTERNAL_DATABASE, role=role)


def loader_database_url() -> str | None:
    """Return the URL for task processes, or None if they use the worker's role."""
    options = settings().database
    return options.loader_database_url or _private_url(DatabaseRole.LOADER)


def reader_database_url() -> str | None:
    """Return the URL for the serving part of a gateway, or None if it uses the gateway's role."""
    options = settings().database
    return options.reader_database_url or _private_url(DatabaseRole.READER)


def _private_url(role: DatabaseRole) -> str | None:
    options = settings().database
    return None if options.database_url else Cluster(options.data).url(role=role)


def role_logging() -> None:
    """Configure logging from the settings, for commands that keep running."""
    options = settings().log
    configure(options.log_format, options.log_level)


@contextmanager
def ready_database(role: DatabaseRole = DatabaseRole.OWNER, *, patience: float = 0.0) -> Iterator[str]:
    """Yield the URL of a database that has geomill's schema.

    A private database is migrated; a configured server is only checked. `role` is the caller's role on a private
    server. An unreachable database is tried again for `patience` seconds.
    """
    own = settings().database.database_url is None
    with database_url() as url:
        asyncio.run(_make_ready_in_time(url, private=own, patience=patience))
        yield _private_url(role) or url


async def _make_ready_in_time(url: str, *, private: bool, patience: float) -> None:
    from geomill.store.passing import passes
    from geomill.store.session import pauses

    deadline = time.monotonic() + patience
    for pause in pauses():
        try:
            await make_ready(url, private=private)
        except Exception as error:
            if not passes(error) or time.monotonic() + pause > deadline:
                raise
            log.warning("the database is not ready, the next attempt is in %s s: %s", pause, error)
        else:
            return
        await asyncio.sleep(pause)


def with_database(work: Callable[[Connection], Awaitable[Result]]) -> Result:
    """Run `work` on a connection to a ready database and return its result."""
    from geomill.store.pool import open_pool

    async def main(url: str) -> Result:
        async with open_pool(url, size=1) as pool, pool.connection() as conn:
            return await work(conn)

    with ready_database() as url:
        return asyncio.run(main(url))


async def make_ready(url: str, *, private: bool) -> None:
    """Migrate a private database, or check that a server has the schema.

    Skips both if the last migration was made by this release and nothing is missing.
    """
    from geomill.store import fingerprint, schema_objects
    from geomill.store.connection import connect
    from geomill.store.fitness import check_fitness
    from geomill.store.pooler import require_own_sessions

    async with await connect(url) as conn:
        await check_fitness(conn)
        if not private:
            await require_own_sessions(conn, url)
        if await fingerprint.matches(conn) and not await schema_objects.losses(conn):
            return
        from geomill.store.migrate import migrate, plan
        from geomill.store.presence import lacking

        if private:
            migration = await plan(conn)
            if migration.permitted or not migration.changes:
                await migrate(conn)
        elif steps := await lacking(conn):  # additions of a newer release do no harm
            more = f" and {len(steps) - 1} more" if len(steps) > 1 else ""
            raise ConflictError(
                f"the database does not have geomill's schema: {steps[0]}{more}",
                remedy="run 'geomill db status' to see all of it, and 'geomill db migrate'",
            )


def make_external_ready() -> MigrationReport | None:
    """Migrate the external zone's database. Returns None if there is none."""
    from geomill.catalogue.databases import migrate_external

    url = external_database_url()
    return asyncio.run(migrate_external(url)) if url else None


async def is_only_connection(url: str) -> bool:
    """Return whether this process has the only connection to the private server."""
    from geomill.store.connection import connect

    async with await connect(url) as conn:
        from geomill.sql import queries

        row = await (await conn.execute(queries("roles").others_connected)).fetchone()
        return row is not None and row[0] == 0


@asynccontextmanager
async def bus() -> AsyncIterator[Bus | None]:
    """Yield a client of Service Bus, or None if the database alone is the broker."""
    options = settings().broker
    if options.broker == "postgres":
        yield None
        return
    from geomill.queues.servicebus import open_bus

    async with open_bus(bus_options(options)) as client:
        yield client


def bus_options(options: BrokerSettings) -> BusOptions:
    from geomill.queues.servicebus import BusOptions

    secret = options.service_bus_connection_string
    return BusOptions(
        connection_string=secret.get_secret_value() if secret else None,
        namespace=options.service_bus_namespace,
        client_id=options.service_bus_client_id,
        certificates=str(options.service_bus_certificates) if options.service_bus_certificates else None,
    )


def storage() -> Storage:
    from geomill.storage import Storage, StorageRecipe

    options = settings()
    return Storage(StorageRecipe.of(options.storage, options.database.data))


def handlers() -> Registry:
    from geomill.sdk.registry import load_handlers

    return load_handlers(settings().workflow.handlers)


def stage_jobs() -> StageJobs:
    from geomill.stages.registry import load_stage_jobs

    return load_stage_jobs(settings().workflow.handlers)


def workflow_registry(registry: Registry, job_types: StageJobs | None = None) -> WorkflowRegistry:
    """Return the workflows from files and those compiled from stage jobs."""
    from geomill.workflows.registry import WorkflowRegistry

    options = settings()
    handlers, queues = registry.info, options.queue.task_queues
    files = WorkflowRegistry.load(options.workflow.workflows, handlers=handlers, queues=queues)
    return (job_types or stage_jobs()).join(files, handlers=handlers, queues=queues)
