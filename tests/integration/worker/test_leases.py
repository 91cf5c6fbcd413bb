"""A lease guarantees one attempt at a time and one result, and nothing can block a queue."""

from __future__ import annotations

import asyncio
import json

import pytest

from geomill.domain.jsonvalue import to_json
from geomill.domain.states import JobStatus
from geomill.queues import postgres as queue
from geomill.queues.postgres import Outgoing
from tests.integration.worker.conftest import TaskBench
from tests.integration.worker.test_cancellation import running
from tests.integration.worker.waiting import until, until_rows


async def test_a_task_longer_than_its_lease_runs_once(bench: TaskBench) -> None:
    for _ in range(2):
        bench.worker(lease_seconds=0.9, check_seconds=0.1, poll_seconds=0.1)
    job = await bench.try_out("nap", {"seconds": 2.5})
    assert job.status is JobStatus.COMPLETED
    assert [row["attempt"] for row in await bench.attempts()] == [1]
    events = await bench.history(job.job_id)
    assert events.count("node_dispatched") == 1


async def test_who_lost_the_lease_stops_and_says_nothing(bench: TaskBench) -> None:
    worker = bench.worker(processes=1)
    await running(bench, "polite", steps=1000)
    await bench.rows("UPDATE dagapp.dag_queue SET lease_token = 99, leased_by = 'other' RETURNING 1 AS one")
    await until(lambda: not worker._slots, 3)
    await asyncio.sleep(0.2)
    assert await bench.attempts() == []
    assert await bench.rows("SELECT lease_token FROM dagapp.dag_queue") == [{"lease_token": 99}]
    assert await bench.rows("SELECT 1 FROM dagapp.dag_checkpoints") == []


async def test_a_result_under_an_old_token_changes_nothing(bench: TaskBench) -> None:
    worker = bench.worker(check_seconds=60, running_after_seconds=60)
    bench.offer("nap", {"seconds": 0.5})
    await bench.submit("nap")
    await until(lambda: worker._slots)
    await bench.rows("UPDATE dagapp.dag_queue SET lease_token = 99 RETURNING 1 AS one")
    await until(lambda: not worker._slots and not worker._exchange.ended)
    assert await bench.attempts() == []


async def test_a_lease_that_the_server_forgot_in_a_crash_is_taken_again(bench: TaskBench) -> None:
    """The worker that still runs the task leases it again. The handler continues and its result counts."""
    worker = bench.worker(check_seconds=60, running_after_seconds=60, poll_seconds=0.1)
    bench.offer("nap", {"seconds": 0.5})
    job_id = await bench.submit("nap")
    await until(lambda: worker._slots)
    (first,) = worker._slots.values()
    await bench.rows(
        "UPDATE dagapp.dag_queue SET lease_token = NULL, leased_by = NULL, leased_until = NULL, delivery_count = 0"
        " RETURNING 1 AS one"
    )
    worker._shares.called()
    worker._poke()
    assert (await bench.ended(job_id)).status is JobStatus.COMPLETED
    await until(lambda: first.closed)
    assert not first.cancelled
    assert not worker._slots
    assert [row["attempt"] for row in await bench.attempts()] == [1]


async def test_a_worker_that_others_forgot_appears_again(bench: TaskBench) -> None:
    worker = bench.worker(beat_seconds=0.1, check_seconds=0.1)
    find = f"SELECT 1 AS one FROM dagapp.dag_instances WHERE instance_id = '{worker.instance_id}'"
    await until_rows(bench, find)
    await bench.rows(f"DELETE FROM dagapp.dag_instances WHERE instance_id = '{worker.instance_id}' RETURNING 1 AS one")
    await until_rows(bench, find)


WHOLE = {"task_id": "t", "job_id": "j", "node_id": "n", "handler": "h", "timeout_seconds": 1, "attempt": 2}


async def test_a_malformed_message_is_a_dead_letter_and_blocks_nobody(bench: TaskBench) -> None:
    bodies = [
        {"task_id": "x"},
        {"attempt": "abc", "item_index": "zero", "task_id": 1},
        {"attempt": 2, "item_index": 1e30, "job_id": "j", "node_id": "n"},
        {**WHOLE, "item_index": 1e30},
        {**WHOLE, "attempt": 2**63},
        [1, 2],
    ]
    messages = [Outgoing("functionapp-tasks", f"bad{n}", json.dumps(body), 10) for n, body in enumerate(bodies)]
    async with bench.pool.connection() as conn:
        await queue.send(conn, messages)
    bench.worker(concurrency=2)
    assert (await bench.try_out("hello_world")).status is JobStatus.COMPLETED
    letters = await bench.rows("SELECT message_id, reason, description FROM dagapp.dag_dead_letters ORDER BY 1")
    assert [row["message_id"] for row in letters] == [f"bad{n}" for n in range(6)]
    assert {row["reason"] for row in letters} == {"MalformedMessage"}
    assert "job_id: Field required" in letters[0]["description"]
    assert await bench.rows("SELECT 1 FROM dagapp.dag_queue") == []


