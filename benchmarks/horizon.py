"""A transaction that somebody leaves open outside: nothing that dies meanwhile can be vacuumed.

Fan-outs and chains, before it is opened, and after `BENCH_HORIZON_SECONDS` of load under it. That is 60 if you say
nothing; the target is for 300.
"""

from __future__ import annotations

import os
import statistics
import time
from dataclasses import dataclass

import psycopg

from benchmarks.figures import Figure
from benchmarks.roles import Client, Roles, running
from benchmarks.server import database

SECONDS = float(os.environ.get("BENCH_HORIZON_SECONDS", "60"))
ITEMS = 2_000
CHAINS = 40


@dataclass(frozen=True)
class Pace:
    tasks_per_second: float
    chain_seconds: float

    @classmethod
    async def measured(cls, client: Client, seconds: float) -> Pace:
        """The medians of as many turns as fit into the time, of its end if it is long."""
        fans: list[float] = []
        chains: list[float] = []
        end = time.monotonic() + seconds
        while time.monotonic() < end or not fans:
            fans.append(ITEMS / await client.run("fan", {"items": list(range(ITEMS))}))
            await client.run("chain5", count=CHAINS)
            chains.append(await client.run("chain5"))
        return cls(statistics.median(fans[-8:]), statistics.median(chains[-8:]))


def run() -> list[Figure]:
    with database() as url, running(url, work, workers=2) as (free, held, dead):
        fans, chains = held.tasks_per_second / free.tasks_per_second, held.chain_seconds / free.chain_seconds
        return [
            Figure(f"fan-outs of {ITEMS:,}, nothing open", free.tasks_per_second, "tasks/s"),
            Figure(
                f"   after {SECONDS:.0f} s of load under an open transaction",
                held.tasks_per_second,
                "tasks/s",
                f"{fans:.0%} of the rate before, with {dead:,.0f} dead rows in the queue",
            ),
            Figure("a chain of 5, nothing open", 1000 * free.chain_seconds, "ms"),
            Figure("   under the open transaction", 1000 * held.chain_seconds, "ms", f"{chains:.2f} times"),
        ]


async def work(client: Client, roles: Roles) -> tuple[Pace, Pace, float]:
    await Pace.measured(client, 3)
    free = await Pace.measured(client, 12)
    with psycopg.connect(roles.url) as outside:
        outside.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        outside.execute("SELECT count(*) FROM dagapp.dag_instances")
        held = await Pace.measured(client, SECONDS)
        dead = await client.number("SELECT n_dead_tup FROM pg_stat_user_tables WHERE relname = 'dag_queue'")
    return free, held, dead
