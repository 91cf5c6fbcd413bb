from __future__ import annotations

from collections.abc import AsyncIterator, Callable

import pytest

from geomill.store.pool import Pool
from tests.integration.engine.platform import Platform, catalogue_of, handlers_of, library

MakePlatform = Callable[..., Platform]


@pytest.fixture
async def make_platform(database: str, pool: Pool) -> AsyncIterator[MakePlatform]:
    """`make_platform(yaml, …)`: those workflows; without any, the ones that geomill carries."""
    made: list[Platform] = []

    def make(*texts: str) -> Platform:
        catalogue = catalogue_of(handlers_of(), *texts) if texts else library()
        made.append(Platform(database, pool, catalogue, handlers_of()))
        return made[-1]

    yield make
    for platform in made:
        await platform.shutdown()
