"""Lists and counts of jobs over HTTP."""

from __future__ import annotations

from typing import Any

import pytest
from httpx import AsyncClient

from geomill.store import job_lists
from geomill.store.pool import Pool
from tests.integration.api.test_jobs import JOBS, submit, until

INSERT = """
INSERT INTO dagapp.dag_jobs (
    job_id, workflow_id, status, submitted_by, asset_id, error_message, created_at, completed_at, parked_at, paused_at
)
VALUES ('one', 'w', 'failed', 'ann', 'a1', 'the file a_b.tif is 100% broken', '2026-01-01Z', now(), NULL, NULL),
       ('two', 'w', 'failed', 'ann', 'a1', 'the file axb.tif is gone', '2026-01-02Z', now(), NULL, now()),
       ('three', 'v', 'cancelled', 'bob', NULL, 'changed my mind', '2026-01-03Z', now(), NULL, NULL),
       ('four', 'v', 'failed', 'bob', NULL, 'x', '2026-01-04Z', now(), now(), NULL)
"""


@pytest.fixture
async def listed(idle: AsyncClient, pool: Pool) -> Any:
    async with pool.connection() as conn:
        await conn.execute(INSERT)

    async def ids(**filters: Any) -> list[str]:
        answer = await idle.get(JOBS, params=filters)
        assert answer.status_code == 200, answer.text
        return [job["job_id"] for job in answer.json()["jobs"]]

    return ids


@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        ({"status": ["failed", "cancelled"]}, ["four", "three", "two", "one"]),
        ({"status": "cancelled"}, ["three"]),
        ({"asset_id": "a1"}, ["two", "one"]),
        ({"submitted_by": "bob", "status": "failed"}, ["four"]),
        ({"created_from": "2026-01-02T00:00:00Z", "created_to": "2026-01-04T00:00:00Z"}, ["three", "two"]),
        ({"error": "FILE A_B"}, ["one"]),
        ({"error": "100%"}, ["one"]),
        ({"error": "%%"}, []),
        ({"parked": True}, ["four"]),
        ({"parked": False, "workflow_id": "v"}, ["three"]),
        ({"status": "queued"}, []),
        ({"paused": True}, []),
        ({"paused": False, "status": "failed"}, ["four", "two", "one"]),
    ],
)
async def test_filters(listed: Any, filters: dict[str, Any], expected: list[str]) -> None:
    assert await listed(**filters) == expected


async def test_waiting_jobs_come_first_on_pages_of_any_size(listed: Any, idle: AsyncClient) -> None:
    waiting = [(await submit(idle, correlation_id=f"c{number}"))["job_id"] for number in range(3)]
    expected = [*sorted(waiting, reverse=True), "four", "three", "two", "one"]
    assert await listed() == expected
    assert await listed(status="queued") == expected[:3]
    assert await listed(correlation_id="c1") == [waiting[1]]
    assert await listed(workflow_id="hello_world", status=["queued", "failed"]) == expected[:3]
    assert await listed(error="file") == ["two", "one"]
    for limit in range(1, 9):
        found: list[str] = []
        cursor: str | None = None
        while True:
            page = (await idle.get(JOBS, params={"limit": limit} | ({"cursor": cursor} if cursor else {}))).json()
            found += [job["job_id"] for job in page["jobs"]]
            cursor = page["next_cursor"]
            if cursor is None:
                break
        assert found == expected


async def test_paused_jobs_are_those_that_have_not_ended(listed: Any, idle: AsyncClient, pool: Pool) -> None:
    await submit(idle)
    async with pool.connection() as conn:
        await conn.execute(
            "INSERT INTO dagapp.dag_definitions (definition_hash, workflow_id, version, body)"
            " VALUES ('h', 'v', 1, '{}')"
        )
        await conn.execute(
            "INSERT INTO dagapp.dag_jobs (job_id, workflow_id, status, created_at, paused_at, definition_hash)"
            " VALUES ('five', 'v', 'pending', '2026-01-05Z', now(), 'h'),"
            " ('six', 'v', 'pending', '2026-01-06Z', NULL, 'h')"
        )
    assert await listed(paused=True) == ["five"]
    assert await listed(paused=True, workflow_id="w") == []
    assert await listed(paused=False, status=["pending"]) == ["six"]
    counted = (await idle.get(f"{JOBS}/counts", params={"paused": True})).json()["counts"]
    assert (counted["pending"], counted["queued"], counted["failed"]) == (1, 0, 0)


