"""What commands need from outside: settings, the database, workflows and handlers."""

from __future__ import annotations

import asyncio
import logging
import os
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from geomill.cli import private
from geomill.domain.access.database_role import DatabaseRole
from geomill.embedded import Cluster
from geomill.errors import ConflictError
from geomill.settings import Settings
from geomill.telemetry.logging import configure

if TYPE_CHECKING:  # at run time where they are used: most commands need few of them
    from geomill.sdk.registry import Registry
    from geomill.stages.registry import StageJobs
    from geomill.storage import Storage
    from geomill.store.migrate import MigrationReport
    from geomill.store.pool import Connection
    from geomill.workflows.collection import WorkflowCatalogue

log = logging.getLogger(__name__)

Result = TypeVar("Result")

ROLE_PATIENCE_SECONDS = 120.0
"""A role that starts while the database is away waits for it, rather than be started again and again."""

data_option: ContextVar[Path | None] = ContextVar("data_option", default=None)
workflows_option: ContextVar[tuple[Path, ...]] = ContextVar("workflows_option", default=())
url_option: ContextVar[str | None] = ContextVar("url_option", default=None)


def settings() -> Settings:
    """The environment, with the options of the command line in front."""
    return _settings(frozenset(os.environ.items()), data_option.get(), workflows_option.get(), url_option.get())


@lru_cache(maxsize=1)
def _settings(
    environ: frozenset[tuple[str, str]], data: Path | None, workflows: tuple[Path, ...], url: str | None
) -> Settings:
    """To read them takes a hundredth of a second, and a command asks for them more than once."""
    return Settings(dict(environ), data=data, workflows=workflows, url=url)


@contextmanager
def database_url() -> Iterator[str]:
    """The URL of the server to use, as the owner of a private one, which is started for as long as somebody uses it."""
    found = settings().database
    if found.database_url:
        yield found.database_url
        return
    cluster = Cluster(found.data)
    started, prepared = cluster.start(), False
    try:
        private.prepare(cluster)
        prepared = True
        yield cluster.url(role=DatabaseRole.OWNER)
    finally:
        if started and (not prepared or asyncio.run(alone(cluster.url(role=DatabaseRole.OWNER)))):
            cluster.stop()


def external_database_url(role: DatabaseRole = DatabaseRole.OWNER) -> str | None:
    """Of the external zone: as set, or the second database of the private server, which runs already."""
    found = settings().database
    if found.external_database_url or found.database_url:
        return found.external_database_url
    return Cluster(found.data).url(private.EXTERNAL_DATABASE, role=role)


def loader_database_url() -> str | None:
    """For task processes. None where they are who their worker is."""
    found = settings().database
    return found.loader_database_url or _private_url(DatabaseRole.LOADER)


def reader_database_url() -> str | None:
    """For what a gateway serves. None where it is served as the gateway."""
    found = settings().database
    return found.reader_database_url or _private_url(DatabaseRole.READER)


def _private_url(role: DatabaseRole) -> str | None:
    found = settings().database
    return None if found.database_url else Cluster(found.data).url(role=role)


def role_logging() -> None:
    """Log as the settings say: for commands that run on."""
    wanted = settings().log
    configure(wanted.log_format, wanted.log_level)


@contextmanager
def ready_database(role: DatabaseRole = DatabaseRole.OWNER, *, patience: float = 0.0) -> Iterator[str]:
    """As `database_url`, with our schema in it: a private database is migrated, a server of others is not. `role` is
    who the caller becomes on a private one. A database that is away is waited for, for `patience` seconds."""
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
    """What the work gives, done on a connection to a ready database."""
    from geomill.store.pool import open_pool

    async def main(url: str) -> Result:
        async with open_pool(url, size=1) as pool, pool.connection() as conn:
            return await work(conn)

    with ready_database() as url:
        return asyncio.run(main(url))


async def make_ready(url: str, *, private: bool) -> None:
    """A plan is made only where the last migration was not that of this release."""
    from geomill.store import fingerprint, schema_objects
    from geomill.store.connection import connect
    from geomill.store.fitness import check_fitness

    async with await connect(url) as conn:
        await check_fitness(conn)
        if await fingerprint.matches(conn) and not await schema_objects.losses(conn):
            return
        from geomill.store.migrate import migrate, plan
        from geomill.store.presence import lacking

        if private:
            found = await plan(conn)
            if found.permitted or not found.changes:
                await migrate(conn)
        elif steps := await lacking(conn):  # a newer release may have added more: that does not disturb this one
            more = f" and {len(steps) - 1} more" if len(steps) > 1 else ""
            raise ConflictError(
                f"the database does not have geomill's schema: {steps[0]}{more}",
                remedy="run 'geomill db status' to see all of it, and 'geomill db migrate'",
            )


def make_external_ready() -> MigrationReport | None:
    """Migrates the external zone's database. None where there is none."""
    from geomill.catalogue.databases import migrate_external

    url = external_database_url()
    return asyncio.run(migrate_external(url)) if url else None


async def alone(url: str) -> bool:
    """Whether nobody else is connected to the private server."""
    from geomill.store.connection import connect

    async with await connect(url) as conn:
        from geomill.sql import queries

        row = await (await conn.execute(queries("roles").others_connected)).fetchone()
        return row is not None and row[0] == 0


def storage() -> Storage:
    from geomill.storage import Storage, StorageRecipe

    found = settings()
    return Storage(StorageRecipe.of(found.storage, found.database.data))


def handlers() -> Registry:
    from geomill.sdk.registry import load_handlers

    return load_handlers(settings().workflow.handlers)


def stage_jobs() -> StageJobs:
    from geomill.stages.registry import load_stage_jobs

    return load_stage_jobs(settings().workflow.handlers)


def catalogue(registry: Registry, job_types: StageJobs | None = None) -> WorkflowCatalogue:
    """The workflows of files, and those that stage jobs compile to."""
    from geomill.workflows.collection import WorkflowCatalogue

    found = settings()
    handlers, queues = registry.info, found.queue.task_queues
    files = WorkflowCatalogue.load(found.workflow.workflows, handlers=handlers, queues=queues)
    return (job_types or stage_jobs()).join(files, handlers=handlers, queues=queues)
