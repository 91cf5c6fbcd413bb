"""Live log lines, lists, reviews and instances."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
from fastapi.sse import ServerSentEvent
from httpx import AsyncClient

from geomill.api import job_changes
from geomill.api.streams import Streams
from geomill.domain.states import JobStatus
from geomill.store.job_lists import JobFilter
from geomill.store.logs import LogFilter
from geomill.store.pool import Pool
from tests.integration.api.test_jobs import JOBS, submit, until
from tests.integration.api.test_stream import parse

LINES = """
INSERT INTO dagapp.dag_task_logs (job_id, node_id, item_index, attempt, level, message)
SELECT 'j', 'n' || n %% 2, n - 1, 1, CASE WHEN n %% 3 = 0 THEN 'ERROR' ELSE 'INFO' END, 'line ' || n
FROM generate_series(%s::integer, %s::integer) AS n
"""
INSERT_JOB = """
INSERT INTO dagapp.dag_jobs (job_id, workflow_id, status, started_at, completed_at)
VALUES (%s, %s, 'failed', now(), now())
"""
EVENT = "INSERT INTO dagapp.dag_job_events (job_id, event_type) VALUES (%s, 'job_failed')"


@pytest.fixture
async def ended(pool: Pool) -> None:
    async with pool.connection() as conn:
        await conn.execute(INSERT_JOB, ["j", "w"])
        await conn.execute(LINES, [1, 12])


async def test_log_lines_are_paged_and_filtered(ended: None, idle: AsyncClient) -> None:
    async def numbers(**filters: Any) -> list[int]:
        answer = await idle.get(f"{JOBS}/j/logs", params=filters)
        assert answer.status_code == 200, answer.text
        return [int(line["message"].removeprefix("line ")) for line in answer.json()["lines"]]

    assert await numbers() == list(range(1, 13))
    assert await numbers(level="ERROR") == [3, 6, 9, 12]
    assert await numbers(level="WARNING") == [3, 6, 9, 12]
    assert await numbers(node_id="n1") == [1, 3, 5, 7, 9, 11]
    assert await numbers(node_id="n1", level="ERROR") == [3, 9]
    assert await numbers(node_id="n1", item_index=4) == [5]
    assert await numbers(attempt=2) == []
    found, after, more = [], 0, True
    while more:
        page = (await idle.get(f"{JOBS}/j/logs", params={"limit": 5, "after": after})).json()
        found += [line["message"] for line in page["lines"]]
        after, more = page["next_after"], page["more"]
    assert found == [f"line {n}" for n in range(1, 13)]
    assert (await idle.get(f"{JOBS}/j/logs", params={"item_index": 4})).status_code == 422
    assert (await idle.get(f"{JOBS}/nobody/logs")).status_code == 404


async def test_a_page_of_rare_lines_is_short_and_goes_on(
    ended: None, idle: AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("geomill.store.logs.EXAMINED", 4)
    found, after, more, pages = [], 0, True, 0
    while more:
        options = {"limit": 2, "after": after, "level": "ERROR"}
        page = (await idle.get(f"{JOBS}/j/logs", params=options)).json()
        found += [line["message"] for line in page["lines"]]
        after, more, pages = page["next_after"], page["more"], pages + 1
    assert found == ["line 3", "line 6", "line 9", "line 12"]
    assert pages >= 3


async def test_log_lines_are_followed_and_resumed(ended: None, idle: AsyncClient) -> None:
    whole = parse((await idle.get(f"{JOBS}/j/logs/stream")).text)
    numbers = [number for name, number, _ in whole if name == "line"]
    assert len(numbers) == 12
    assert whole[-1][0] == "end"
    rest = parse((await idle.get(f"{JOBS}/j/logs/stream", headers={"Last-Event-ID": str(numbers[7])})).text)
    assert [number for name, number, _ in rest if name == "line"] == numbers[8:]
    errors = parse((await idle.get(f"{JOBS}/j/logs/stream", params={"level": "ERROR"})).text)
    assert len([1 for name, _, _ in errors if name == "line"]) == 4


async def test_a_line_that_is_committed_late_is_not_missed(pool: Pool, database: str) -> None:
    """Rows are numbered before they are committed, so a smaller number may appear after a greater one."""
    streams = Streams(pool, "dag-jobs")
    async with pool.connection() as conn, pool.connection() as other:
        await conn.execute(
            "INSERT INTO dagapp.dag_definitions (definition_hash, workflow_id, version, body)"
            " VALUES ('h', 'w', 1, '{}')"
        )
        await conn.execute(
            "INSERT INTO dagapp.dag_jobs (job_id, workflow_id, status, started_at, definition_hash)"
            " VALUES ('j', 'w', 'running', now(), 'h')"
        )
        stream = streams.follow_logs("j", LogFilter(), 0)
        async with other.transaction():
            await other.execute(LINES, [1, 1])
            await conn.execute(LINES, [2, 2])
            first = await anext(stream)
        second = await anext(stream)
    assert first.data is not None
    assert second.data is not None
    assert [first.data.message, second.data.message] == ["line 2", "line 1"]
    await stream.aclose()


async def start(stream: AsyncIterator[ServerSentEvent]) -> ServerSentEvent:
    async with asyncio.timeout(5):
        return await anext(stream)


async def test_jobs_of_a_filter_are_followed(pool: Pool) -> None:
    streams = Streams(pool, "dag-jobs")
    stream = streams.follow_jobs(JobFilter(workflow_id="mine"), None)
    ready = await start(stream)
    assert ready.event == "ready"
    async with pool.connection() as conn:
        for job_id, workflow_id in (("a", "theirs"), ("b", "mine")):
            await conn.execute(INSERT_JOB, [job_id, workflow_id])
            await conn.execute(EVENT, [job_id])
    changed = await start(stream)
    assert (changed.event, changed.data.job_id) == ("job", "b")
    assert len(streams._watches) == 1
    again = streams.follow_jobs(JobFilter(statuses=(JobStatus.FAILED,)), int(ready.id or 0))
    assert [(await start(again)).event for _ in range(3)] == ["ready", "job", "job"]
    assert len(streams._watches) == 1
    async with pool.connection() as conn:
        await conn.execute("UPDATE dagapp.dag_jobs SET workflow_id = 'theirs' WHERE job_id = 'b'")
        await conn.execute(EVENT, ["b"])
    left = await start(stream)
    assert (left.event, left.data.job_id) == ("left", "b")
    await stream.aclose()
    await again.aclose()
    assert streams._watches == {}


async def test_too_many_changes_are_a_reset(pool: Pool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(job_changes, "MOST_JOBS", 1)
    streams = Streams(pool, "dag-jobs")
    stream = streams.follow_jobs(JobFilter(), None)
    await start(stream)
    async with pool.connection() as conn, conn.transaction():
        for job_id in ("a", "b"):
            await conn.execute(INSERT_JOB, [job_id, "w"])
            await conn.execute(EVENT, [job_id])
    assert (await start(stream)).event == "reset"
    late = streams.follow_jobs(JobFilter(), 0)
    assert [(await start(late)).event for _ in range(2)] == ["ready", "reset"]
    streams.close()
    assert [event async for event in stream] == []
    assert [event async for event in late] == []


async def test_a_lost_connection_does_not_end_a_stream(pool: Pool) -> None:
    streams = Streams(pool, "dag-jobs")
    stream = streams.follow_jobs(JobFilter(), None)
    await start(stream)
    async with pool.connection() as conn:
        await conn.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )
        await conn.execute(INSERT_JOB, ["a", "w"])
        await conn.execute(EVENT, ["a"])
    assert (await start(stream)).data.job_id == "a"
    await stream.aclose()


async def test_queued_jobs_cannot_be_followed(idle: AsyncClient) -> None:
    answer = await idle.get(f"{JOBS}/stream", params={"status": "queued"})
    assert answer.status_code == 422
    assert answer.json()["errors"][0]["field"] == "status"


async def test_assets_that_wait_for_review_are_followed(make_counter: Any, pool: Pool) -> None:
    streams = Streams(pool, "dag-jobs")
    stream = streams.follow_reviews("")
    first = await start(stream)
    assert (first.event, first.data) == ("snapshot", {"rows": [], "more": False})
    counter = await make_counter(busy=True)
    asset = await counter.published()
    changed = await start(stream)
    assert (changed.event, changed.data["asset_id"]) == ("changed", asset["asset_id"])
    assert (changed.data["revision"], changed.data["public_revision"], changed.data["title"]) == (1, None, None)
    known = streams.follow_reviews(changed.id or "")
    waiting = asyncio.create_task(anext(known))
    answer = await counter.client.post(
        "/api/platform/reject", json={"asset_id": asset["asset_id"], "reason": "not good enough"}
    )
    assert answer.status_code == 200, answer.text
    for event in (await start(stream), await waiting):
        assert (event.event, event.data) == ("left", {"id": asset["asset_id"]})
    await stream.aclose()
    await known.aclose()


async def test_instances_are_followed(make_platform: Any, pool: Pool) -> None:
    streams = Streams(pool, "dag-jobs")
    stream = streams.follow_instances("")
    assert (await start(stream)).data["rows"] == []
    worker = make_platform().worker()
    changed = await start(stream)
    assert (changed.event, changed.data["instance_id"]) == ("changed", worker.instance_id)
    streams.close()
    assert [event async for event in stream] == []


async def test_streams_of_all_kinds_count_against_their_caller(make_platform: Any, make_client: Any) -> None:
    client = await make_client(make_platform(), streams_per_caller=0)
    accepted = await submit(client)
    for route in (
        f"{JOBS}/stream", "/api/assets/review/stream", "/api/v1/instances/stream",
        f"{accepted['status_url']}/logs/stream",
    ):  # fmt: skip
        assert (await client.get(route)).status_code == 429


async def test_lines_of_a_real_task(busy: AsyncClient) -> None:
    accepted = await submit(busy)
    await until(busy, accepted["job_id"], "completed")
    page = (await busy.get(f"{accepted['status_url']}/logs")).json()
    assert page["more"] is False