async def test_a_result_that_the_database_refuses_fails_its_own_task_only(
    bench: TaskBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("geomill.sdk.execution.to_json", lambda value: "{" if "poison" in value else to_json(value))
    bench.offer("poison")
    bench.offer("hello_world")
    jobs = [await bench.submit(name) for name in ("hello_world", "poison", "hello_world")]
    await until_rows(bench, "SELECT 1 FROM dagapp.dag_queue WHERE queue_name <> 'dag-jobs' HAVING count(*) = 3")
    bench.worker()
    ended = [await bench.ended(job_id) for job_id in jobs]
    assert [job.status.value for job in ended] == ["completed", "failed", "completed"]
    assert "the database refuses the result" in (ended[1].error_message or "")


async def test_notes_that_the_database_refuses_are_dropped(bench: TaskBench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("geomill.worker.notes.checkpoint_text", lambda phase, data: "{")
    bench.worker()
    job = await bench.try_out("saves_inline")
    assert job.status is JobStatus.COMPLETED
    assert await bench.rows("SELECT 1 FROM dagapp.dag_checkpoints") == []


async def lease_of(bench: TaskBench, shares: dict[str, int]) -> dict[str, int]:
    async with bench.pool.connection() as conn:
        lease = await queue.lease(conn, shares, "me")
    return {name: sum(delivery.queue_name == name for delivery in lease.deliveries) for name in shares}


async def test_each_queue_gets_its_share_and_what_one_has_not_goes_to_the_others(bench: TaskBench) -> None:
    await fill(bench, a=20, b=20, c=1)
    assert await lease_of(bench, {"a": 3, "b": 1}) == {"a": 3, "b": 1}
    assert await lease_of(bench, {"a": 0, "b": 1}) == {"a": 0, "b": 1}
    assert await lease_of(bench, {"c": 6, "b": 2}) == {"c": 1, "b": 7}
    assert await lease_of(bench, {"c": 6, "b": 2, "a": 2}) == {"c": 0, "b": 5, "a": 5}
    assert await lease_of(bench, {"a": 50, "b": 50}) == {"a": 12, "b": 6}
    await fill(bench, d=1)
    assert await lease_of(bench, {"a": 1, "b": 0, "d": 0}) == {"a": 0, "b": 0, "d": 1}


async def test_a_queue_at_its_limit_is_not_taken_for_empty(bench: TaskBench) -> None:
    await fill(bench, a=1, b=20)
    async with bench.pool.connection() as conn:
        lease = await queue.lease(conn, {"a": 4, "b": 1, "c": 3}, "me", limits={"b": 2})
    assert sorted(delivery.message_id for delivery in lease.deliveries) == ["a0", "b0", "b1"]
    assert lease.empty == {"a", "c"}


async def fill(bench: TaskBench, **counts: int) -> None:
    async with bench.pool.connection() as conn:
        for name, count in counts.items():
            await queue.send(conn, [Outgoing(name, f"{name}{n}", "{}") for n in range(count)])


async def test_a_worker_that_comes_back_goes_on_and_is_not_charged(bench: TaskBench) -> None:
    """Others took it for dead: its row is gone, and its lease was given back. Nobody has leased the task since."""
    worker = bench.worker(beat_seconds=0.1, check_seconds=0.1, running_after_seconds=60)
    bench.offer("nap", {"seconds": 2})
    job_id = await bench.submit("nap")
    await until(lambda: worker._slots)
    worker._trial._suspect = next(iter(worker._slots.values()))  # so that it leases nothing
    await bench.rows(
        "WITH gone AS (DELETE FROM dagapp.dag_instances WHERE role = 'worker') UPDATE dagapp.dag_queue"
        " SET lease_token = NULL, leased_by = NULL, leased_until = NULL, started_at = NULL, losses = 1"
        " RETURNING 1 AS one"
    )
    await until_rows(bench, "SELECT 1 FROM dagapp.dag_queue WHERE lease_token = 1 AND losses = 0")
    await until_rows(bench, f"SELECT 1 FROM dagapp.dag_instances WHERE instance_id = '{worker.instance_id}'")
    assert (await bench.ended(job_id)).status is JobStatus.COMPLETED
    assert [row["attempt"] for row in await bench.attempts()] == [1]
    assert not worker._trial.is_under_way
