from __future__ import annotations

from collections.abc import AsyncIterator, Callable

import pytest

from geomill.store.pool import Pool
from tests.integration.engine.platform import EnginePlatform, handlers_of, library, registry_of

MakePlatform = Callable[..., EnginePlatform]


@pytest.fixture
async def make_platform(database: str, pool: Pool) -> AsyncIterator[MakePlatform]:
    """`make_platform(yaml, …)`: those workflows; without any, the ones that geomill carries."""
    platforms: list[EnginePlatform] = []

    def make(*texts: str) -> EnginePlatform:
        workflow_registry = registry_of(handlers_of(), *texts) if texts else library()
        platforms.append(EnginePlatform(database, pool, workflow_registry, handlers_of()))
        return platforms[-1]

    yield make
    for platform in platforms:
        await platform.shutdown()
