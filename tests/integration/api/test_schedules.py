"""Schedules over HTTP: create, change, run, and look at what they started."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from httpx import AsyncClient

from geomill.store.pool import Pool
from tests.integration.api.desk import problem
from tests.integration.api.test_jobs import until

SCHEDULES = "/api/v1/schedules"
NIGHTLY: dict[str, Any] = {
    "schedule_id": "nightly",
    "workflow_id": "hello_world",
    "cron": "30 2 * * *",
    "timezone": "Europe/Zurich",
    "input_params": {"name": "Ada"},
}


async def create(client: AsyncClient, **changes: Any) -> dict[str, Any]:
    answer = await client.post(SCHEDULES, json={**NIGHTLY, **changes})
    assert answer.status_code == 201, answer.text
    body: dict[str, Any] = answer.json()
    return body


async def test_a_schedule_from_its_creation_to_its_end(idle: AsyncClient) -> None:
    created = await create(idle)
    assert (created["catch_up"], created["max_concurrent"], created["paused"]) == ("last", 1, False)
    due = [datetime.fromisoformat(moment) for moment in created["due_times"]]
    assert len(due) == 5
    assert due == sorted(due)
    assert created["next_due_at"] == created["due_times"][0]
    problem(await idle.post(SCHEDULES, json=NIGHTLY), 409, "conflict")
    assert (await idle.get(f"{SCHEDULES}/nightly")).json()["input_params"] == {"name": "Ada"}
    deleted = await idle.delete(f"{SCHEDULES}/nightly")
    assert deleted.json() == {"schedule_id": "nightly", "deleted": True}
    problem(await idle.get(f"{SCHEDULES}/nightly"), 404, "not_found")
    problem(await idle.delete(f"{SCHEDULES}/nightly"), 404, "not_found")
    entries = (await idle.get("/api/v1/audit")).json()["entries"]
    assert [entry["action"] for entry in entries] == ["schedule_deleted", "schedule_created"]


async def test_a_change_touches_only_what_it_names(idle: AsyncClient) -> None:
    created = await create(idle)
    changed = (await idle.patch(f"{SCHEDULES}/nightly", json={"max_concurrent": 3, "catch_up": "skip"})).json()
    assert (changed["max_concurrent"], changed["catch_up"], changed["cron"]) == (3, "skip", "30 2 * * *")
    assert changed["next_due_at"] == created["next_due_at"]
    every = (await idle.patch(f"{SCHEDULES}/nightly", json={"interval_seconds": 900})).json()
    assert (every["cron"], every["interval_seconds"], every["input_params"]) == (None, 900, {"name": "Ada"})
    first, second = (datetime.fromisoformat(moment) for moment in every["due_times"][:2])
    assert (second - first).total_seconds() == 900
    back = (await idle.patch(f"{SCHEDULES}/nightly", json={"cron": "0 12 * * *", "timezone": "UTC"})).json()
    assert (back["interval_seconds"], datetime.fromisoformat(back["next_due_at"]).hour) == (None, 12)


async def test_a_paused_schedule_is_due_from_its_resumption_on(idle: AsyncClient, pool: Pool) -> None:
    await create(idle)
    paused = (await idle.patch(f"{SCHEDULES}/nightly", json={"paused": True})).json()
    assert (paused["paused"], paused["due_times"]) == (True, [])
    async with pool.connection() as conn:
        await conn.execute("UPDATE dagapp.dag_schedules SET next_due_at = now() - interval '9 days'")
    resumed = (await idle.patch(f"{SCHEDULES}/nightly", json={"paused": False})).json()
    assert resumed["next_due_at"] == resumed["due_times"][0]


async def test_a_schedule_without_its_workflow_can_still_be_paused(idle: AsyncClient, pool: Pool) -> None:
    await create(idle)
    async with pool.connection() as conn:
        await conn.execute("UPDATE dagapp.dag_schedules SET workflow_id = 'gone'")
    problem(await idle.patch(f"{SCHEDULES}/nightly", json={"max_concurrent": 2}), 404, "not_found")
    problem(await idle.post(f"{SCHEDULES}/nightly/run"), 404, "not_found")
    assert (await idle.patch(f"{SCHEDULES}/nightly", json={"paused": True})).json()["paused"] is True
    problem(await idle.patch(f"{SCHEDULES}/nightly", json={"paused": False}), 404, "not_found")


WRONG: list[tuple[dict[str, Any], int, str]] = [
    ({"cron": None}, 422, "either a cron expression or an interval"),
    ({"interval_seconds": 60}, 422, "either a cron expression or an interval"),
    ({"cron": "61 * * * *"}, 422, "61 * * * *"),
    ({"cron": "0 0 30 2 *"}, 422, "0 0 30 2 *"),
    ({"cron": None, "interval_seconds": 0}, 422, "interval_seconds"),
    ({"cron": None, "interval_seconds": 10**15}, 422, "interval_seconds"),
    ({"timezone": "Mars/Base"}, 422, "Mars/Base"),
    ({"timezone": "../etc/passwd"}, 422, "time zone"),
    ({"input_params": {"nam": "Ada"}}, 422, "did you mean 'name'?"),
    ({"schedule_id": "a/b"}, 422, "schedule_id"),
    ({"schedule_id": ""}, 422, "schedule_id"),
    ({"max_concurrent": 0}, 422, "max_concurrent"),
    ({"paused": "yes"}, 422, "paused"),
    ({"owner": "me"}, 422, "the field does not exist"),
    ({"workflow_id": "hello_word"}, 404, "did you mean 'hello_world'?"),
    ({"workflow_id": "export_asset", "input_params": {}}, 403, "started by geomill only"),
]


async def test_a_wrong_schedule(idle: AsyncClient) -> None:
    for changes, status, words in WRONG:
        answer = await idle.post(SCHEDULES, json={**NIGHTLY, **changes})
        assert answer.status_code == status, (changes, answer.text)
        assert answer.headers["content-type"] == "application/problem+json"
        assert words in answer.text, changes
    assert (await idle.get(SCHEDULES)).json()["schedules"] == []


WRONG_CHANGES: list[tuple[dict[str, Any], str]] = [
    ({}, "invalid_input"),
    ({"cron": "nonsense"}, "invalid_input"),
    ({"cron": None}, "invalid_input"),
    ({"cron": "0 0 * * *", "interval_seconds": 60}, "invalid_input"),
    ({"input_params": {"nam": "x"}}, "invalid_inputs"),
    ({"timezone": "Nowhere"}, "invalid_input"),
    ({"paused": None}, "invalid_input"),
    ({"max_concurrent": None}, "invalid_input"),
    ({"workflow_id": "echo_test"}, "invalid_input"),
]


async def test_a_wrong_change_changes_nothing(idle: AsyncClient) -> None:
    created = await create(idle)
    for changes, code in WRONG_CHANGES:
        problem(await idle.patch(f"{SCHEDULES}/nightly", json=changes), 422, code)
    assert (await idle.get(f"{SCHEDULES}/nightly")).json() == created


async def test_pages_and_filters(idle: AsyncClient) -> None:
    for name in ("c", "a", "b"):
        await create(idle, schedule_id=name)
    await create(idle, schedule_id="d", workflow_id="echo_test", input_params={})
    first = (await idle.get(SCHEDULES, params={"limit": 2})).json()
    second = (await idle.get(SCHEDULES, params={"limit": 2, "cursor": first["next_cursor"]})).json()
    ids = [schedule["schedule_id"] for schedule in first["schedules"] + second["schedules"]]
    assert (ids, second["next_cursor"]) == (["a", "b", "c", "d"], None)
    filtered = (await idle.get(SCHEDULES, params={"workflow_id": "echo_test"})).json()["schedules"]
    assert [schedule["schedule_id"] for schedule in filtered] == ["d"]


async def test_a_run_beside_the_due_times_and_the_history(busy: AsyncClient) -> None:
    before = await create(busy)
    job_ids = []
    for _ in range(3):
        accepted = (await busy.post(f"{SCHEDULES}/nightly/run")).json()
        await until(busy, accepted["job_id"], "completed")
        job_ids.append(accepted["job_id"])
    assert (await busy.get(f"{SCHEDULES}/nightly")).json()["next_due_at"] == before["next_due_at"]
    first = (await busy.get(f"{SCHEDULES}/nightly/jobs", params={"limit": 2})).json()
    second = (await busy.get(f"{SCHEDULES}/nightly/jobs", params={"cursor": first["next_cursor"]})).json()
    assert [job["job_id"] for job in first["jobs"] + second["jobs"]] == job_ids[::-1]
    assert {job["correlation_id"] for job in first["jobs"]} == {"nightly"}
    problem(await busy.get(f"{SCHEDULES}/other/jobs"), 404, "not_found")


async def test_too_many_runs_at_once(idle: AsyncClient) -> None:
    await create(idle)
    assert (await idle.post(f"{SCHEDULES}/nightly/run")).status_code == 202
    problem(await idle.post(f"{SCHEDULES}/nightly/run"), 409, "conflict")
