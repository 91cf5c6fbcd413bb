"""Commands of people to jobs, and the limits of time on jobs."""

from __future__ import annotations

import asyncio

import pytest

from geomill.domain.states import JobStatus
from geomill.engine import control
from geomill.errors import ConflictError, NotFoundError
from tests.integration.engine.conftest import MakePlatform
from tests.integration.engine.platform import EnginePlatform

SLOW = """
workflow_id: slow
name: Slow
nodes:
  START: {type: start, next: [first, each]}
  first: {type: task, handler: sleep, params: {duration_seconds: 0.3}, next: second}
  second: {type: task, handler: echo, params: {seen: "{{ nodes.first.output.slept_for }}"}, next: END}
  each:
    type: fan_out
    source: [1, 2, 3]
    task: {handler: sleep, params: {duration_seconds: 0.3}}
    max_parallel: 1
    next: END
  END: {type: end}
"""

LIMITED = """
workflow_id: limited
name: Limited
timeout_seconds: 0.5
nodes:
  START: {type: start, next: work}
  work: {type: task, handler: sleep, params: {duration_seconds: 60}, next: END}
  END: {type: end}
"""

UNWANTED = """
workflow_id: unwanted
name: Unwanted
nodes:
  START: {type: start, next: work}
  work:
    type: task
    handler: echo
    queue: container-tasks
    dispatch_timeout_seconds: 0.3
    retry: {max_attempts: 2, backoff: none}
    next: END
  END: {type: end}
"""

PARTLY = """
workflow_id: partly
name: Partly
inputs: {fail_times: {type: integer}}
nodes:
  START: {type: start, next: [good, each]}
  good: {type: task, handler: hello_world, next: after}
  each:
    type: fan_out
    source: [0, 1, 5]
    task:
      handler: flaky_echo
      params: {fail_times: "{{ item }}", index: "{{ index }}"}
      retry: {max_attempts: 2, backoff: none}
    on_failure: continue
    next: all
  all: {type: fan_in, aggregation: count, next: gate}
  gate: {type: conditional, condition_field: "{{ nodes.each.output.failed }}", branches: [{condition: "> 5", next: no}, {default: true, next: bad}]}
  bad: {type: task, handler: flaky_echo, params: {fail_times: "{{ inputs.fail_times }}"}, retry: {max_attempts: 1}, next: after}
  no: {type: task, handler: echo, next: after}
  after: {type: task, handler: echo, params: {said: "{{ nodes.good.output.message }}"}, next: END}
  END: {type: end}
"""  # noqa: E501


async def act(platform: EnginePlatform, name: str, *arguments: str) -> None:
    async with platform.pool.connection() as conn:
        await getattr(control, name)(conn, *arguments)


async def test_cancel_while_it_runs(make_platform: MakePlatform) -> None:
    platform = make_platform(SLOW)
    platform.orchestrator()
    platform.worker()
    job_id = await platform.submit("slow")
    await platform.until(job_id, lambda job: job and job.status is JobStatus.RUNNING)
    await act(platform, "cancel", "dag-jobs", job_id, "no longer needed")
    job = await platform.ended(job_id)
    assert (job.status, job.error_message) == (JobStatus.CANCELLED, "no longer needed")
    statuses = await platform.statuses(job_id)
    assert set(statuses.values()) <= {"completed", "cancelled", "skipped"}
    assert await platform.rows("SELECT 1 FROM dagapp.dag_queue") == []
    with pytest.raises(ConflictError, match="already ended"):
        await act(platform, "cancel", "dag-jobs", job_id, "again")


async def test_cancel_before_anybody_claimed_it(make_platform: MakePlatform) -> None:
    platform = make_platform(SLOW)
    job_id = await platform.submit("slow")
    await act(platform, "cancel", "dag-jobs", job_id, "a mistake")
    platform.orchestrator()
    job = await platform.ended(job_id)
    assert job.status is JobStatus.CANCELLED
    assert await platform.rows("SELECT 1 FROM dagapp.dag_queue") == []
    with pytest.raises(NotFoundError):
        await act(platform, "pause", "nobody")


