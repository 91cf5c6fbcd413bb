from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from geomill.domain.engine.message import TASK_QUEUES
from geomill.sdk.registry import load_handlers
from geomill.sdk.testing import folder_storage
from geomill.stages.registry import StageJobs, load_stage_jobs
from geomill.stages.status import StageJobView, view
from geomill.stages.submission import StageJobOrder, Submitted, submit
from geomill.store.pool import Pool
from geomill.workflows.collection import WorkflowCatalogue
from tests.integration.engine.platform import Platform

MODULES = ["tests.integration.stages.controllers"]
QUEUE = "dag-jobs"


@dataclass
class StagePlatform(Platform):
    job_types: StageJobs = field(default_factory=StageJobs)

    async def order(self, job_type: str, parameters: Any = None, **more: Any) -> Submitted:
        async with self.pool.connection() as conn:
            wanted = StageJobOrder(job_type, parameters or {}, **more)
            return await submit(conn, self.job_types, self.catalogue, QUEUE, wanted)

    async def view(self, job_id: str) -> StageJobView:
        async with self.pool.connection() as conn:
            return await view(conn, QUEUE, job_id, None)

    async def complete(self, job_type: str, parameters: Any = None) -> StageJobView:
        """Submitted, and as it stands at its end."""
        found = await self.order(job_type, parameters)
        await self.ended(found.run.run_id)
        return await self.view(found.run.job_id)


@pytest.fixture
async def make_stages(database: str, pool: Pool, tmp_path: Path) -> AsyncIterator[Callable[[], StagePlatform]]:
    """`make_stages()`: the stage jobs of the tests and of the library. The roles are the test's affair."""
    made: list[StagePlatform] = []

    def make() -> StagePlatform:
        registry, job_types = load_handlers(MODULES), load_stage_jobs(MODULES)
        catalogue = job_types.join(WorkflowCatalogue([]), handlers=registry.info, queues=TASK_QUEUES)
        made.append(StagePlatform(database, pool, catalogue, registry, folder_storage(tmp_path), job_types=job_types))
        return made[-1]

    yield make
    for platform in made:
        await platform.shutdown()


@pytest.fixture
async def platform(make_stages: Callable[[], StagePlatform]) -> StagePlatform:
    """With one orchestrator and one worker."""
    found = make_stages()
    found.orchestrator()
    found.worker()
    return found
