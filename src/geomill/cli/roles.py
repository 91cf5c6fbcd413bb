"""`geomill orchestrator` and `geomill worker`: one role, one process, until SIGTERM or Ctrl-C."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Awaitable, Callable
from typing import Annotated

import typer

from geomill.cli import context
from geomill.engine.orchestrator import Orchestrator, OrchestratorOptions
from geomill.store.pool import Pool, open_pool
from geomill.worker.loop import Worker, WorkerOptions

POOL_SIZE = 4


def orchestrator() -> None:
    """Run an orchestrator: it claims jobs and drives their graphs. Any number may run at once."""
    settings = context.settings()
    catalogue = context.catalogue(context.handlers())
    options = OrchestratorOptions(job_queue=settings.queue.job_queue_name)

    async def work(url: str, pool: Pool, stop: asyncio.Event) -> None:
        await Orchestrator(url, pool, catalogue, options).run(stop)

    _run("orchestrator", work)


def worker(
    queues: Annotated[
        list[str] | None, typer.Option("--queue", help="Queue to take from; may be repeated. All when absent.")
    ] = None,
    concurrency: Annotated[int, typer.Option(min=1, max=10_000, help="Tasks at once.")] = 16,
) -> None:
    """Run a worker: it leases tasks and runs handlers. Any number may run at once."""
    settings = context.settings()
    registry = context.handlers()
    options = WorkerOptions(queues=tuple(queues or settings.queue.task_queues), concurrency=concurrency)

    async def work(url: str, pool: Pool, stop: asyncio.Event) -> None:
        await Worker(url, pool, registry, options).run(stop)

    _run("worker", work)


def _run(name: str, work: Callable[[str, Pool, asyncio.Event], Awaitable[None]]) -> None:
    async def main(url: str) -> None:
        stop = asyncio.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(number, stop.set)
        async with open_pool(url, size=POOL_SIZE, name=f"geomill {name}") as pool:
            await work(url, pool, stop)

    with context.ready_database() as url:
        asyncio.run(main(url))
