"""The same request is the same job; after a failure or a cancellation it is a new attempt at it."""

from __future__ import annotations

import asyncio

import pytest

from geomill.domain.engine.stage_job import StageStatus
from geomill.domain.states import JobStatus
from geomill.engine import control
from geomill.errors import ConflictError
from geomill.workflows.registry import WorkflowRegistry
from tests.integration.stages.conftest import QUEUE, StagePlatform

SLOW = {"widths": [1, 1, 1], "seconds": 5.0}


async def stop(platform: StagePlatform, run_id: str) -> None:
    async with platform.pool.connection() as conn:
        await control.cancel(conn, QUEUE, run_id, "enough")


async def test_while_it_waits(make_stages) -> None:
    platform: StagePlatform = make_stages()
    first = await platform.order("counting")
    again = await platform.order("counting")
    assert (first.is_new, again.is_new) == (True, False)
    assert again.run == first.run
    assert again.status is StageStatus.QUEUED
    assert len(await platform.rows("SELECT 1 FROM dagapp.dag_queue")) == 1


async def test_while_it_runs(platform: StagePlatform) -> None:
    first = await platform.order("counting", SLOW)
    await platform.until(first.run.run_id, lambda job: job is not None and job.status is JobStatus.RUNNING)
    again = await platform.order("counting", SLOW)
    assert (again.run, again.status, again.is_new) == (first.run, StageStatus.PROCESSING, False)
    await stop(platform, first.run.run_id)


async def test_after_it_has_completed(platform: StagePlatform) -> None:
    first = await platform.order("counting")
    await platform.ended(first.run.run_id)
    again = await platform.order("counting", {"widths": [2, 3, 1], "seconds": 0})  # its defaults, written out
    assert (again.run, again.status, again.is_new) == (first.run, StageStatus.COMPLETED, False)
    other = await platform.order("counting", {"note": "another"})
    assert other.run.job_id != first.run.job_id
    assert (await platform.order("wide", {"widths": [2, 3, 1]})).run.job_id != first.run.job_id


async def test_after_it_has_failed(platform: StagePlatform) -> None:
    parameters = {"fail_stage": 2}
    first = await platform.order("counting", parameters)
    await platform.ended(first.run.run_id)
    again = await platform.order("counting", parameters)
    assert (again.is_new, again.run.attempt, again.run.job_id) == (True, 2, first.run.job_id)
    await platform.ended(again.run.run_id)
    view = await platform.view(first.run.job_id)
    assert [attempt.run.run_id for attempt in view.attempts] == [again.run.run_id, first.run.run_id]
    assert [attempt.status for attempt in view.attempts] == [StageStatus.FAILED] * 2
    for run in (first.run, again.run):  # from the first stage on, and each with its own history
        assert (await platform.statuses(run.run_id))["stage1_tasks[0]"] == "completed"
        assert (await platform.history(run.run_id))[-1] == "job_failed"


async def test_after_it_was_cancelled_running_or_waiting(platform: StagePlatform, make_stages) -> None:
    first = await platform.order("counting", SLOW)
    await platform.until(first.run.run_id, lambda job: job is not None and job.status is JobStatus.RUNNING)
    await stop(platform, first.run.run_id)
    await platform.ended(first.run.run_id)
    assert (await platform.view(first.run.job_id)).latest.status is StageStatus.FAILED
    second = await platform.order("counting", SLOW)
    assert (second.is_new, second.run.attempt) == (True, 2)
    await platform.until(second.run.run_id, lambda job: job is not None)
    await stop(platform, second.run.run_id)
    await platform.ended(second.run.run_id)
    await platform.shutdown()
    third = await platform.order("counting", SLOW)
    await stop(platform, third.run.run_id)  # nobody has claimed it
    fourth = await platform.order("counting", SLOW)
    assert (third.run.attempt, fourth.run.attempt, fourth.is_new) == (3, 4, True)