async def test_counts(listed: Any, idle: AsyncClient) -> None:
    await submit(idle)
    answer = (await idle.get(f"{JOBS}/counts")).json()
    zero = {"pending": 0, "running": 0, "completed": 0}
    assert answer["counts"] == {"queued": 1, "failed": 3, "cancelled": 1} | zero
    assert answer["at_least"] == []
    assert answer["counted_at"]
    answer = (await idle.get(f"{JOBS}/counts", params={"submitted_by": "ann", "status": ["failed", "queued"]})).json()
    assert answer["counts"] == {"queued": 0, "failed": 2}
    answer = (await idle.get(f"{JOBS}/counts", params={"error": "file"})).json()
    assert answer["counts"] == {"queued": 0, "failed": 2, "cancelled": 0} | zero


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("status", "done"),
        ("error", "x"),
        ("error", "x" * 201),
        ("error", "a\x00b"),
        ("created_from", "yesterday"),
        ("created_from", "2026-01-01T00:00:00"),
        ("cursor", "nonsense"),
        ("colour", "red"),
        ("limit", "1001"),
    ],
)
async def test_bad_filters_are_named(idle: AsyncClient, field: str, value: str) -> None:
    answer = await idle.get(JOBS, params={field: value})
    assert answer.status_code == 422
    assert field in answer.text


async def test_a_range_without_a_moment_is_refused(idle: AsyncClient) -> None:
    times = {"created_from": "2026-01-02T00:00:00Z", "created_to": "2026-01-01T00:00:00Z"}
    for route in (JOBS, f"{JOBS}/counts"):
        answer = await idle.get(route, params=times)
        assert answer.status_code == 422
        assert answer.json()["errors"][0]["field"] == "created_to"


async def test_a_job_tells_who_it_is_for_and_how_long_it_took(busy: AsyncClient) -> None:
    accepted = await submit(busy)
    await until(busy, accepted["job_id"], "completed")
    job = (await busy.get(JOBS)).json()["jobs"][0]
    assert job["owner_id"].startswith("orch-")
    assert job["submitted_by"]
    assert job["wait_seconds"] >= 0
    assert job["run_seconds"] >= 0
    assert job["definition_hash"]
    assert "input_params" not in job


async def test_a_histogram_counts_each_job_once_in_its_part(idle: AsyncClient, listed: Any) -> None:
    range_of_times = {"created_from": "2026-01-01T00:00:00Z", "created_to": "2026-01-05T00:00:00Z"}
    answer = (await idle.get(f"{JOBS}/histogram", params={**range_of_times, "parts": 4})).json()
    assert [part["counts"] for part in answer["parts"]] == [
        {"failed": 1},
        {"failed": 1},
        {"cancelled": 1},
        {"failed": 1},
    ]
    assert [part["begins_at"][:10] for part in answer["parts"]] == [f"2026-01-0{day}" for day in (1, 2, 3, 4)]
    assert answer["workflows"] == [
        {"workflow_id": "v", "counts": {"cancelled": 1, "failed": 1}},
        {"workflow_id": "w", "counts": {"failed": 2}},
    ]
    assert (answer["more"], answer["complete_from"]) == (False, None)
    filtered = (await idle.get(f"{JOBS}/histogram", params={**range_of_times, "workflow_id": "w", "parts": 1})).json()
    assert [part["counts"] for part in filtered["parts"]] == [{"failed": 2}]


async def test_a_histogram_tells_since_when_it_is_complete(
    idle: AsyncClient, listed: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(job_lists, "COUNTED", 2)
    times = {"created_from": "2026-01-01T00:00:00Z", "created_to": "2026-01-05T00:00:00Z", "parts": 4}
    answer = (await idle.get(f"{JOBS}/histogram", params=times)).json()
    assert (answer["more"], answer["complete_from"][:10]) == (True, "2026-01-02")
    assert answer["workflows"] == [
        {"workflow_id": "v", "counts": {"cancelled": 1, "failed": 1}},
        {"workflow_id": "w", "counts": {"failed": 1}},
    ]


async def test_a_histogram_of_no_time_or_too_many_parts_is_refused(idle: AsyncClient) -> None:
    backwards = {"created_from": "2026-01-02T00:00:00Z", "created_to": "2026-01-01T00:00:00Z"}
    assert (await idle.get(f"{JOBS}/histogram", params=backwards)).status_code == 422
    assert (await idle.get(f"{JOBS}/histogram", params={"parts": 201})).status_code == 422
    assert len((await idle.get(f"{JOBS}/histogram")).json()["parts"]) == 60
