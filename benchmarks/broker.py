"""Service Bus as the broker beside the database alone, in turns, against the peer of the tests.

The peer is one Python process on the same cores, so the figures say what permits cost geomill, and not how fast Azure
is. A namespace is further away: each wake-up then costs one way to it and back more.
"""

from __future__ import annotations

import asyncio
import os

from benchmarks.engine import Turns
from benchmarks.figures import Figure
from benchmarks.roles import BenchmarkClient, connected, roles
from benchmarks.server import database
from tests.servicebus.running import running_peer

ITEMS = 2_000
REPEATS = int(os.environ.get("BENCH_BROKER_TURNS", "5"))
WORK = {
    "chain": ("chain of 50, per step", "ms"),
    "fan": (f"fan-out of {ITEMS:,}", "tasks/s"),
    "workflows": ("100 workflows of 5 steps", "jobs/s"),
}


def run() -> list[Figure]:
    with running_peer() as peer, database() as base_url, database() as url:
        connection_string = peer.options.connection_string or ""
        settings = {"GEOMILL_BROKER": "servicebus", "SERVICE_BUS_CONNECTION_STRING": connection_string}
        with roles(base_url) as base_roles, roles(url, settings=settings) as bus_roles:

            async def main() -> list[Figure]:
                async with connected(base_roles) as base, connected(bus_roles) as bus:
                    return await _compare(base, bus)

            return asyncio.run(main())


async def _compare(base: BenchmarkClient, bus: BenchmarkClient) -> list[Figure]:
    turns = Turns()
    for warm in (base, bus):
        await _work(warm)
    for _ in range(REPEATS):
        turns.note(**{f"base {name}": figure for name, figure in (await _work(base)).items()})
        turns.note(**await _work(bus))
    return [_figure(turns, name) for name in WORK]


async def _work(client: BenchmarkClient) -> dict[str, float]:
    return {
        "chain": 1000 * await client.run("chain50") / 50,
        "fan": ITEMS / await client.run("fan", {"items": list(range(ITEMS))}),
        "workflows": 100 / await client.run("chain5", count=100),
    }


def _figure(turns: Turns, name: str) -> Figure:
    what, unit = WORK[name]
    return Figure(f"Service Bus: {what}", turns.of(name), unit, f"the database alone: {turns.of(f'base {name}'):,.1f}")