async def test_after_its_submission_was_given_up(make_stages) -> None:
    platform: StagePlatform = make_stages()
    first = await platform.order("counting")
    await platform.rows("DELETE FROM dagapp.dag_queue RETURNING 1 AS gone")
    view = await platform.view(first.run.job_id)
    assert view.latest.status is StageStatus.FAILED
    assert "given up" in (view.latest.error or "")
    assert (await platform.order("counting")).run.attempt == 2


async def test_after_an_orchestrator_that_does_not_know_its_type(make_stages) -> None:
    """The submission waits for an orchestrator that knows the type. Meanwhile the same request is the same attempt."""
    platform: StagePlatform = make_stages()
    first, workflow_registry = await platform.order("counting"), platform.workflow_registry
    platform.workflow_registry = WorkflowRegistry([])
    platform.orchestrator()
    await platform.rows_soon("SELECT 1 FROM dagapp.dag_queue WHERE queue_name = 'dag-jobs.unknown'")
    platform.workflow_registry = workflow_registry
    assert (await platform.view(first.run.job_id)).latest.status is StageStatus.QUEUED
    assert (await platform.order("counting")).run.attempt == 1
    platform.orchestrator()
    platform.worker()
    assert (await platform.ended(first.run.run_id)).status is JobStatus.COMPLETED


async def test_a_retry_of_the_attempt_goes_on_where_it_failed(platform: StagePlatform) -> None:
    first = await platform.order("counting", {"raise_in": "plan 2"})
    await platform.ended(first.run.run_id)
    async with platform.pool.connection() as conn:
        await control.retry(conn, first.run.run_id)
    await platform.ended(first.run.run_id)
    view = await platform.view(first.run.job_id)
    assert len(view.attempts) == 1
    results = await platform.rows("SELECT 1 FROM dagapp.dag_task_results WHERE node_id = 'stage1_tasks'")
    assert len(results) == 2


async def test_an_attempt_that_another_has_replaced_is_not_retried(platform: StagePlatform) -> None:
    first = await platform.order("counting", {"fail_stage": 1})
    await platform.ended(first.run.run_id)
    second = await platform.order("counting", {"fail_stage": 1})
    async with platform.pool.connection() as conn:
        with pytest.raises(ConflictError, match="a later attempt has replaced"):
            await control.retry(conn, first.run.run_id)
    await platform.ended(second.run.run_id)


async def test_a_retry_and_a_submission_at_once_are_one_run(platform: StagePlatform) -> None:
    """The first to lock the attempt's row decides. The other sees its decision."""
    for note in map(str, range(5)):
        first = await platform.order("counting", {"fail_stage": 1, "note": note})
        await platform.ended(first.run.run_id)

        async def retry(run_id: str) -> bool:
            async with platform.pool.connection() as conn:
                try:
                    await control.retry(conn, run_id)
                except ConflictError:
                    return False
            return True

        retried, again = await asyncio.gather(
            retry(first.run.run_id), platform.order("counting", {"fail_stage": 1, "note": note})
        )
        if retried and again.is_new:  # it was retried, ran, and failed again before the submission looked
            assert (await platform.history(first.run.run_id)).count("job_failed") == 2
        else:
            assert retried is not again.is_new
        await platform.ended(again.run.run_id)


@pytest.mark.parametrize("before", ["nothing", "a failure"])
async def test_twenty_at_once_are_one_attempt(make_stages, before: str) -> None:
    platform: StagePlatform = make_stages()
    if before == "a failure":
        first = await platform.order("counting")
        await stop(platform, first.run.run_id)
    orders = await asyncio.gather(*(platform.order("counting") for _ in range(20)))
    assert sum(order.is_new for order in orders) == 1
    assert len({order.run.run_id for order in orders}) == 1
    assert len(await platform.rows("SELECT 1 FROM dagapp.dag_queue")) == 1
