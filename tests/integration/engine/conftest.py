from __future__ import annotations

from collections.abc import AsyncIterator, Callable

import pytest

from geomill.sdk.registry import load_handlers
from geomill.store.pool import Pool
from geomill.workflows.collection import WorkflowCatalogue
from tests.integration.engine.platform import Platform, catalogue_of

MakePlatform = Callable[..., Platform]


@pytest.fixture
async def make_platform(database: str, pool: Pool) -> AsyncIterator[MakePlatform]:
    """`make_platform(yaml, …)`: those workflows; without any, the ones that geomill carries."""
    made: list[Platform] = []

    def make(*texts: str) -> Platform:
        registry = load_handlers()
        if texts:
            catalogue = catalogue_of(registry, *texts)
        else:
            queues = ("functionapp-tasks", "container-tasks", "dag-worker-tasks")
            catalogue = WorkflowCatalogue.load([], handlers=registry.info, queues=queues)
        made.append(Platform(database, pool, catalogue, registry))
        return made[-1]

    yield make
    for platform in made:
        await platform.shutdown()
