"""A transaction that somebody leaves open outside: nothing that dies meanwhile can be vacuumed.

Fan-outs and chains, before it is opened, and after `BENCH_HORIZON_SECONDS` of load under it. That is 60 if you say
nothing; the target is for 300.
"""

from __future__ import annotations

import os
import statistics
import time
from dataclasses import dataclass
from functools import partial

import psycopg

from benchmarks import bare
from benchmarks.figures import Figure
from benchmarks.roles import BenchmarkClient, Roles, running
from benchmarks.server import database

SECONDS = float(os.environ.get("BENCH_HORIZON_SECONDS", "60"))
ITEMS = 2_000
CHAINS = 40
TURNS = 8
LAST_SECONDS = 15.0
"""The last part of the time, in which the bare loop takes its turns, too."""


@dataclass(frozen=True)
class Pace:
    tasks_per_second: float
    chain_seconds: float
    bare_per_second: float
    """The speed of the bare loop in a database of its own, which nobody holds back. It shows what the machine could do
    meanwhile."""

    @classmethod
    async def measured(cls, client: BenchmarkClient, bare_url: str, seconds: float) -> Pace:
        """Repeat the measurement until the time is over. Return the medians of the last turns."""
        fans: list[float] = []
        chains: list[float] = []
        loops: list[float] = []
        end = time.monotonic() + seconds
        while time.monotonic() < end or len(fans) < TURNS:
            fans.append(ITEMS / await client.run("fan", {"items": list(range(ITEMS))}))
            await client.run("chain5", count=CHAINS)
            chains.append(await client.run("chain5"))
            if time.monotonic() > end - LAST_SECONDS:
                loops.append(bare.claim_complete_per_second(bare_url))
        return cls(*(statistics.median(times[-TURNS:]) for times in (fans, chains, loops)))


def run() -> list[Figure]:
    with database(migrated=False) as bare_url, database() as url:
        bare.prepare(bare_url)
        with running(url, partial(work, bare_url=bare_url), workers=2) as (free, open_pace, dead):
            return _figures(free, open_pace, dead)


def _figures(free: Pace, open_pace: Pace, dead: float) -> list[Figure]:
    machine = open_pace.bare_per_second / free.bare_per_second
    fans, chains = open_pace.tasks_per_second / free.tasks_per_second, open_pace.chain_seconds / free.chain_seconds
    note = f"{fans / machine:.0%} of the rate before, by the bare loop; {dead:,.0f} dead rows in the queue"
    return [
        Figure(
            "bare psycopg: claim 100, complete 100, first and then", free.bare_per_second, "tasks/s", f"{machine:.0%}"
        ),
        Figure(f"fan-outs of {ITEMS:,}, nothing open", free.tasks_per_second, "tasks/s"),
        Figure(
            f"   after {SECONDS:.0f} s of load under an open transaction", open_pace.tasks_per_second, "tasks/s", note
        ),
        Figure("a chain of 5, nothing open", 1000 * free.chain_seconds, "ms"),
        Figure("   under the open transaction", 1000 * open_pace.chain_seconds, "ms", f"{chains * machine:.2f} times"),
    ]


async def work(client: BenchmarkClient, roles: Roles, bare_url: str) -> tuple[Pace, Pace, float]:
    await client.run("fan", {"items": list(range(ITEMS))})
    free = await Pace.measured(client, bare_url, LAST_SECONDS)
    forgetful = "-c idle_in_transaction_session_timeout=0"
    with psycopg.connect(roles.url, options=forgetful) as outside:
        outside.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        outside.execute("SELECT count(*) FROM dagapp.dag_instances")
        open_pace = await Pace.measured(client, bare_url, SECONDS)
        dead = await client.number("SELECT n_dead_tup FROM pg_stat_user_tables WHERE relname = 'dag_queue'")
    return free, open_pace, dead
