"""More roles on the same cores, beside one orchestrator and two workers that take turns with them.

On the same cores more roles can only cost. They must not cost more than a tenth. `BENCH_SCALING` names the shapes as
orchestrators+workers.
"""

from __future__ import annotations

import asyncio
import os
import time

from benchmarks.engine import Turns, commits
from benchmarks.figures import Figure
from benchmarks.roles import BenchmarkClient, Roles, connected, roles
from benchmarks.server import database

BASE = (1, 2)
SHAPES = os.environ.get("BENCH_SCALING", "1+1 1+4 1+8 1+16 2+2 4+2 8+2 2+8 4+16").split()
REPEATS = int(os.environ.get("BENCH_SCALING_TURNS", "5"))
ITEMS = 10_000
IDLE_SECONDS = 10.0


def run() -> list[Figure]:
    figures: list[Figure] = []
    for shape in SHAPES:
        orchestrators, workers = map(int, shape.split("+"))
        with (
            database() as base_url,
            database() as url,
            roles(base_url, orchestrators=BASE[0], workers=BASE[1]) as base,
            roles(url, orchestrators=orchestrators, workers=workers) as larger,
        ):
            figures += asyncio.run(_compare(base, larger, f"{orchestrators} + {workers}"))
    return figures


async def _compare(base: Roles, larger: Roles, shape: str) -> list[Figure]:
    async with connected(base) as base_client, connected(larger) as client:
        turns = Turns()
        for warm in (base_client, client):
            await _work(warm)
        for _ in range(REPEATS):
            turns.note(**{f"base {name}": figure for name, figure in (await _work(base_client)).items()})
            turns.note(**await _work(client))
        cpu, per_second = await _idle(larger)
    return [
        _figure(shape, turns, "chain", "chain of 50, per step", "ms"),
        _figure(shape, turns, "fan", f"fan-out of {ITEMS:,}", "tasks/s"),
        _figure(shape, turns, "workflows", "200 workflows of 5 steps", "jobs/s"),
        Figure(f"{shape} idle", 100 * cpu, "% of a core", f"{per_second:.1f} transactions a second"),
    ]


async def _work(client: BenchmarkClient) -> dict[str, float]:
    return {
        "chain": 1000 * await client.run("chain50") / 50,
        "fan": ITEMS / await client.run("fan", {"items": list(range(ITEMS))}),
        "workflows": 200 / await client.run("chain5", count=200),
    }


async def _idle(larger: Roles) -> tuple[float, float]:
    """Return the share of a core that the roles use while they have nothing to do, and transactions a second."""
    await asyncio.sleep(12)  # until every session has handed in its statistics
    cpu, transactions, begun = larger.cpu_seconds, commits(larger.url), time.perf_counter()
    await asyncio.sleep(IDLE_SECONDS)
    seconds = time.perf_counter() - begun
    return (larger.cpu_seconds - cpu) / seconds, (commits(larger.url) - transactions) / seconds


def _figure(shape: str, turns: Turns, name: str, what: str, unit: str) -> Figure:
    """Return a figure and its cost beside the base; a negative cost is a gain."""
    ratio = turns.ratio(name, f"base {name}")
    cost = ratio - 1 if unit == "ms" else 1 / ratio - 1
    return Figure(f"{shape}  {what}", turns.of(name), unit, f"costs {cost:+.0%} beside {turns.of(f'base {name}'):,.1f}")
