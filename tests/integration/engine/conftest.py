from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator

import pytest

from geomill.queues.servicebus import BusOptions
from geomill.store.pool import Pool
from tests.integration.engine.platform import EnginePlatform, handlers_of, library, registry_of
from tests.servicebus.running import LEFT_OPEN, REAL, collect_quickly, running_peer

MakePlatform = Callable[..., EnginePlatform]


@pytest.fixture(scope="session")
def bus_options() -> Iterator[Callable[[], BusOptions]]:
    """How to reach Service Bus: a real namespace, or a peer of the test process that has forgotten earlier tests."""
    if REAL:
        yield lambda: BusOptions(connection_string=REAL)
        return
    collect_quickly()
    with running_peer() as peer:

        def fresh() -> BusOptions:
            peer.tell("clear")
            return peer.options

        yield fresh


@pytest.fixture(
    params=["postgres", pytest.param("servicebus", marks=[pytest.mark.slow, pytest.mark.filterwarnings(LEFT_OPEN)])]
)
def broker(request: pytest.FixtureRequest) -> BusOptions | None:
    """The tests of the engine run with both brokers."""
    if request.param == "postgres":
        return None
    options: BusOptions = request.getfixturevalue("bus_options")()
    return options


@pytest.fixture
async def make_platform(database: str, pool: Pool, broker: BusOptions | None) -> AsyncIterator[MakePlatform]:
    """`make_platform(yaml, …)`: those workflows; without any, the ones that geomill carries."""
    platforms: list[EnginePlatform] = []

    def make(*texts: str) -> EnginePlatform:
        workflow_registry = registry_of(handlers_of(), *texts) if texts else library()
        platforms.append(EnginePlatform(database, pool, workflow_registry, handlers_of(), bus_options=broker))
        return platforms[-1]

    yield make
    for platform in platforms:
        await platform.shutdown()
