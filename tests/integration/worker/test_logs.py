"""The log lines of handlers can be read by job, and nobody can fill the database with them."""

from __future__ import annotations

import logging

import pytest

from geomill.store import logs
from tests.integration.worker.conftest import TaskBench


@pytest.fixture(autouse=True)
def _quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    """Half a surrogate pair in a captured log is more than the test runner's own processes can pass on."""
    monkeypatch.setattr(logging.getLogger("geomill.handler"), "disabled", True)


async def lines(bench: TaskBench, job_id: str) -> list[tuple[str, str]]:
    async with bench.pool.connection() as conn:
        return [(line.level, line.message) for line in await logs.of_job(conn, job_id, node_id="work")]


@pytest.mark.parametrize("handler", ["talk", "talk_inline"])
async def test_lines_are_stored_in_order_before_the_job_ends(bench: TaskBench, handler: str) -> None:
    bench.worker(processes=1)
    job = await bench.try_out(handler, {"lines": 3, "width": 1000})
    assert await lines(bench, job.job_id) == [
        ("INFO", "line 0"), ("INFO", "line 1"), ("INFO", "line 2"), ("WARNING", "w" * 500),
    ]  # fmt: skip


@pytest.mark.parametrize("handler", ["talk", "talk_inline"])
async def test_no_more_than_two_hundred(bench: TaskBench, handler: str) -> None:
    bench.worker(processes=1)
    job = await bench.try_out(handler, {"lines": 1000})
    logged = await lines(bench, job.job_id)
    assert len(logged) == 200
    assert logged[-1][1] == "further lines are not kept"


async def test_the_traceback_of_a_failure_is_among_them(bench: TaskBench) -> None:
    bench.worker(processes=1)
    job = await bench.try_out("raise_inside")
    logged = await lines(bench, job.job_id)
    assert logged[0][0] == "ERROR"
    assert logged[0][1].startswith("the handler raised KeyError, reference ")
    assert logged[-1] == ("ERROR", "KeyError: 'the place where it broke'")


async def test_silence_costs_no_statement(bench: TaskBench, monkeypatch: pytest.MonkeyPatch) -> None:
    bench.worker()
    written = []

    async def insert(conn: object, writes: list[object]) -> None:
        written.extend(writes)

    monkeypatch.setattr(logs, "insert", insert)
    await bench.try_out("hello_world")
    assert written == []


@pytest.mark.parametrize("handler", ["prints", "prints_inline"])
async def test_what_a_handler_prints_is_among_them(bench: TaskBench, handler: str) -> None:
    bench.worker(processes=1)
    job = await bench.try_out(handler)
    assert await lines(bench, job.job_id) == [("INFO", "begun"), ("INFO", "from a thread"), ("INFO", "no end of line")]


async def test_a_checkpoint_is_an_event_once_in_a_while(bench: TaskBench) -> None:
    bench.worker()
    job = await bench.try_out("save_twice")
    events = await bench.rows(
        "SELECT node_id, checkpoint_name, event_data FROM dagapp.dag_job_events WHERE event_type = 'checkpoint_saved'"
    )
    assert job.status.value == "completed"
    (event,) = events
    assert (event["node_id"], event["checkpoint_name"]) == ("work", "first")
    assert event["event_data"]["attempt"] == 1
    assert event["event_data"]["worker"].startswith("work-")


async def test_events_of_a_task_tell_attempt_queue_worker_and_error_code(bench: TaskBench) -> None:
    worker = bench.worker(processes=1)
    job = await bench.try_out("raise_inside")
    events = await bench.rows(
        f"SELECT event_type, event_data FROM dagapp.dag_job_events WHERE job_id = '{job.job_id}' AND node_id = 'work'"
        " ORDER BY event_id"
    )
    data = {event["event_type"]: event["event_data"] for event in events}
    assert data["node_dispatched"]["attempt"] == 1
    assert data["node_dispatched"]["queue"]
    failed = data["node_failed"]
    assert failed["worker"] == worker.instance_id
    assert failed["error_code"]
    assert failed["queue"] == data["node_dispatched"]["queue"]
