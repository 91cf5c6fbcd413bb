"""Jobs through one orchestrator and one worker: what each kind of node leaves in the tables."""

from __future__ import annotations

import pytest

from geomill.domain.engine.message import JobQueueMessage
from geomill.domain.states import JobStatus
from geomill.errors import InputsError, NotFoundError
from geomill.queues import postgres as queue
from geomill.queues.postgres import Outgoing
from tests.integration.engine.conftest import MakePlatform

BRANCHES = """
workflow_id: branches
name: Branches
inputs: {size: {type: integer}}
nodes:
  START: {type: start, next: check}
  check: {type: task, handler: size_check, params: {size_bytes: "{{ inputs.size }}"}, next: route}
  route:
    type: conditional
    condition_field: "{{ nodes.check.output.route }}"
    branches:
      - {condition: "== 'light'", next: light}
      - {default: true, next: heavy}
  light: {type: task, handler: hello_world, params: {name: light}, next: join}
  heavy: {type: task, handler: hello_world, params: {name: heavy}, next: join}
  join:
    type: task
    handler: echo
    params: {said: "{{ nodes.light.output.message | default(nodes.heavy.output.message | default('')) }}"}
    next: END
  END: {type: end}
"""

FAN = """
workflow_id: fan
name: Fan
inputs: {items: {type: array}}
nodes:
  START: {type: start, next: each}
  each:
    type: fan_out
    source: "{{ inputs.items }}"
    task: {handler: chunk_processor, params: {chunk_id: "{{ index }}", chunk_data: "{{ item }}"}}
    next: all
  all: {type: fan_in, aggregation: collect, next: END}
  END: {type: end}
outputs:
  ids: "{{ nodes.all.output.results | map(attribute='chunk_id') | list }}"
  count: "{{ nodes.all.output.count }}"
"""

FAILING = """
workflow_id: failing
name: Failing
nodes:
  START: {type: start, next: [bad, slow]}
  bad:
    type: task
    handler: fail
    params: {error_message: no luck}
    retry: {max_attempts: 2, backoff: none}
    next: after
  slow: {type: task, handler: sleep, params: {duration_seconds: 30}, next: END}
  after: {type: task, handler: echo, next: END}
  END: {type: end}
"""


async def test_hello_world(make_platform: MakePlatform) -> None:
    platform = make_platform()
    platform.orchestrator()
    platform.worker()
    job = await platform.run("hello_world", {"name": "Ada"})
    assert job.status is JobStatus.COMPLETED
    assert job.result_data == {"message": "Hello, Ada!"}
    assert await platform.statuses(job.job_id) == dict.fromkeys(["START", "hello", "END"], "completed")
    assert await platform.history(job.job_id) == [
        "job_created", "job_started", "node_completed", "node_dispatched", "node_completed", "node_completed",
        "job_completed",
    ]  # fmt: skip
    assert await platform.rows("SELECT 1 FROM dagapp.dag_queue UNION ALL SELECT 1 FROM dagapp.dag_inbox") == []


@pytest.mark.parametrize(("size", "chosen", "skipped"), [(10, "light", "heavy"), (10**9, "heavy", "light")])
async def test_a_conditional_takes_one_branch_and_the_join_runs(
    make_platform: MakePlatform, size: int, chosen: str, skipped: str
) -> None:
    platform = make_platform(BRANCHES)
    platform.orchestrator()
    platform.worker()
    job = await platform.run("branches", {"size": size})
    statuses = await platform.statuses(job.job_id)
    assert (statuses[chosen], statuses[skipped], statuses["join"]) == ("completed", "skipped", "completed")
    assert job.result_data["join"]["echoed_params"] == {"said": f"Hello, {chosen}!"}


@pytest.mark.parametrize("count", [0, 1, 250])
async def test_a_fan_out_keeps_the_order_of_its_items(make_platform: MakePlatform, count: int) -> None:
    platform = make_platform(FAN)
    platform.orchestrator()
    platform.worker(concurrency=32)
    job = await platform.run("fan", {"items": [[0] * number for number in range(count)]})
    assert job.result_data == {"ids": list(range(count)), "count": count}


