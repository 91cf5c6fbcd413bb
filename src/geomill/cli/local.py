"""Runs an orchestrator and a worker inside this process if none run elsewhere."""

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
    from geomill.workflows.registry import WorkflowRegistry


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
    workflow_registry: WorkflowRegistry,
    registry: Registry,
    storage: Storage,
    loader_url: str | None = None,
) -> AsyncIterator[None]:
    """Run the missing roles while the block runs. `loader_url` is the database URL for task processes."""
    from geomill.cli import context
    from geomill.engine.orchestrator import Orchestrator, OrchestratorOptions
    from geomill.worker.children.surroundings import Wishes
    from geomill.worker.loop import Worker
    from geomill.worker.options import WorkerOptions

    missing = await missing_roles(pool)
    stop = asyncio.Event()
    roles: list[Orchestrator | Worker] = []
    if InstanceRole.ORCHESTRATOR in missing:
        orchestrator_options = OrchestratorOptions(job_queue=queues.job_queue_name)
        roles.append(Orchestrator(url, pool, workflow_registry, orchestrator_options, storage=storage))
    if InstanceRole.WORKER in missing:
        worker_options = WorkerOptions(
            queues=queues.task_queues, drain_seconds=2, wishes=Wishes.of(context.settings().worker)
        )
        roles.append(Worker(url, pool, registry, worker_options, storage=storage, loader_url=loader_url))
    tasks = [asyncio.create_task(role.run(stop)) for role in roles]
    try:
        yield
    finally:
        stop.set()
        await asyncio.gather(*tasks)
