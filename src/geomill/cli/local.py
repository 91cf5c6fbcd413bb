"""An orchestrator and a worker inside this process, for a machine on which none are running."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from geomill.domain.engine.instance import InstanceRole
from geomill.store import instances
from geomill.store.pool import Pool

if TYPE_CHECKING:
    from geomill.engine.orchestrator import Orchestrator
    from geomill.sdk.registry import Registry
    from geomill.settings import QueueSettings
    from geomill.storage import Storage
    from geomill.worker.loop import Worker
    from geomill.workflows.collection import WorkflowCatalogue


async def missing_roles(pool: Pool) -> set[InstanceRole]:
    async with pool.connection() as conn:
        absent = {process.instance_id for process in await instances.absent(conn)}
        alive = {process.role for process in await instances.everyone(conn) if process.instance_id not in absent}
    return set(InstanceRole) - alive


@asynccontextmanager
async def local_roles(
    url: str,
    pool: Pool,
    queues: QueueSettings,
    catalogue: WorkflowCatalogue,
    registry: Registry,
    storage: Storage,
    loader_url: str | None = None,
) -> AsyncIterator[None]:
    """Run whichever role is missing while the block runs. `loader_url` is for task processes."""
    from geomill.cli import context
    from geomill.engine.orchestrator import Orchestrator, OrchestratorOptions
    from geomill.worker.children.surroundings import Wishes
    from geomill.worker.loop import Worker
    from geomill.worker.options import WorkerOptions

    missing = await missing_roles(pool)
    stop = asyncio.Event()
    roles: list[Orchestrator | Worker] = []
    if InstanceRole.ORCHESTRATOR in missing:
        conducting = OrchestratorOptions(job_queue=queues.job_queue_name)
        roles.append(Orchestrator(url, pool, catalogue, conducting, storage=storage))
    if InstanceRole.WORKER in missing:
        options = WorkerOptions(queues=queues.task_queues, drain_seconds=2, wishes=Wishes.of(context.settings().worker))
        roles.append(Worker(url, pool, registry, options, storage=storage, loader_url=loader_url))
    tasks = [asyncio.create_task(role.run(stop)) for role in roles]
    try:
        yield
    finally:
        stop.set()
        await asyncio.gather(*tasks)