async def test_a_failure_is_retried_then_ends_the_job_and_cancels_what_runs(make_platform: MakePlatform) -> None:
    platform = make_platform(FAILING)
    platform.orchestrator()
    platform.worker()
    job = await platform.run("failing")
    assert job.status is JobStatus.FAILED
    assert job.error_message == "node 'bad' failed: no luck"
    assert job.failed_node_id == "bad"
    statuses = await platform.statuses(job.job_id)
    assert statuses == {
        "START": "completed", "bad": "failed", "slow": "cancelled", "after": "skipped", "END": "skipped",
    }  # fmt: skip
    results = await platform.rows("SELECT attempt, status, error_code FROM dagapp.dag_task_results ORDER BY attempt")
    assert [(row["attempt"], row["status"]) for row in results] == [(1, "failed"), (2, "failed")]
    assert await platform.rows("SELECT 1 FROM dagapp.dag_queue") == []


async def test_a_retry_waits_and_the_next_attempt_knows(make_platform: MakePlatform) -> None:
    platform = make_platform()
    platform.orchestrator()
    platform.worker(poll_seconds=0.1)
    job = await platform.run("retry_test", {"fail_times": 1})
    assert job.status is JobStatus.COMPLETED
    assert job.result_data["retries"] == 1
    assert "node_retried" in await platform.history(job.job_id)


async def test_the_same_key_gives_one_job(make_platform: MakePlatform) -> None:
    platform = make_platform()
    first = await platform.submit("hello_world", idempotency_key="once")
    second = await platform.submit("hello_world", idempotency_key="once")
    platform.orchestrator()
    platform.worker()
    await platform.ended(first)
    await platform.ended(await platform.submit("hello_world"))
    rows = await platform.rows("SELECT job_id FROM dagapp.dag_jobs ORDER BY created_at")
    assert first in {row["job_id"] for row in rows}
    assert second not in {row["job_id"] for row in rows}
    assert len(rows) == 2


async def test_what_is_refused_at_the_door_leaves_nothing(make_platform: MakePlatform) -> None:
    platform = make_platform()
    with pytest.raises(NotFoundError, match="did you mean 'hello_world'"):
        await platform.submit("helo_world")
    with pytest.raises(InputsError, match="name"):
        await platform.submit("hello_world", {"name": 5})
    assert await platform.rows("SELECT 1 FROM dagapp.dag_queue") == []


async def test_a_submission_that_names_no_possible_workflow_is_a_dead_letter_and_a_failed_job(
    make_platform: MakePlatform,
) -> None:
    here = make_platform(BRANCHES)
    message = JobQueueMessage(workflow_id="no name of one")
    job_id = message.job_id
    async with here.pool.connection() as conn:
        await queue.send(conn, [Outgoing("dag-jobs", job_id, message.model_dump_json())])
    here.orchestrator()
    job = await here.ended(job_id)
    assert job.status is JobStatus.FAILED
    assert "'no name of one' is not a valid workflow id" in (job.error_message or "")
    letters = await here.rows("SELECT reason, message_id FROM dagapp.dag_dead_letters")
    assert letters == [{"reason": "WorkflowNotFound", "message_id": job_id}]


async def test_jobs_are_pinned_to_the_definition_they_started_with(make_platform: MakePlatform) -> None:
    old, new = make_platform(FAN), make_platform(FAN.replace("name: Fan", "name: Fan two"))
    first = await old.submit("fan", {"items": [1]})
    old.orchestrator()
    await old.until(first, lambda job: job is not None)
    await old.shutdown()
    new.orchestrator()
    new.worker()
    second = await new.run("fan", {"items": [1]})
    job = await new.ended(first)
    assert job.definition_hash != second.definition_hash
    names = await new.rows("SELECT body ->> 'name' AS name FROM dagapp.dag_definitions ORDER BY 1")
    assert [row["name"] for row in names] == ["Fan", "Fan two"]