async def test_pause_and_resume(make_platform: MakePlatform) -> None:
    platform = make_platform(SLOW)
    platform.orchestrator()
    platform.worker()
    job_id = await platform.submit("slow")
    await platform.until(job_id, lambda job: job and job.status is JobStatus.RUNNING)
    await act(platform, "pause", job_id)
    await platform.until(job_id, lambda job: job.paused_at is not None)
    async with asyncio.timeout(10):
        while await platform.rows("SELECT 1 FROM dagapp.dag_queue UNION ALL SELECT 1 FROM dagapp.dag_inbox"):  # noqa: ASYNC110
            await asyncio.sleep(0.02)
    statuses = await platform.statuses(job_id)
    assert statuses["second"] == "ready"
    assert "each[2]" not in statuses
    await act(platform, "resume", job_id)
    job = await platform.ended(job_id)
    assert (job.status, job.paused_at) == (JobStatus.COMPLETED, None)
    history = await platform.history(job_id)
    assert history.index("job_paused") < history.index("job_resumed")


async def test_the_pause_outlives_its_owner(make_platform: MakePlatform) -> None:
    platform = make_platform(SLOW)
    first = platform.orchestrator()
    job_id = await platform.submit("slow")
    await platform.until(job_id, lambda job: job is not None)
    await act(platform, "pause", job_id)
    await platform.until(job_id, lambda job: job.paused_at is not None)
    await platform.crash(first)
    platform.orchestrator(scan_seconds=0.05)
    platform.worker()
    await platform.until(job_id, lambda job: job.owner_epoch == 2)
    async with asyncio.timeout(10):
        while (await platform.statuses(job_id))["second"] != "ready":  # noqa: ASYNC110
            await asyncio.sleep(0.02)
    await act(platform, "resume", job_id)
    assert (await platform.ended(job_id)).status is JobStatus.COMPLETED


async def test_retry_reruns_what_failed_and_keeps_what_completed(make_platform: MakePlatform) -> None:
    platform = make_platform(PARTLY)
    platform.orchestrator(scan_seconds=0.05)
    platform.worker()
    job = await platform.run("partly", {"fail_times": 1})
    assert job.status is JobStatus.FAILED
    before = await platform.rows("SELECT task_id FROM dagapp.dag_task_results WHERE node_id IN ('good', 'each')")
    await act(platform, "retry", job.job_id)
    again = await platform.until(job.job_id, lambda job: job.run_number == 2 and job.completed_at)
    assert again.status is JobStatus.FAILED  # its one attempt of this run failed as well: retry_count starts anew
    await platform.rows("UPDATE dagapp.dag_jobs SET input_params = '{\"fail_times\": 0}' RETURNING 1 AS one")
    await act(platform, "retry", job.job_id)
    final = await platform.until(job.job_id, lambda job: job.run_number == 3 and job.completed_at)
    assert final.status is JobStatus.COMPLETED
    assert final.result_data["after"]["echoed_params"] == {"said": "Hello, World!"}
    after = await platform.rows("SELECT task_id FROM dagapp.dag_task_results WHERE node_id = 'good'")
    assert len(after) == 1
    assert {row["task_id"] for row in after} <= {row["task_id"] for row in before}
    assert (await platform.statuses(job.job_id))["no"] == "skipped"
    with pytest.raises(ConflictError, match="completed"):
        await act(platform, "retry", job.job_id)


async def test_a_job_ends_at_its_deadline(make_platform: MakePlatform) -> None:
    platform = make_platform(LIMITED)
    platform.orchestrator(scan_seconds=0.1)
    platform.worker()
    job = await platform.run("limited")
    assert job.status is JobStatus.FAILED
    assert job.error_message == "the job did not end within timeout_seconds (0.5 s)"
    assert (await platform.statuses(job.job_id))["work"] == "cancelled"


async def test_a_task_that_nobody_takes_fails_by_its_dispatch_timeout(make_platform: MakePlatform) -> None:
    platform = make_platform(UNWANTED)
    platform.orchestrator(scan_seconds=0.1)
    platform.worker(queues=("functionapp-tasks",))
    job = await platform.run("unwanted")
    assert job.status is JobStatus.FAILED
    assert "dispatch_timeout_seconds" in (job.error_message or "")
    results = await platform.rows("SELECT attempt, error_code FROM dagapp.dag_task_results ORDER BY attempt")
    assert [(row["attempt"], row["error_code"]) for row in results] == [
        (1, "dispatch_timeout"),
        (2, "dispatch_timeout"),
    ]


