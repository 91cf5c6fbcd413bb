"""Workers that learn from Service Bus that tasks wait: nothing depends on it, and every permit is settled."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from geomill.domain.engine.message import LIGHT_QUEUE
from geomill.domain.states import JobStatus
from geomill.queues.servicebus import Bus, BusOptions
from geomill.queues.servicebus.bus import Posting
from tests.integration.engine import gated_handlers
from tests.integration.engine.platform import EnginePlatform
from tests.integration.queues.servicebus.conftest import MakePlatform, Peer
from tests.servicebus.running import LEFT_OPEN, own

pytestmark = pytest.mark.filterwarnings(LEFT_OPEN)

GATED = """
workflow_id: gated
name: Gated
inputs: {items: {type: array}}
nodes:
  START: {type: start, next: each}
  each:
    type: fan_out
    source: "{{ inputs.items }}"
    task: {handler: gated}
    next: END
  END: {type: end}
"""
FAN = GATED.replace("gated", "fan").replace("handler: fan", "handler: echo")
NOTHING_LEFT = {"waiting": 0, "locked": 0, "scheduled": 0, "dead": []}


async def until(true: Callable[[], Any], seconds: float = 60.0) -> None:
    async with asyncio.timeout(seconds):
        while not await asyncio.to_thread(true):  # noqa: ASYNC110  in another process, and slow with a real namespace
            await asyncio.sleep(0.05)


def depth(peer: Peer) -> dict[str, Any]:
    counts = peer.tell("depth", LIGHT_QUEUE)
    del counts["receivers"]
    return counts


async def receiving(peer: Peer, receivers: int = 1) -> None:
    await until(lambda: peer.tell("depth", LIGHT_QUEUE)["receivers"] == receivers)


async def settled(peer: Peer) -> None:
    """Wait until nothing is left in the queue."""
    await until(lambda: depth(peer) == NOTHING_LEFT)


async def warm(platform: EnginePlatform, peer: Peer) -> None:
    """Wait until permits come at once: the first one waits for the orchestrator's link to its queue."""
    await platform.run("fan", {"items": [1]})
    await settled(peer)


async def gated_platform(make_platform: MakePlatform) -> EnginePlatform:
    gated_handlers.new_gate()
    platform = make_platform(GATED, FAN, handlers=("tests.integration.engine.gated_handlers",))
    platform.orchestrator()
    return platform


@pytest.mark.usefixtures("steered")
async def test_each_task_has_a_permit_which_goes_with_its_report(make_platform: MakePlatform, peer: Peer) -> None:
    platform = await gated_platform(make_platform)
    platform.worker(queues=(LIGHT_QUEUE,), concurrency=2)
    await receiving(peer)
    await warm(platform, peer)
    job_id = await platform.submit("gated", {"items": list(range(5))})
    await until(lambda: len(gated_handlers.gate.running) == 2)
    await until(lambda: depth(peer) == {**NOTHING_LEFT, "waiting": 3, "locked": 2})
    gated_handlers.gate.let_all_go()
    assert (await platform.ended(job_id)).status is JobStatus.COMPLETED
    await settled(peer)


async def test_a_lost_permit_delays_its_task_and_no_more(make_platform: MakePlatform, peer: Peer) -> None:
    platform = make_platform(FAN)
    platform.orchestrator()
    platform.worker(queues=(LIGHT_QUEUE,))
    await receiving(peer)
    peer.tell("drop", 1_000)
    job = await platform.run("fan", {"items": list(range(20))})
    assert job.status is JobStatus.COMPLETED


@pytest.mark.slow
async def test_work_goes_on_without_service_bus_and_with_it_again(make_platform: MakePlatform, peer: Peer) -> None:
    peer.tell("refuse", 8)
    platform = make_platform(FAN)
    platform.orchestrator()
    platform.worker(queues=(LIGHT_QUEUE,))
    assert (await platform.run("fan", {"items": list(range(50))})).status is JobStatus.COMPLETED
    troubles = "SELECT duties FROM dagapp.dag_instances WHERE duties::text LIKE '%service_bus%'"
    assert await platform.rows_soon(troubles)
    await receiving(peer)
    assert (await platform.run("fan", {"items": list(range(50))})).status is JobStatus.COMPLETED
    await settled(peer)


async def test_cuts_and_a_busy_server_lose_nothing(make_platform: MakePlatform, peer: Peer) -> None:
    platform = make_platform(FAN)
    platform.orchestrator()
    platform.worker(queues=(LIGHT_QUEUE,), concurrency=4)
    await receiving(peer)
    jobs = [await platform.submit("fan", {"items": list(range(100))}) for _ in range(5)]
    for command in ("cut", "throttle 1", "cut", "cut"):
        peer.tell(*command.split())
        await asyncio.sleep(0.3)
    for job_id in jobs:
        assert (await platform.ended(job_id)).status is JobStatus.COMPLETED
    [row] = await platform.rows(
        "SELECT count(*) AS results, count(DISTINCT task_id) AS tasks FROM dagapp.dag_task_results"
    )
    assert row == {"results": 500, "tasks": 500}


