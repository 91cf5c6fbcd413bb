"""Each stage advances exactly once, after its last task, however many tasks end at the same moment."""

from __future__ import annotations

import asyncio
from typing import Any

from geomill.domain.engine.message import TaskMessage
from geomill.domain.engine.stage_job import StageStatus
from geomill.domain.engine.task import TaskReport
from geomill.domain.ids import new_id
from geomill.domain.jsonvalue import to_json
from geomill.queues.postgres import lease
from geomill.store import inbox
from geomill.store.inbox import Settlement
from tests.integration.stages.conftest import StagePlatform

TASKS = 2_000


async def advances(platform: StagePlatform) -> list[dict[str, Any]]:
    """How often each step between stages was sent, and how often it ended."""
    return await platform.rows("""
        SELECT node_id, count(*) FILTER (WHERE event_type = 'node_dispatched') AS sent,
               count(*) FILTER (WHERE event_type = 'node_completed') AS ended
        FROM dagapp.dag_job_events WHERE node_id LIKE 'stage%' AND item_index = -1 GROUP BY 1 ORDER BY 1""")


async def test_two_thousand_tasks_on_three_workers_advance_each_stage_once(make_stages) -> None:
    platform: StagePlatform = make_stages()
    platform.orchestrator()
    platform.orchestrator()
    for _ in range(3):
        platform.worker(concurrency=200)
    view = await platform.complete("wide", {"widths": [TASKS, TASKS]})
    assert view.latest.status is StageStatus.COMPLETED, view.latest.error
    assert view.result == {
        "stage_1": {"sum": TASKS, "tasks": TASKS, "failed": []},
        "stage_2": {"sum": TASKS * (TASKS + 1), "tasks": TASKS, "failed": []},
    }
    for row in await advances(platform):
        assert row["ended"] == 1, row
        assert row["sent"] == (0 if row["node_id"].endswith("results") else 1), row
    assert await platform.rows("SELECT 1 FROM dagapp.dag_job_events WHERE event_type = 'result_stale'") == []


async def test_all_results_reported_in_one_moment_advance_once(make_stages) -> None:
    """Without workers of ours: ten sessions hold all tasks of a stage and report them together, on one signal."""
    platform: StagePlatform = make_stages()
    platform.orchestrator()
    order = await platform.order("wide", {"widths": [TASKS, 1]})
    await _report_together(platform, 1, sessions=1, output={"tasks": [{}] * TASKS, "indexes": None, "total": TASKS})
    await _report_together(platform, TASKS, sessions=10, output={"value": 1})
    async with asyncio.timeout(20):
        while not await platform.rows(  # noqa: ASYNC110
            "SELECT 1 FROM dagapp.dag_queue WHERE body ->> 'node_id' = 'stage1_aggregate'"
        ):
            await asyncio.sleep(0.02)
    (aggregate,) = await platform.rows("SELECT body #> '{params,tasks}' AS tasks FROM dagapp.dag_queue")
    assert aggregate["tasks"] == {"node_id": "stage1_tasks", "total": TASKS, "completed": TASKS, "indexes": None}
    view = await platform.view(order.run.job_id)
    assert (view.stage, view.stages[0].completed) == (1, TASKS)


async def _report_together(platform: StagePlatform, count: int, *, sessions: int, output: Any) -> None:
    waiting = "SELECT 1 FROM dagapp.dag_queue WHERE lease_token IS NULL AND queue_name = 'functionapp-tasks'"
    async with asyncio.timeout(20):
        while len(await platform.rows(waiting)) < count:  # noqa: ASYNC110
            await asyncio.sleep(0.02)
    leased = []
    for _ in range(sessions):
        worker_id = f"worker-{new_id()}"
        async with platform.pool.connection() as conn:
            deliveries = (await lease(conn, {"functionapp-tasks": count // sessions}, worker_id)).deliveries
        leased.append((worker_id, deliveries))
    assert sum(len(deliveries) for _, deliveries in leased) == count
    go = asyncio.Event()

    async def report(worker_id: str, deliveries: list[Any]) -> None:
        settlements = [
            Settlement(
                sequence=delivery.sequence,
                lease_token=delivery.lease_token,
                message=TaskMessage.received(delivery.body),
                report=TaskReport.COMPLETED,
                started_at=delivery.started_at,
                output=to_json(output),
                error=None,
                error_code=None,
                retryable=True,
                metrics="{}",
            )
            for delivery in deliveries
        ]
        async with platform.pool.connection() as conn:
            await go.wait()
            await inbox.settle(conn, worker_id, settlements)

    reports = [asyncio.create_task(report(*worker_deliveries)) for worker_deliveries in leased]
    await asyncio.sleep(0)
    go.set()
    await asyncio.gather(*reports)
