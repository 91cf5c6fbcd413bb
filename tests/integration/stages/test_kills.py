"""An orchestrator or a worker is gone at the border of two stages: the job goes on, and each stage advances once."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from geomill.domain.stage_job import StageStatus
from tests.integration.stages.conftest import StagePlatform
from tests.integration.stages.test_races import advances

WANTED = {"widths": [4, 4, 4], "seconds": 0.05}
BORDERS = [f"stage{number}_{step}" for number in (1, 2, 3) for step in ("plan", "tasks", "aggregate")]


async def reached(platform: StagePlatform, node_id: str) -> None:
    """Until the node has been sent to workers."""
    query = f"""
        SELECT 1 FROM dagapp.dag_node_states
        WHERE node_id = '{node_id}' AND item_index = -1 AND status NOT IN ('pending', 'ready')"""
    async with asyncio.timeout(20):
        while not await platform.rows(query):  # noqa: ASYNC110
            await asyncio.sleep(0.002)


async def check(platform: StagePlatform, job_id: str, run_id: str) -> None:
    await platform.ended(run_id)
    found = await platform.view(job_id)
    assert found.latest.status is StageStatus.COMPLETED, found.latest.error
    assert [one.completed for one in found.stages] == [4, 4, 4]
    assert (found.result or {})["stage_3"]["sum"] == 4 * (4 * (4 + 1) + 1)
    assert all(row["ended"] == 1 for row in await advances(platform))


@pytest.mark.parametrize("border", BORDERS)
async def test_the_orchestrator_dies_at_a_border(make_stages: Callable[[], StagePlatform], border: str) -> None:
    platform = make_stages()
    first = platform.orchestrator(scan_seconds=0.1)
    platform.worker()
    order = await platform.order("counting", WANTED)
    await reached(platform, border)
    await platform.crash(first)
    platform.orchestrator(scan_seconds=0.1)
    await check(platform, order.run.job_id, order.run.run_id)


@pytest.mark.parametrize("border", BORDERS)
async def test_the_worker_dies_at_a_border(make_stages: Callable[[], StagePlatform], border: str) -> None:
    platform = make_stages()
    platform.orchestrator(scan_seconds=0.1)
    first = platform.worker()
    order = await platform.order("counting", WANTED)
    await reached(platform, border)
    await platform.crash(first)
    platform.worker()
    await check(platform, order.run.job_id, order.run.run_id)