async def test_the_lock_of_a_long_task_is_renewed(make_platform: MakePlatform, peer: Peer) -> None:
    peer.tell("lock", 3)
    platform = await gated_platform(make_platform)
    platform.worker(queues=(LIGHT_QUEUE,), concurrency=4)
    await receiving(peer)
    await warm(platform, peer)
    job_id = await platform.submit("gated", {"items": [1]})
    await until(lambda: gated_handlers.gate.running)
    for _ in range(14):
        await asyncio.sleep(0.5)
        assert depth(peer) == {**NOTHING_LEFT, "locked": 1}
    gated_handlers.gate.let_all_go()
    assert (await platform.ended(job_id)).status is JobStatus.COMPLETED
    await settled(peer)


@pytest.mark.usefixtures("steered")
async def test_a_task_goes_on_when_its_lock_is_lost_and_nobody_else_begins_it(
    make_platform: MakePlatform, peer: Peer
) -> None:
    platform = await gated_platform(make_platform)
    for _ in range(2):
        platform.worker(queues=(LIGHT_QUEUE,), concurrency=4)
    await receiving(peer, 2)
    await warm(platform, peer)
    job_id = await platform.submit("gated", {"items": [1]})
    await until(lambda: gated_handlers.gate.running)
    await until(lambda: depth(peer)["locked"] == 1)
    peer.tell("expire", LIGHT_QUEUE)
    await settled(peer)  # another worker received the permit and had no task for it
    gated_handlers.gate.let_all_go()
    assert (await platform.ended(job_id)).status is JobStatus.COMPLETED
    assert len(gated_handlers.gate.begun) == 1


async def test_a_surplus_permit_is_completed(make_platform: MakePlatform, peer: Peer, bus: Bus) -> None:
    platform = make_platform(FAN)
    platform.orchestrator()
    platform.worker(queues=(LIGHT_QUEUE,))
    await receiving(peer)
    await bus.send(LIGHT_QUEUE, [Posting(own(f"surplus {n}"), "anything", 60.0) for n in range(30)])
    await settled(peer)
    assert (await platform.run("fan", {"items": [1, 2]})).status is JobStatus.COMPLETED


async def test_the_tasks_of_a_dead_worker_are_begun_by_another(make_platform: MakePlatform, peer: Peer) -> None:
    platform = await gated_platform(make_platform)
    first = platform.worker(queues=(LIGHT_QUEUE,), concurrency=3)
    await receiving(peer)
    job_id = await platform.submit("gated", {"items": [1, 2, 3]})
    await until(lambda: len(gated_handlers.gate.running) == 3)
    platform.worker(queues=(LIGHT_QUEUE,), concurrency=3)
    await platform.crash(first)
    gated_handlers.gate.let_all_go()
    assert (await platform.ended(job_id)).status is JobStatus.COMPLETED


@pytest.mark.usefixtures("steered")
async def test_a_worker_that_ends_gives_its_permits_back(
    make_platform: MakePlatform, peer: Peer, make_client: Callable[[BusOptions], Bus]
) -> None:
    platform = await gated_platform(make_platform)
    platform.worker(queues=(LIGHT_QUEUE,), concurrency=2, drain_seconds=0.1)
    await receiving(peer)
    await warm(platform, peer)
    await platform.submit("gated", {"items": [1, 2]})
    await until(lambda: len(gated_handlers.gate.running) == 2)
    await until(lambda: depth(peer)["locked"] == 2)
    await platform.shutdown()
    assert depth(peer)["locked"] == 0


async def test_a_retry_is_permitted_when_it_is_due(make_platform: MakePlatform, peer: Peer) -> None:
    platform = make_platform("""
workflow_id: failing
name: Failing
nodes:
  START: {type: start, next: bad}
  bad:
    type: task
    handler: fail
    params: {error_message: no luck}
    retry: {max_attempts: 2, backoff: fixed, initial_delay_seconds: 2}
    next: END
  END: {type: end}
""")
    platform.orchestrator()
    platform.worker(queues=(LIGHT_QUEUE,))
    await receiving(peer)
    job_id = await platform.submit("failing")
    await until(lambda: depth(peer)["scheduled"] == 1)
    assert (await platform.ended(job_id)).status is JobStatus.FAILED
    assert len(await platform.rows("SELECT FROM dagapp.dag_task_results")) == 2


async def test_a_queue_that_nobody_serves_gets_a_permit_now_and_then(make_platform: MakePlatform, peer: Peer) -> None:
    """A scaler that counts messages starts a worker then."""
    platform = make_platform(FAN)
    orchestrator = platform.orchestrator()
    assert orchestrator._permits
    orchestrator._permits.remind_seconds = 0.5
    peer.tell("drop", 2)
    await platform.submit("fan", {"items": [1, 2]})
    await until(lambda: depth(peer)["waiting"] >= 1)
