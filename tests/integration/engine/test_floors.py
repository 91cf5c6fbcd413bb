"""Nothing depends on floors but speed: with every look taken for dear, everything still gets done."""

from __future__ import annotations

import asyncio

import pytest

from geomill.domain.states import JobStatus
from geomill.queues import floors
from tests.integration.engine.conftest import MakePlatform

FLAKY = """
workflow_id: flaky
name: Flaky
nodes:
  START: {type: start, next: each}
  each:
    type: fan_out
    source: [0, 1, 2, 0, 1, 2]
    task:
      handler: flaky_echo
      params: {fail_times: "{{ item }}", index: "{{ index }}"}
      retry: {max_attempts: 4, backoff: fixed, initial_delay_seconds: 0.3}
    next: all
  all: {type: fan_in, aggregation: count, next: END}
  END: {type: end}
"""
SLEEPY = """
workflow_id: sleepy
name: Sleepy
nodes:
  START: {type: start, next: each}
  each:
    type: fan_out
    source: [1, 2, 3, 4, 5, 6, 7, 8]
    task: {handler: sleep, params: {duration_seconds: 0.3}}
    next: END
  END: {type: end}
"""


@pytest.fixture
def dear(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(floors.Effort, "excess", lambda self: 0.05)


@pytest.mark.slow
@pytest.mark.usefixtures("dear")
async def test_retries_tenants_priorities_and_takeovers_come_to_their_end(make_platform: MakePlatform) -> None:
    platform = make_platform(FLAKY, SLEEPY)
    orchestrator = platform.orchestrator(scan_seconds=0.2)
    worker = platform.worker(concurrency=4, poll_seconds=0.2)
    platform.worker(concurrency=4, poll_seconds=0.2)
    jobs = [
        await platform.submit(name, tenant=tenant, priority=priority)
        for name in ("flaky", "sleepy")
        for tenant in ("", "ada", "bob")
        for priority in (0, 5)
    ]
    async with asyncio.timeout(20):
        while not await platform.rows("SELECT 1 FROM dagapp.dag_queue WHERE lease_token IS NOT NULL"):  # noqa: ASYNC110
            await asyncio.sleep(0.01)
    await platform.crash(worker)  # its leases are given back, behind the floors of the other
    platform.orchestrator(scan_seconds=0.2)
    await platform.crash(orchestrator)  # its reports are addressed anew, behind the floor of the other
    for job_id in jobs:
        assert (await platform.ended(job_id)).status is JobStatus.COMPLETED
    assert await platform.rows("SELECT 1 FROM dagapp.dag_queue UNION ALL SELECT 1 FROM dagapp.dag_inbox") == []
