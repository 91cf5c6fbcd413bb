"""Calls at the end of jobs, to a real server on loopback."""

from __future__ import annotations

import asyncio
import json

from geomill.domain.engine.callback import CallbackStatus, sign
from geomill.domain.states import JobStatus
from geomill.store.duties import Duties
from tests.integration.engine.conftest import MakePlatform, make_platform
from tests.integration.maintenance.conftest import JobDatabase
from tests.integration.maintenance.receiver import (
    SECRET,
    MakeCaller,
    Receiver,
    call,
    make_caller,
    make_due,
    of_job,
    receiver,
)

__all__ = ["make_caller", "make_platform", "receiver"]


async def test_delivered_once_and_signed(db: JobDatabase, receiver: Receiver, make_caller: MakeCaller) -> None:
    job = await db.ended_job(receiver.url)
    caller = make_caller()
    assert await call(caller) == 1
    assert await call(caller) == 0
    (request,) = receiver.requests
    body = json.loads(request.body)
    assert body.pop("completed_at")
    assert body == {
        "job_id": job.job_id,
        "status": "failed",
        "workflow_id": "hello_world",
        "correlation_id": "mine",
        "error": "it went wrong",
        "result_url": f"https://geo.example/api/v1/jobs/{job.job_id}",
    }
    timestamp = int(request.headers["x-geomill-timestamp"])
    assert request.headers["x-geomill-signature"] == sign(SECRET, timestamp, request.body)
    assert request.headers["host"] == f"127.0.0.1:{receiver.port}"
    assert request.path == "/hook?key=1"
    row = await of_job(db, job.job_id)
    assert (row.status, row.attempts, row.last_error) == (CallbackStatus.DELIVERED, 1, None)
    assert request.headers["x-geomill-delivery"] == row.delivery_id
    (event,) = await db.events(job.job_id)
    assert (event["event_type"], event["event_status"]) == ("callback_delivered", "success")


async def test_without_a_secret_it_is_not_signed(db: JobDatabase, receiver: Receiver, make_caller: MakeCaller) -> None:
    await db.ended_job(receiver.url)
    await call(make_caller(secret=None))
    assert "x-geomill-signature" not in receiver.requests[0].headers


async def test_jobs_without_a_url_and_jobs_under_way_call_nobody(db: JobDatabase, make_caller: MakeCaller) -> None:
    await db.ended_job(None)
    assert await call(make_caller()) == 0


async def test_a_500_is_tried_again_with_the_same_id(
    db: JobDatabase, receiver: Receiver, make_caller: MakeCaller
) -> None:
    receiver.statuses = [500, 503, 200]
    job = await db.ended_job(receiver.url)
    caller = make_caller()
    await call(caller)
    row = await of_job(db, job.job_id)
    assert (row.status, row.attempts, row.last_error) == (CallbackStatus.PENDING, 1, "the status was 500")
    assert await call(caller) == 0, "not due yet"
    for _ in range(2):
        await make_due(db)
        assert await call(caller) == 1
    assert (await of_job(db, job.job_id)).status is CallbackStatus.DELIVERED
    assert len({request.headers["x-geomill-delivery"] for request in receiver.requests}) == 1
    kinds = [event["event_type"] for event in await db.events(job.job_id)]
    assert kinds == ["callback_failed", "callback_failed", "callback_delivered"]


