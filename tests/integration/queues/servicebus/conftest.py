from __future__ import annotations

import gc
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack

import pytest

from geomill.queues.servicebus import Bus, BusOptions
from geomill.queues.servicebus.bus import make_bus
from geomill.store.pool import Pool
from tests.integration.engine.platform import EnginePlatform, handlers_of, library, registry_of
from tests.servicebus.namespace import RealNamespace
from tests.servicebus.running import REAL, RunningPeer, collect_quickly, running_peer

Peer = RunningPeer | RealNamespace
MakePlatform = Callable[..., EnginePlatform]


@pytest.fixture(scope="session")
def session_peer() -> Iterator[Peer]:
    collect_quickly()
    if REAL:
        yield RealNamespace(REAL)
        return
    with running_peer("--lock-seconds", "30") as peer:
        yield peer


@pytest.fixture
def peer(session_peer: Peer) -> Peer:
    session_peer.tell("clear")
    return session_peer


@pytest.fixture
def steered(peer: Peer) -> None:
    """For tests that count locks or links, or that need the peer's own rules."""
    if isinstance(peer, RealNamespace):
        pytest.skip("only the peer shows this")


@pytest.fixture
async def make_client() -> AsyncIterator[Callable[[BusOptions], Bus]]:
    async with AsyncExitStack() as stack:

        def make(options: BusOptions) -> Bus:
            bus = make_bus(options)
            stack.push_async_callback(bus.close)
            return bus

        yield make
    gc.collect()  # in this test, which knows the warnings of the library


@pytest.fixture
def bus(make_client: Callable[[BusOptions], Bus], peer: Peer) -> Bus:
    return make_client(peer.options)


@pytest.fixture
async def make_platform(database: str, pool: Pool, peer: Peer) -> AsyncIterator[MakePlatform]:
    platforms: list[EnginePlatform] = []

    def make(*texts: str, handlers: tuple[str, ...] = ()) -> EnginePlatform:
        registry = handlers_of(*handlers)
        workflow_registry = registry_of(registry, *texts) if texts else library()
        platforms.append(EnginePlatform(database, pool, workflow_registry, registry, bus_options=peer.options))
        return platforms[-1]

    yield make
    for platform in platforms:
        await platform.shutdown()
