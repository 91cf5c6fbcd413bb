"""Partners take turns. What one of them has waiting, however much it is, does not delay another's next task."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from geomill.domain.engine.message import JOBS_QUEUE, JobQueueMessage
from geomill.domain.engine.starting import Starter
from geomill.engine.submit import enqueue
from geomill.sdk.registry import load_handlers
from geomill.store.pool import Pool
from geomill.store.signals import notify, queue_channel
from tests.integration.engine import gated_handlers
from tests.integration.engine.gated_handlers import TaskGate
from tests.integration.engine.platform import PATIENCE, EnginePlatform, registry_of

ONE = """
    workflow_id: one
    name: One task
    nodes:
      START: {type: start, next: work}
      work: {type: task, handler: gated, next: END}
      END: {type: end}
"""
TWO = """
    workflow_id: two
    name: Two tasks
    nodes:
      START: {type: start, next: first}
      first: {type: task, handler: gated, next: second}
      second: {type: task, handler: gated, next: END}
      END: {type: end}
"""
HEAVY = """
    workflow_id: heavy
    name: One heavy task
    nodes:
      START: {type: start, next: work}
      work: {type: task, handler: gated, queue: container-tasks, next: END}
      END: {type: end}
"""
FAN = """
    workflow_id: fan
    name: A fan-out
    inputs: {items: {type: array}}
    nodes:
      START: {type: start, next: each}
      each: {type: fan_out, source: "{{ inputs.items }}", task: {handler: gated}, next: END}
      END: {type: end}