async def test_no_connection_is_tried_again(db: JobDatabase, make_caller: MakeCaller) -> None:
    server = await asyncio.start_server(lambda *_: None, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    server.close()
    await server.wait_closed()
    job = await db.ended_job(f"http://127.0.0.1:{port}/")
    await call(make_caller())
    row = await of_job(db, job.job_id)
    assert row.status is CallbackStatus.PENDING
    assert row.last_error.startswith("no connection to 127.0.0.1")


async def test_a_host_that_is_not_found_is_tried_again(db: JobDatabase, make_caller: MakeCaller) -> None:
    job = await db.ended_job("http://nowhere.invalid/")
    await call(make_caller())
    row = await of_job(db, job.job_id)
    assert row.status is CallbackStatus.PENDING
    assert "'nowhere.invalid' cannot be resolved" in row.last_error


async def test_after_a_day_it_is_given_up(db: JobDatabase, receiver: Receiver, make_caller: MakeCaller) -> None:
    receiver.statuses = [500]
    job = await db.ended_job(receiver.url)
    caller = make_caller()
    await call(caller)
    await db.rows("UPDATE dagapp.dag_callbacks SET due_at = now(), created_at = now() - interval '24 hours'")
    await call(caller)
    row = await of_job(db, job.job_id)
    assert (row.status, row.attempts) == (CallbackStatus.GIVEN_UP, 2)
    assert (await db.events(job.job_id))[-1]["event_data"]["given_up"] is True
    await db.rows("UPDATE dagapp.dag_callbacks SET due_at = now()")
    assert await call(caller) == 0


async def test_who_does_not_answer_is_given_time_and_no_more(
    db: JobDatabase, receiver: Receiver, make_caller: MakeCaller
) -> None:
    receiver.hold = asyncio.Event()
    job = await db.ended_job(receiver.url)
    await call(make_caller(timeout_seconds=0.2))
    assert (await of_job(db, job.job_id)).last_error == "no response within 0.2 s"
    receiver.hold.set()


async def test_while_one_calls_nobody_else_does(db: JobDatabase, receiver: Receiver, make_caller: MakeCaller) -> None:
    receiver.hold = asyncio.Event()
    await db.ended_job(receiver.url)
    first, second = make_caller(), make_caller()
    assert await first.run_once() == 1
    await receiver.arrived.wait()
    assert await call(second) == 0
    receiver.hold.set()
    await first.idle()
    assert len(receiver.requests) == 1


async def test_whoever_dies_while_calling_is_replaced(
    db: JobDatabase, receiver: Receiver, make_caller: MakeCaller
) -> None:
    receiver.hold = asyncio.Event()
    job = await db.ended_job(receiver.url)
    first, second = make_caller(), make_caller()
    await first.run_once()
    await receiver.arrived.wait()
    await first.stop()
    receiver.hold.set()
    await make_due(db)  # the lease is over
    assert await call(second) == 1
    row = await of_job(db, job.job_id)
    assert (row.status, row.attempts) == (CallbackStatus.DELIVERED, 2)


async def test_a_late_attempt_changes_nothing(db: JobDatabase, receiver: Receiver, make_caller: MakeCaller) -> None:
    receiver.hold = asyncio.Event()
    receiver.statuses = [500]
    job = await db.ended_job(receiver.url)
    caller = make_caller()
    await caller.run_once()
    await receiver.arrived.wait()
    await db.rows("UPDATE dagapp.dag_callbacks SET attempts = 2, status = 'delivered', ended_at = now()")
    receiver.hold.set()
    await caller.idle()
    assert (await of_job(db, job.job_id)).status is CallbackStatus.DELIVERED
    assert await db.events(job.job_id) == []


async def test_at_most_so_many_at_once_and_many_callers_call_once_each(
    db: JobDatabase, receiver: Receiver, make_caller: MakeCaller
) -> None:
    jobs = [await db.ended_job(receiver.url) for _ in range(12)]
    caller = make_caller(concurrency=3)
    assert await caller.run_once() == 3
    await caller.idle()
    callers = [make_caller(concurrency=4) for _ in range(4)]
    for _ in range(3):
        await asyncio.gather(*map(call, callers))
    job_ids = [json.loads(request.body)["job_id"] for request in receiver.requests]
    assert sorted(job_ids) == sorted(job.job_id for job in jobs)


async def test_each_run_of_a_job_is_told(db: JobDatabase, receiver: Receiver, make_caller: MakeCaller) -> None:
    job = await db.ended_job(receiver.url)
    caller = make_caller()
    await call(caller)
    await db.rows("INSERT INTO dagapp.dag_definitions VALUES ('h', 'hello_world', 1, '{}')")
    await db.rows("UPDATE dagapp.dag_jobs SET status = 'running', completed_at = NULL, definition_hash = 'h', "
                  "run_number = 2")  # fmt: skip
    assert await call(caller) == 0
    await db.rows("UPDATE dagapp.dag_jobs SET status = 'completed', completed_at = now(), error_message = NULL")
    assert await call(caller) == 1
    assert [json.loads(request.body)["status"] for request in receiver.requests] == ["failed", "completed"]
    assert len({request.headers["x-geomill-delivery"] for request in receiver.requests}) == 2
    assert (await of_job(db, job.job_id)).run_number == 2


async def test_the_duty_calls_when_it_is_woken(db: JobDatabase, receiver: Receiver, make_caller: MakeCaller) -> None:
    caller = make_caller(concurrency=1)
    duty = asyncio.create_task(caller.run())
    for _ in range(3):
        await db.ended_job(receiver.url)
    caller.wake()
    async with asyncio.timeout(10):
        while len(receiver.requests) < 3:
            receiver.arrived.clear()
            await receiver.arrived.wait()
    duty.cancel()
    await asyncio.gather(duty, return_exceptions=True)


async def test_a_killed_platform_leaves_the_call_to_the_next(
    make_platform: MakePlatform, db: JobDatabase, receiver: Receiver, make_caller: MakeCaller
) -> None:
    platform = make_platform()
    orchestrator = platform.orchestrator()
    platform.worker()
    job = await platform.run("hello_world", callback_url=receiver.url)
    await platform.crash(orchestrator)
    await call(make_caller())
    (request,) = [received for received in receiver.requests if json.loads(received.body)["job_id"] == job.job_id]
    assert json.loads(request.body)["status"] == JobStatus.COMPLETED.value


async def test_looking_for_ended_jobs_costs_nothing_when_there_are_none(db: JobDatabase) -> None:
    await db.rows(
        "INSERT INTO dagapp.dag_jobs (job_id, workflow_id, status, completed_at, callback_url, called_back_run) "
        "SELECT n::text, 'w', 'failed', now(), 'http://x', 1 FROM generate_series(1, 5000) AS n"
    )
    await db.rows("ANALYZE dagapp.dag_jobs")
    query = (
        "EXPLAIN SELECT FROM dagapp.dag_jobs "
        "WHERE callback_url IS NOT NULL AND completed_at IS NOT NULL AND called_back_run < run_number"
    )
    plan = await db.rows(query)
    assert any("idx_dag_jobs_callback" in row["QUERY PLAN"] for row in plan)


async def test_a_database_that_is_away_ends_neither_duty_nor_call(
    db: JobDatabase, receiver: Receiver, make_caller: MakeCaller
) -> None:
    await db.ended_job(receiver.url)
    caller = make_caller()
    caller.duties = Duties("orch-1")
    await db.rows("ALTER TABLE dagapp.dag_callbacks RENAME TO away")
    duty = asyncio.create_task(caller.run())
    caller.wake()
    async with asyncio.timeout(10):
        while not caller.duties._troubles:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
    await db.rows("ALTER TABLE dagapp.away RENAME TO dag_callbacks")
    caller.wake()
    async with asyncio.timeout(10):
        await receiver.arrived.wait()
    assert not duty.done()
    assert not caller.duties._troubles["callbacks"].failing
    duty.cancel()
    await asyncio.gather(duty, return_exceptions=True)
