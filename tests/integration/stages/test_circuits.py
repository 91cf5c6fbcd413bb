"""A handler that fails again and again: its tasks are held back, one probes, and all go on."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from geomill.domain.engine.circuit import CircuitState
from geomill.domain.engine.stage_job import StageStatus
from geomill.store import circuits
from tests.integration.stages.conftest import StagePlatform
from tests.integration.stages.controllers import DOWN


@pytest.fixture(autouse=True)
def _all_up() -> Iterator[None]:
    yield
    DOWN.clear()


async def states(platform: StagePlatform) -> dict[str, CircuitState]:
    async with platform.pool.connection() as conn:
        return {circuit.handler: circuit.state for circuit in await circuits.read(conn)}


async def until_open(platform: StagePlatform) -> None:
    async with asyncio.timeout(10):
        while (await states(platform)).get("test.call") is not CircuitState.OPEN:  # noqa: ASYNC110
            await asyncio.sleep(0.02)


async def failures(platform: StagePlatform) -> int:
    (row,) = await platform.rows(
        "SELECT count(*) AS n FROM dagapp.dag_task_results WHERE status = 'failed' AND node_id = 'stage1_tasks'"
    )
    return row["n"]


async def test_it_opens_holds_back_and_is_closed_by_a_probe(platform: StagePlatform) -> None:
    DOWN.add("tiles")
    order = await platform.order("calling", {"service": "tiles", "tasks": 20})
    await until_open(platform)
    await asyncio.sleep(0.2)  # what was under way has ended
    stage = (await platform.view(order.run.job_id)).stages[0]
    assert stage.circuit is not None
    assert (stage.circuit.error_code, stage.status) == ("down", StageStatus.PROCESSING)
    before = await failures(platform)
    await asyncio.sleep(1.3)
    assert await failures(platform) - before <= 4, "only probes are let through"
    other = await platform.complete("counting")  # another task type
    assert other.latest.status is StageStatus.COMPLETED
    DOWN.clear()
    await platform.ended(order.run.run_id)
    assert (await platform.view(order.run.job_id)).latest.status is StageStatus.COMPLETED
    assert await states(platform) == {"test.call": CircuitState.CLOSED}
    (most,) = await platform.rows("SELECT max(delivery_count) AS deliveries FROM dagapp.dag_queue")
    assert most == {"deliveries": None}


async def test_failures_that_no_retry_mends_do_not_open_it(platform: StagePlatform) -> None:
    for note in range(12):
        await platform.complete("wide", {"widths": [1, 1], "fail_stage": 1, "note": str(note)})
    assert await states(platform) == {}


async def test_a_success_in_between_begins_the_count_anew(platform: StagePlatform) -> None:
    DOWN.add("one")
    failing = await platform.order("calling", {"service": "one"})
    async with asyncio.timeout(10):
        while await failures(platform) < 3:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
    await platform.complete("calling", {"service": "two"})
    DOWN.clear()
    await platform.ended(failing.run.run_id)
    assert await states(platform) == {"test.call": CircuitState.CLOSED}
    assert await platform.rows("SELECT 1 FROM dagapp.dag_circuits WHERE failures > 0") == []


@pytest.mark.parametrize("body", ['{"circuit_breaker": 7}', '{"circuit_breaker": {}, "handler": 7}', "[1]"])
async def test_a_malformed_task_is_a_dead_letter_and_stops_nobody(platform: StagePlatform, body: str) -> None:
    await platform.rows(
        "INSERT INTO dagapp.dag_queue (queue_name, message_id, body) "
        f"VALUES ('functionapp-tasks', 'odd', '{body}') RETURNING 1 AS one"
    )
    assert (await platform.complete("wide", {"widths": [1, 1]})).latest.status is StageStatus.COMPLETED
    assert await platform.rows("SELECT reason FROM dagapp.dag_dead_letters") == [{"reason": "MalformedMessage"}]
