"""How long one partner waits while another floods the platform, beside how long it waits alone, in the same run."""

from __future__ import annotations

import asyncio
import statistics
import time
from typing import Any

from benchmarks.figures import Figure
from benchmarks.roles import BenchmarkClient, Roles, fan, running, single
from benchmarks.server import database

FLOOD, NEWCOMER = "flood", "newcomer"
TASK_SECONDS = 0.05
SUBMISSIONS, ITEMS = 1_000, 100_000
SAMPLES = 20


def work() -> dict[str, Any]:
    workflow = single("work", "bench.work")
    workflow["nodes"]["n0"]["params"] = {"seconds": "{{ inputs.seconds }}"}
    return {**workflow, "inputs": {"seconds": {"type": "number", "default": TASK_SECONDS}}}


WORKFLOWS = (work(), fan(), single("stamp", "bench.stamp"))


def run() -> list[Figure]:
    options: dict[str, Any] = {"workers": 2, "concurrency": 4, "workflows": WORKFLOWS}
    figures: list[Figure] = []
    for workload in (submissions, items, hours):
        with database() as url, running(url, workload, **options) as measured:
            figures += measured
    return figures


async def submissions(client: BenchmarkClient, roles: Roles) -> list[Figure]:
    """1,000 submissions of one task of 50 ms each, on eight slots: six seconds of work."""
    alone = await _waits(client)
    await client.submit("work", count=SUBMISSIONS, tenant=FLOOD)
    first = await _wait(client, NEWCOMER)
    flooded = await _waits(client)
    last_in_line = await _wait(client, FLOOD)
    worst = f"worst: {_beside(max(flooded), alone)}"
    behind = f"   right behind {SUBMISSIONS:,} submissions of another partner"
    return [
        Figure("one task, alone: submission to start, p50", _milliseconds(alone), "ms"),
        Figure(behind, 1000 * first, "ms", _beside(first, alone)),
        Figure("   while these are worked on, p50", _milliseconds(flooded), "ms", worst),
        Figure("   as one more of theirs", 1000 * last_in_line, "ms", "first come, first served within a partner"),
    ]


async def items(client: BenchmarkClient, roles: Roles) -> list[Figure]:
    """A fan-out of 100,000 items that do nothing: what is measured is the engine at its limit."""
    alone = await _waits(client)
    (job_id,) = await client.submit("fan", {"items": list(range(ITEMS))}, tenant=FLOOD)
    flooded = await _waits(client)
    under_way = "SELECT count(*) FROM dagapp.dag_jobs WHERE job_id = %s AND status = 'running'"
    assert await client.number(under_way, job_id), "the fan-out was over too soon"
    note = f"{_milliseconds(flooded) / _milliseconds(alone):.1f} times alone; worst: {1000 * max(flooded):.0f} ms"
    return [Figure(f"   behind a fan-out of {ITEMS:,}, p50", _milliseconds(flooded), "ms", note)]


async def hours(client: BenchmarkClient, roles: Roles) -> list[Figure]:
    """Tasks of another partner hold every slot, and none of them ends."""
    await client.submit("work", {"seconds": 600}, count=20, tenant=FLOOD)
    leased = "SELECT count(*) FROM dagapp.dag_queue WHERE lease_token IS NOT NULL"
    async with asyncio.timeout(30):
        while await client.number(leased) < 8:  # noqa: ASYNC110  other processes do the work
            await asyncio.sleep(0.05)
    waits = await _waits(client, 5)
    return [
        Figure("   while all slots are held for hours, p50", _milliseconds(waits), "ms", f"worst: {max(waits):.2f} s")
    ]


async def _waits(client: BenchmarkClient, samples: int = SAMPLES) -> list[float]:
    return [await _wait(client, NEWCOMER) for _ in range(samples)]


async def _wait(client: BenchmarkClient, tenant: str) -> float:
    """Seconds from before the submission to the start of its task."""
    begun = time.time()
    (job_id,) = await client.submit("stamp", tenant=tenant)
    await client.ended([job_id])
    query = "SELECT (output ->> 'began')::float8 FROM dagapp.dag_node_states WHERE job_id = %s AND node_id = 'n0'"
    return await client.number(query, job_id) - begun


def _milliseconds(waits: list[float]) -> float:
    return 1000 * statistics.median(waits)


def _beside(wait: float, alone: list[float]) -> str:
    tasks = (wait - statistics.median(alone)) / TASK_SECONDS
    return f"{1000 * wait:.0f} ms, longer than alone by {tasks:.1f} tasks of {1000 * TASK_SECONDS:.0f} ms"
