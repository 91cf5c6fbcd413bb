"""`geomill orchestrator` and `geomill worker`: one role, one process, until SIGTERM or Ctrl-C."""

from __future__ import annotations

import asyncio
import logging
import signal
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Annotated

import typer

from geomill.catalogue.external import ExternalDatabase
from geomill.cli import context
from geomill.domain.access.database_role import DatabaseRole
from geomill.engine.maintenance.attendance import AttendanceOptions
from geomill.engine.maintenance.callbacks import CallbackOptions
from geomill.engine.maintenance.fetching import FetchOptions
from geomill.engine.maintenance.leftovers import LeftoverOptions
from geomill.engine.maintenance.retention import RetentionOptions
from geomill.engine.maintenance.uploads import OldUploadOptions
from geomill.engine.orchestrator import Orchestrator, OrchestratorOptions
from geomill.errors import InputError, StorageUnavailable
from geomill.process import run_async
from geomill.storage import Storage
from geomill.store.pool import Pool, open_pool
from geomill.worker.children.surroundings import Wishes
from geomill.worker.loop import Worker
from geomill.worker.options import WorkerOptions, cpus

log = logging.getLogger(__name__)

POOL_SIZE = 4
WORKER_POOL_SIZE = 2
"""One session exchanges messages, one renews leases. A third session, outside the pool, listens."""
HANDLER_POOL_SIZE = 8
"""For handlers that use the database. The pool opens on first use."""
EXTERNAL_POOL_SIZE = 2


def orchestrator() -> None:
    """Run an orchestrator: it claims jobs and drives their graphs. Any number may run at once."""
    settings = context.settings()
    workflow_registry = context.workflow_registry(context.handlers())
    options = OrchestratorOptions(
        job_queue=settings.queue.job_queue_name,
        task_queues=settings.queue.task_queues,
        scan_seconds=settings.engine.orphan_scan_interval_sec,
        beat_seconds=settings.engine.beat_seconds,
        silent_seconds=settings.engine.orphan_threshold_sec,
        max_deliveries=settings.engine.max_deliveries,
        callbacks=CallbackOptions.of(settings.callback),
        retention=RetentionOptions.of(settings.retention),
        leftovers=LeftoverOptions.of(settings.retention),
        uploads=OldUploadOptions.of(settings.upload, settings.retention),
        fetching=FetchOptions(settings.upload),
        attendance=AttendanceOptions.of(settings.engine.dispatch_timeout_sec),
    )

    async def work(url: str, pool: Pool, stop: asyncio.Event) -> None:
        async with context.bus() as bus:
            storage = context.storage()
            await Orchestrator(url, pool, workflow_registry, options, storage=storage, bus=bus).run(stop)

    _run("orchestrator", work)


def worker(
    queues: Annotated[
        list[str] | None,
        typer.Option(
            "--queue",
            metavar="NAME[=WEIGHT]",
            help="Queue to lease tasks from, and its share of the free slots; may be repeated. Default: all queues.",
        ),
    ] = None,
    concurrency: Annotated[int, typer.Option(min=1, max=10_000, help="Number of tasks to run at once.")] = 16,
) -> None:
    """Run a worker: it leases tasks and runs handlers. Any number may run at once."""
    settings = context.settings()
    registry, storage = context.handlers(), context.storage()
    weights = dict(map(weighted, queues or settings.queue.task_queues))
    options = WorkerOptions(
        queues=tuple(weights),
        weights=weights,
        concurrency=concurrency,
        processes=settings.worker.task_processes or cpus(),
        spare=settings.worker.task_spare,
        memory_mb=settings.worker.task_memory_mb,
        tasks_per_process=settings.worker.task_recycle,
        wishes=Wishes.of(settings.worker),
        drain_seconds=settings.worker.drain_seconds,
        handler_wait_seconds=settings.worker.handler_wait_seconds,
        beat_seconds=settings.engine.beat_seconds,
        silent_seconds=settings.engine.orphan_threshold_sec,
    )

    async def work(url: str, pool: Pool, stop: asyncio.Event) -> None:
        async with (
            open_pool(url, size=HANDLER_POOL_SIZE, name="geomill handlers", idle=True) as handler_pool,
            _external(handler_pool) as external,
            context.bus() as bus,
        ):
            await _prepare(storage)
            await Worker(
                url,
                pool,
                registry,
                options,
                handler_pool=handler_pool,
                storage=storage,
                external=external,
                loader_url=context.loader_database_url(),
                bus=bus,
            ).run(stop)

    _run("worker", work, WORKER_POOL_SIZE)


@asynccontextmanager
async def _external(inside: Pool) -> AsyncIterator[ExternalDatabase | None]:
    """Yield the external zone's database, which is opened on the first export, or None if there is none."""
    url = context.external_database_url(DatabaseRole.ENGINE)
    if url is None:
        log.warning("there is no external database: exported assets appear in no external catalogue")
        yield None
        return
    async with open_pool(url, size=EXTERNAL_POOL_SIZE, name="geomill export", idle=True) as outside:
        yield ExternalDatabase(inside, outside)


async def _prepare(storage: Storage) -> None:
    """Prepare the zones. An unavailable zone is only logged: tasks that need it fail, and the others can run."""
    try:
        await storage.prepare()
    except StorageUnavailable as error:
        log.warning("%s", error)


def weighted(text: str) -> tuple[str, int]:
    """Parse a queue and its weight: `name` or `name=3`."""
    name, equals, weight = text.partition("=")
    if not name or (equals and not (weight.isdecimal() and int(weight) > 0)):
        raise InputError(
            f"--queue {text!r} is not NAME or NAME=WEIGHT",
            remedy="write --queue NAME or --queue NAME=WEIGHT, where WEIGHT is a whole number above 0",
        )
    return name, int(weight or 1)


def _run(name: str, work: Callable[[str, Pool, asyncio.Event], Awaitable[None]], size: int = POOL_SIZE) -> None:
    async def main(url: str) -> None:
        stop = asyncio.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(number, stop.set)
        async with open_pool(url, size=size, name=f"geomill {name}", hot=True) as pool:
            await work(url, pool, stop)

    context.role_logging()
    with context.ready_database(DatabaseRole.ENGINE, patience=context.ROLE_PATIENCE_SECONDS) as url:
        run_async(main(url))
