"""Wake-ups: as many workers as there is work for, and none is forgotten. The workers do not poll here."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from geomill.domain.engine.message import HEAVY_QUEUE, LIGHT_QUEUE
from geomill.sdk.registry import load_handlers
from geomill.store.pool import Pool
from geomill.store.signals import Call, direct_call, send, worker_channel
from tests.integration.engine import gated_handlers
from tests.integration.engine.platform import registry_of
from tests.integration.engine.test_fairness import FAN, ONE, Partners

STEPS = 20
CHAIN = "\n".join(
    [
        "workflow_id: chain",
        "name: A chain",
        "nodes:",
        "  START: {type: start, next: n0}",
        *(
            f"  n{step}: {{type: task, handler: gated, next: {f'n{step + 1}' if step < STEPS - 1 else 'END'}}}"
            for step in range(STEPS)
        ),
        "  END: {type: end}",
    ]
)
MIXED = f"""
    workflow_id: mixed
    name: Two steps on two queues
    nodes:
      START: {{type: start, next: first}}
      first: {{type: task, handler: gated, queue: {LIGHT_QUEUE}, next: second}}
      second: {{type: task, handler: gated, queue: {HEAVY_QUEUE}, next: END}}
      END: {{type: end}}
"""
NEVER = 600.0


@pytest.fixture
async def partners(database: str, pool: Pool) -> AsyncIterator[Partners]:
    registry = load_handlers([gated_handlers.__name__])
    platform = Partners(database, pool, registry_of(registry, ONE, FAN, CHAIN, MIXED), registry)
    platform.gate = gated_handlers.new_gate()
    yield platform
    platform.gate.let_all_go()
    await platform.shutdown()


def count_exchanges(worker: Any) -> list[int]:
    """Return a list that gets an entry, the number of free slots, for each exchange that may lease."""
    exchanges: list[int] = []
    once = worker._exchange.once

    async def counted(conn: Any, free: int, *rest: Any) -> Any:
        if free:
            exchanges.append(free)
        return await once(conn, free, *rest)

    worker._exchange.once = counted
    return exchanges


async def test_a_chain_wakes_only_the_worker_that_runs_it(partners: Partners) -> None:
    partners.gate.let_all_go()
    partners.orchestrator()
    workers = [partners.worker(poll_seconds=NEVER) for _ in range(3)]
    for worker in workers:
        await worker._signals.connected.wait()
    exchanges = [count_exchanges(worker) for worker in workers]
    await partners.run("chain")
    *idle, busy = sorted(map(len, exchanges))
    assert busy >= STEPS // 2, "an exchange may report one step and lease the next"
    assert sum(idle) <= 2 * 4, "each looks when it starts and when the first step calls all"


async def test_a_worker_that_does_not_serve_the_queue_passes_the_call_on(partners: Partners) -> None:
    partners.gate.let_all_go()
    partners.orchestrator()
    partners.worker(queues=[LIGHT_QUEUE], poll_seconds=NEVER)
    partners.worker(queues=[HEAVY_QUEUE], processes=1, poll_seconds=NEVER)
    for _ in range(3):
        assert (await partners.run("mixed")).status.value == "completed"


async def test_a_full_worker_passes_the_call_on(partners: Partners) -> None:
    partners.orchestrator()
    workers = {
        worker.instance_id: worker
        for worker in (partners.worker(queues=[LIGHT_QUEUE], concurrency=1, poll_seconds=NEVER) for _ in range(2))
    }
    held = [*await partners.hand_in("a"), *await partners.hand_in("a")]
    await partners.until_begun(2)
    (waiting,) = await partners.hand_in("a")
    await partners.until_waiting("a")
    await partners.rows(
        "UPDATE dagapp.dag_queue SET visible_at = now() + interval '1 hour' WHERE lease_token IS NULL RETURNING 1"
    )
    partners.gate.let_go([held[0]])
    await partners.ended(held[0])
    idle = next(worker for worker in workers.values() if not worker._slots)
    await partners.when(lambda: not idle._shares.hopeful)
    await partners.rows("UPDATE dagapp.dag_queue SET visible_at = now() WHERE lease_token IS NULL RETURNING 1")
    full = next(worker for worker in workers.values() if worker is not idle)
    async with partners.pool.connection() as conn:
        await send(conn, [Call(worker_channel(full.instance_id), direct_call(LIGHT_QUEUE))])
    await partners.until_begun(3)
    assert partners.gate.begun[-1] == waiting
    assert idle._slots
