"""A worker runs at most as many heavy tasks at once as it has processes. Light tasks do not wait for them."""

from __future__ import annotations

import asyncio

from tests.integration.engine.platform import EnginePlatform, registry_of

WORKFLOW = """
    workflow_id: heavy
    name: Heavy
    nodes:
      START: {type: start, next: each}
      each:
        type: fan_out
        source: "{{ [1, 2, 3, 4, 5, 6, 7] }}"
        task: {handler: sleep, queue: container-tasks, params: {duration_seconds: 0.3}}
        next: END
      END: {type: end}
"""
LIGHT = """
    workflow_id: light
    name: Light
    nodes:
      START: {type: start, next: it}
      it: {type: task, handler: echo, params: {x: 1}, next: END}
      END: {type: end}
"""


async def test_heavy_tasks_are_limited_and_light_ones_pass(database, pool) -> None:
    platform = EnginePlatform(database, pool, None)
    platform.workflow_registry = registry_of(platform.registry, WORKFLOW, LIGHT)
    platform.orchestrator()
    platform.worker(processes=2, concurrency=16)
    most = 0
    leased = "SELECT count(*) FROM dagapp.dag_queue WHERE queue_name = 'container-tasks' AND lease_token IS NOT NULL"
    job_id = await platform.submit("heavy")
    light = await platform.run("light")
    assert light.status.value == "completed"
    while (await platform.until(job_id, lambda job: job is not None)).status.value == "running":
        most = max(most, (await platform.rows(leased))[0]["count"])
        await asyncio.sleep(0.01)
    assert most == 2
    await platform.shutdown()


async def test_the_next_heavy_task_follows_the_last_at_once(database, pool) -> None:
    """No notification comes and the next look would be too late: a queue at its limit does not count as empty."""
    platform = EnginePlatform(database, pool, None)
    platform.workflow_registry = registry_of(platform.registry, WORKFLOW)
    platform.worker(processes=2, concurrency=16, poll_seconds=600)
    platform.orchestrator()
    assert (await platform.run("heavy")).status.value == "completed"
    await platform.shutdown()
