from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from geomill.domain.engine.message import TASK_QUEUES
from geomill.domain.engine.stage_job import StageJobOrder
from geomill.sdk.testing import folder_storage
from geomill.stages.registry import StageJobs, load_stage_jobs
from geomill.stages.status import StageJobView, view
from geomill.stages.submission import Submitted, submit
from geomill.store.pool import Pool
from geomill.workflows.registry import WorkflowRegistry
from tests.integration.engine.platform import EnginePlatform, handlers_of

MODULES = ["tests.integration.stages.controllers"]
QUEUE = "dag-jobs"


@dataclass
class StagePlatform(EnginePlatform):
    job_types: StageJobs = field(default_factory=StageJobs)

    async def order(self, job_type: str, parameters: Any = None, **more: Any) -> Submitted:
        async with self.pool.connection() as conn:
            order = StageJobOrder(job_type=job_type, parameters=parameters or {}, **more)
            return await submit(conn, self.job_types, self.workflow_registry, QUEUE, order)

    async def view(self, job_id: str) -> StageJobView:
        async with self.pool.connection() as conn:
            return await view(conn, QUEUE, job_id, None)

    async def complete(self, job_type: str, parameters: Any = None) -> StageJobView:
        """Submit a job and wait for its end. Return its view."""
        order = await self.order(job_type, parameters)
        await self.ended(order.run.run_id)
        return await self.view(order.run.job_id)


@pytest.fixture
async def make_stages(database: str, pool: Pool, tmp_path: Path) -> AsyncIterator[Callable[[], StagePlatform]]:
    """`make_stages()`: the stage jobs of the tests and of the library. The roles are the test's affair."""
    platforms: list[StagePlatform] = []

    def make() -> StagePlatform:
        registry, job_types = handlers_of(*MODULES), load_stage_jobs(MODULES)
        workflow_registry = job_types.join(WorkflowRegistry([]), handlers=registry.info, queues=TASK_QUEUES)
        platforms.append(
            StagePlatform(database, pool, workflow_registry, registry, folder_storage(tmp_path), job_types=job_types)
        )
        return platforms[-1]

    yield make
    for platform in platforms:
        await platform.shutdown()


@pytest.fixture
async def platform(make_stages: Callable[[], StagePlatform]) -> StagePlatform:
    """A platform with one orchestrator and one worker."""
    new_platform = make_stages()
    new_platform.orchestrator()
    new_platform.worker()
    return new_platform
