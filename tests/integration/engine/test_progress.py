"""How far a job is, while its tasks run."""

from __future__ import annotations

import asyncio

from geomill.store import progress
from tests.integration.engine.conftest import MakePlatform

SLEEPERS = """
workflow_id: sleepers
name: Sleepers
nodes:
  START: {type: start, next: each}
  each:
    type: fan_out
    source: "{{ [0.1, 20, 20, 20] }}"
    task: {handler: sleep, params: {duration_seconds: "{{ item }}"}}
    next: all
  all: {type: fan_in, aggregation: count, next: END}
  END: {type: end}
"""


async def test_items_under_way_count_and_are_heard(make_platform: MakePlatform) -> None:
    platform = make_platform(SLEEPERS)
    platform.orchestrator()
    platform.worker()
    job_id = await platform.submit("sleepers")
    async with asyncio.timeout(20):
        while True:
            async with platform.pool.connection() as conn:
                job_progress = await progress.find(conn, job_id)
            node = (
                next((candidate for candidate in job_progress.nodes if candidate.node_id == "each"), None)
                if job_progress
                else None
            )
            if node and node.items_completed == 1 and node.message:
                break
            await asyncio.sleep(0.05)
    assert node.items_total == 4
    assert node.fraction is not None
    assert 0.25 < node.fraction < 0.5
    assert "of 20" in node.message