async def test_a_task_that_takes_down_its_workers_is_given_up(make_platform: MakePlatform) -> None:
    once = "next: END, retry: {max_attempts: 1}}"
    platform = make_platform(LIMITED.replace("timeout_seconds: 0.5\n", "").replace("next: END}", once))
    platform.orchestrator(scan_seconds=0.05, max_deliveries=2)
    job_id = await platform.submit("limited")
    for delivery in (1, 2):
        worker = platform.worker()
        async with asyncio.timeout(10):
            query = f"SELECT 1 FROM dagapp.dag_queue WHERE lease_token = {delivery}"
            while not await platform.rows(query):  # noqa: ASYNC110
                await asyncio.sleep(0.02)
        await platform.crash(worker)
    job = await platform.ended(job_id)
    assert "its worker was lost 2 times" in (job.error_message or "")


async def test_submissions_are_shared_among_equals(make_platform: MakePlatform) -> None:
    platform = make_platform(SLOW)
    orchestrators = [platform.orchestrator(claim_batch=5, scan_seconds=0.05) for _ in range(3)]
    async with asyncio.timeout(10):
        while {orchestrator._share.peers for orchestrator in orchestrators} != {3}:  # noqa: ASYNC110
            await asyncio.sleep(0.02)
    jobs = [await platform.submit("slow") for _ in range(60)]
    for job_id in jobs:
        await platform.until(job_id, lambda job: job is not None)
    async with asyncio.timeout(10):
        while sum(orchestrator.owned for orchestrator in orchestrators) < 60:  # noqa: ASYNC110  a job is in the database a little earlier
            await asyncio.sleep(0.01)
    owned = [orchestrator.owned for orchestrator in orchestrators]
    assert sum(owned) == 60
    assert min(owned) > 0
    assert max(owned) <= 2.25 * 20, "on a busy machine one of them may not run for a while, and nobody waits for it"


async def test_what_is_urgent_is_claimed_first(make_platform: MakePlatform) -> None:
    platform = make_platform(SLOW)
    jobs = [await platform.submit("slow", priority=number % 2 * 5) for number in range(40)]
    platform.orchestrator(claim_batch=5)
    for job_id in jobs:
        await platform.until(job_id, lambda job: job is not None)
    first = await platform.rows("SELECT priority FROM dagapp.dag_jobs ORDER BY created_at, job_id LIMIT 20")
    assert {row["priority"] for row in first} == {5}


async def _refuse(platform: EnginePlatform, what: str) -> None:
    """Make the database refuse the completion of matching nodes or items."""
    async with platform.pool.connection() as conn:
        await conn.execute(
            "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS"
            " $$ BEGIN RAISE 'no' USING ERRCODE = '23514'; END $$"
        )
        await conn.execute(
            "CREATE TRIGGER refuse BEFORE INSERT OR UPDATE ON dagapp.dag_node_states FOR EACH ROW"
            f" WHEN (NEW.status = 'completed' AND {what}) EXECUTE FUNCTION refuse()"
        )


async def test_a_job_that_the_database_refuses_ends_and_the_others_go_on(make_platform: MakePlatform) -> None:
    platform = make_platform(SLOW)
    platform.orchestrator()
    good, bad = await platform.submit("slow"), await platform.submit("slow")
    await platform.until(bad, lambda job: job is not None)
    await _refuse(platform, f"NEW.job_id = '{bad}'")
    platform.worker()
    assert (await platform.ended(good)).status is JobStatus.COMPLETED
    ended = await platform.ended(bad)
    assert ended.status is JobStatus.FAILED
    assert (ended.error_message or "").startswith("internal error: see the log")


async def test_items_of_a_refused_job_are_cancelled_and_run_again_when_it_is_retried(
    make_platform: MakePlatform,
) -> None:
    """Items have no rows before they end. Those of the refused job get rows, so that a retry finds them."""
    platform = make_platform(PARTLY.replace("[0, 1, 5]", "[0, 0, 0]"))
    await _refuse(platform, "NEW.item_index >= 0")
    platform.orchestrator()
    platform.worker()
    job_id = await platform.submit("partly", {"fail_times": 0})
    assert (await platform.ended(job_id)).status is JobStatus.FAILED
    items = "SELECT status::text FROM dagapp.dag_node_states WHERE item_index >= 0"
    assert await platform.rows(items) == [{"status": "cancelled"}] * 3
    async with platform.pool.connection() as conn:
        await conn.execute("DROP TRIGGER refuse ON dagapp.dag_node_states")
        await control.retry(conn, job_id)
    assert (await platform.ended(job_id)).status is JobStatus.COMPLETED
    assert await platform.rows(items) == [{"status": "completed"}] * 3
