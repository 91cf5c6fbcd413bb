"""Real orchestrators and workers on a real database, inside the test's event loop."""

from __future__ import annotations

import asyncio
import gc
import textwrap
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from geomill.domain.engine.job import Job
from geomill.domain.engine.message import TASK_QUEUES, JobQueueMessage
from geomill.domain.engine.workflow import Workflow
from geomill.domain.states import JOB_MACHINE
from geomill.engine.orchestrator import Orchestrator, OrchestratorOptions
from geomill.engine.submit import submit
from geomill.queues.servicebus import Bus, BusOptions
from geomill.queues.servicebus.bus import make_bus
from geomill.sdk.context import ExternalCatalogue
from geomill.sdk.registry import Registry, load_handlers
from geomill.storage import NO_STORAGE, Storage
from geomill.store import events, jobs, nodes
from geomill.store.pool import Pool
from geomill.worker.loop import Worker
from geomill.worker.options import WorkerOptions
from geomill.workflows.loader import load_text
from geomill.workflows.registry import WorkflowRegistry

PATIENCE = 20.0


@cache
def handlers_of(*modules: str) -> Registry:
    """The installed handlers and those of these modules. A registry is immutable, so each is made once."""
    return load_handlers(modules)


def library() -> WorkflowRegistry:
    """A new catalogue of the workflows that geomill carries."""
    return WorkflowRegistry(_library())


@cache
def _library() -> tuple[Workflow, ...]:
    return WorkflowRegistry.load([], handlers=handlers_of().info, queues=TASK_QUEUES).all()


def registry_of(registry: Registry, *texts: str) -> WorkflowRegistry:
    loaded = [
        load_text(textwrap.dedent(text), file="test.yaml", handlers=registry.info, queues=TASK_QUEUES) for text in texts
    ]
    return WorkflowRegistry(loaded)


@dataclass
class EnginePlatform:
    url: str
    pool: Pool
    workflow_registry: WorkflowRegistry
    registry: Registry = field(default_factory=handlers_of)
    storage: Storage = NO_STORAGE
    external: ExternalCatalogue | None = None
    bus_options: BusOptions | None = None
    buses: AsyncExitStack = field(default_factory=AsyncExitStack)
    stop: asyncio.Event = field(default_factory=asyncio.Event)
    running: dict[str, asyncio.Task[None]] = field(default_factory=dict)
    crashed: set[str] = field(default_factory=set)

    def orchestrator(self, **options: Any) -> Orchestrator:
        chosen = OrchestratorOptions(**options)
        bus = self._bus()
        return self._start(
            Orchestrator(self.url, self.pool, self.workflow_registry, chosen, storage=self.storage, bus=bus)
        )

    def worker(self, **options: Any) -> Worker:
        options = {"queues": TASK_QUEUES, "processes": 0, **options}  # no child before a task wants one
        return self._start(
            Worker(
                self.url,
                self.pool,
                self.registry,
                WorkerOptions(**options),
                storage=self.storage,
                external=self.external,
                bus=self._bus(),
            )
        )

    def _bus(self) -> Bus | None:
        """A client of Service Bus for one role, if the platform uses it."""
        if self.bus_options is None:
            return None
        bus = make_bus(self.bus_options)
        self.buses.push_async_callback(bus.close)
        return bus

    def _start(self, role: Any) -> Any:
        leave = role._leave

        async def leave_unless_crashed() -> None:
            if role.instance_id not in self.crashed:
                await leave()

        role._leave = leave_unless_crashed
        self.running[role.instance_id] = asyncio.create_task(role.run(self.stop))
        return role

    async def crash(self, role: Any) -> None:
        """End a role as `kill -9` would: nothing is handed over, the sessions end."""
        self.crashed.add(role.instance_id)
        task = self.running.pop(role.instance_id)
        task.cancel()
        for slot in list(getattr(role, "_slots", {}).values()):
            slot.task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await role._signals.stop()

    async def submit(self, workflow_id: str, inputs: dict[str, Any] | None = None, **fields: Any) -> str:
        message = JobQueueMessage(workflow_id=workflow_id, input_params=inputs or {}, **fields)
        async with self.pool.connection() as conn:
            await submit(conn, self.workflow_registry, "dag-jobs", message)
        return message.job_id

    async def ended(self, job_id: str) -> Job:
        return await self.until(job_id, lambda job: job is not None and job.status in JOB_MACHINE.terminal)

    async def catalogued(self) -> None:
        """Wait until the duty has written, or refused, every catalogue entry."""
        async with asyncio.timeout(PATIENCE):
            while await self.rows("SELECT FROM catalogue.pending WHERE attempts = 0"):  # noqa: ASYNC110  in the database
                await asyncio.sleep(0.01)

    async def until(self, job_id: str, true: Any) -> Job:
        async with asyncio.timeout(PATIENCE):
            while True:
                for task in self.running.values():
                    if task.done():
                        task.result()
                async with self.pool.connection() as conn:
                    job = await jobs.find(conn, job_id)
                if true(job):
                    return job
                await asyncio.sleep(0.01)

    async def run(self, workflow_id: str, inputs: dict[str, Any] | None = None, **fields: Any) -> Job:
        return await self.ended(await self.submit(workflow_id, inputs, **fields))

    async def statuses(self, job_id: str) -> dict[str, str]:
        async with self.pool.connection() as conn:
            rows = await nodes.of_job(conn, job_id)
        return {
            row.node_id if row.item_index < 0 else f"{row.node_id}[{row.item_index}]": row.status.value for row in rows
        }

    async def history(self, job_id: str) -> list[str]:
        async with self.pool.connection() as conn:
            return [event.event_type.value for event in await events.of_job(conn, job_id)]

    async def rows(self, query: str) -> list[dict[str, Any]]:
        async with self.pool.connection() as conn:
            return await (await conn.execute(query)).fetchall()

    async def rows_soon(self, query: str) -> list[dict[str, Any]]:
        """The rows of a query, as soon as there are some."""
        async with asyncio.timeout(PATIENCE):
            while not (rows := await self.rows(query)):  # noqa: ASYNC110  what is looked at is in the database
                await asyncio.sleep(0.01)
        return rows

    async def shutdown(self) -> None:
        self.stop.set()
        await asyncio.gather(*self.running.values())
        await self.buses.aclose()
        if self.bus_options:
            gc.collect()  # in this test, which knows the warnings of the library