"""


class Partners(EnginePlatform):
    gate: TaskGate

    async def hand_in(self, tenant: str, count: int = 1, workflow_id: str = "one", **inputs: Any) -> list[str]:
        messages = [JobQueueMessage(workflow_id=workflow_id, tenant=tenant, input_params=inputs) for _ in range(count)]
        async with self.pool.connection() as conn:
            await enqueue(conn, self.workflow_registry, JOBS_QUEUE, messages, Starter.OPERATORS)
            await notify(conn, [queue_channel(JOBS_QUEUE)])
        return [message.job_id for message in messages]

    async def when(self, true: Callable[[], Any]) -> None:
        async with asyncio.timeout(PATIENCE):
            while not true():  # noqa: ASYNC110
                await asyncio.sleep(0.01)

    async def until_begun(self, count: int) -> None:
        await self.when(lambda: len(self.gate.begun) >= count)

    async def until_waiting(self, tenant: str, count: int = 1) -> None:
        """Wait until so many tasks of a tenant wait for a worker."""
        waiting = (
            "SELECT count(*) FROM dagapp.dag_queue"
            f" WHERE tenant = '{tenant}' AND queue_name <> '{JOBS_QUEUE}' AND lease_token IS NULL"
        )
        async with asyncio.timeout(PATIENCE):
            while (await self.rows(waiting))[0]["count"] < count:  # noqa: ASYNC110
                await asyncio.sleep(0.01)


@pytest.fixture
async def partners(database: str, pool: Pool) -> AsyncIterator[Partners]:
    registry = load_handlers([gated_handlers.__name__])
    platform = Partners(database, pool, registry_of(registry, ONE, TWO, HEAVY, FAN), registry)
    platform.gate = gated_handlers.new_gate()
    yield platform
    platform.gate.let_all_go()
    await platform.shutdown()


async def test_a_single_submission_behind_a_thousand_is_claimed_with_the_first(partners: Partners) -> None:
    await partners.hand_in("a", 1000)
    (single,) = await partners.hand_in("b")
    partners.orchestrator()
    await partners.until(single, lambda job: job is not None)
    (row,) = await partners.rows(
        f"SELECT count(*) FROM dagapp.dag_jobs WHERE created_at < (SELECT created_at FROM dagapp.dag_jobs"
        f" WHERE job_id = '{single}')"
    )
    assert row["count"] == 0


@pytest.mark.parametrize("newcomer", ["b", ""], ids=["another partner", "the house"])
async def test_a_single_submission_behind_a_thousand_gets_the_next_free_slot(partners: Partners, newcomer: str) -> None:
    partners.orchestrator()
    partners.worker(concurrency=4, spare=0)
    await partners.hand_in("a", 1000)
    await partners.until_begun(4)
    (single,) = await partners.hand_in(newcomer)
    await partners.until_waiting(newcomer)
    partners.gate.let_go(partners.gate.begun)
    await partners.until_begun(5)
    assert partners.gate.begun.index(single) == 4


async def test_a_single_task_behind_a_fan_out_of_100_000_gets_the_next_free_slot(partners: Partners) -> None:
    partners.orchestrator()
    partners.worker(concurrency=4, spare=0)
    await partners.hand_in("a", workflow_id="fan", items=list(range(100_000)))
    await partners.until_begun(4)
    (single,) = await partners.hand_in("b")
    await partners.until_waiting("b")
    partners.gate.let_go(partners.gate.begun)
    await partners.until_begun(5)
    assert partners.gate.begun[4] == single


async def test_a_single_slot_passes_between_partners(partners: Partners) -> None:
    partners.orchestrator()
    owner = {}
    for tenant in ("a", "b", "c"):
        owner |= dict.fromkeys(await partners.hand_in(tenant, 5), tenant)
        await partners.until_waiting(tenant, 5)
    partners.gate.open = True
    partners.worker(concurrency=1, spare=0)
    await partners.until_begun(15)
    turns = [owner[job_id] for job_id in partners.gate.begun]
    assert all(Counter(turns[begin : begin + 3]) == Counter("abc") for begin in range(0, 15, 3)), turns


async def test_one_partner_does_not_hold_both_slots_while_another_waits(partners: Partners) -> None:
    """Each partner has one slot, no matter whose task ends, although one partner has ten times as many tasks
    waiting."""
    partners.orchestrator()
    partners.worker(concurrency=2, spare=0)
    many = await partners.hand_in("a", 50)
    await partners.until_begun(2)
    few = await partners.hand_in("b", 5)
    await partners.until_waiting("b", 5)
    partners.gate.let_go(many)
    await partners.until_begun(3)
    for ended, expected in enumerate([many, many, few, few, many, few], start=4):
        partners.gate.let_go(expected)
        await partners.until_begun(ended)
        assert partners.gate.begun[-1] in expected, ended


async def test_with_two_workers_the_first_slot_that_is_free_is_the_newcomers(partners: Partners) -> None:
    partners.orchestrator()
    partners.worker(concurrency=2, spare=0)
    partners.worker(concurrency=2, spare=0)
    many = await partners.hand_in("a", 100)
    await partners.until_begun(4)
    singles = await partners.hand_in("b", 2)
    await partners.until_waiting("b", 2)
    for begun in (5, 6):
        partners.gate.let_go(many)
        await partners.until_begun(begun)
    assert partners.gate.begun[4] in singles


async def test_all_slots_held_for_hours_leave_one_more_for_who_has_none(partners: Partners) -> None:
    """No task ends. The next partner still begins, with one task; the one after it waits for that task to end."""
    partners.orchestrator()
    partners.worker(concurrency=2, poll_seconds=0.05)
    await partners.hand_in("a", 10)
    await partners.until_begun(2)
    second = await partners.hand_in("b", 3)
    await partners.until_begun(3)
    assert partners.gate.begun[2] in second
    (third,) = await partners.hand_in("c")
    await partners.until_waiting("c")
    assert len(partners.gate.running) == 3
    partners.gate.let_go(second)
    await partners.until_begun(4)
    assert partners.gate.begun[3] == third


async def test_a_partner_alone_gets_no_more_than_the_slots(partners: Partners) -> None:
    partners.orchestrator()
    worker = partners.worker(concurrency=2, poll_seconds=0.05)
    await partners.hand_in("a", 10)
    await partners.until_begun(2)
    await partners.until_waiting("a", 8)
    looked_at = worker._spare._looked_at
    await partners.when(lambda: worker._spare._looked_at > looked_at + 0.1)  # looks were in vain
    assert len(partners.gate.running) == 2


async def test_all_processes_held_for_hours_leave_one_more_for_who_has_none(partners: Partners) -> None:
    """Two tasks of one partner hold both task processes, and there is room for others of light queues only."""
    partners.orchestrator()
    partners.worker(concurrency=16, processes=2, poll_seconds=0.05)
    first = await partners.hand_in("a", 5, "heavy")
    await partners.until_begun(2)
    (single,) = await partners.hand_in("b", 1, "heavy")
    await partners.until_begun(3)
    assert partners.gate.begun[2] == single
    await partners.hand_in("c", 1, "heavy")
    await partners.until_waiting("c")
    assert len(partners.gate.running) == 3
    partners.gate.let_go(first)
    partners.gate.let_go(first)
    await partners.until_begun(4)


async def test_who_takes_a_job_over_knows_whose_it_is(partners: Partners) -> None:
    first = partners.orchestrator(scan_seconds=0.1)
    partners.worker(concurrency=1, spare=0)
    (job_id,) = await partners.hand_in("a", workflow_id="two")
    await partners.until_begun(1)
    await partners.crash(first)
    partners.orchestrator(scan_seconds=0.1)
    partners.gate.let_go([job_id])
    await partners.until_begun(2)
    (row,) = await partners.rows(f"SELECT tenant FROM dagapp.dag_queue WHERE message_id LIKE '{job_id}%'")
    assert row["tenant"] == "a"
