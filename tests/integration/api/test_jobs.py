"""Jobs over HTTP: from submission to result, and what can be done to them on the way."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from httpx import AsyncClient

from geomill.cli.examination import examine_database
from geomill.engine.maintenance.retention import Retention, RetentionOptions
from geomill.store.pool import Pool
from tests.integration.api.conftest import SLOW, eventually

JOBS = "/api/v1/jobs"


async def submit(client: AsyncClient, workflow_id: str = "hello_world", **body: Any) -> dict[str, Any]:
    answer = await client.post(JOBS, json={"workflow_id": workflow_id, **body})
    assert answer.status_code == 202, answer.text
    return answer.json()


async def until(client: AsyncClient, job_id: str, *statuses: str) -> dict[str, Any]:
    async with asyncio.timeout(20):
        while True:
            job = (await client.get(f"{JOBS}/{job_id}")).json()
            if job.get("status") in statuses:
                return job
            await asyncio.sleep(0.02)


async def test_from_submission_to_result(busy: AsyncClient) -> None:
    answer = await busy.post(JOBS, json={"workflow_id": "hello_world", "input_params": {"name": "Ada"}})
    assert answer.status_code == 202
    accepted = answer.json()
    assert accepted["status"] == "queued"
    assert answer.headers["location"] == accepted["status_url"] == f"{JOBS}/{accepted['job_id']}"
    job = await until(busy, accepted["job_id"], "completed")
    assert job["result"] == {"message": "Hello, Ada!"}
    assert [node["node_id"] for node in job["nodes"]] == ["START", "hello", "END"]
    assert {node["status"] for node in job["nodes"]} == {"completed"}
    assert job["nodes"][1]["output"] == {"message": "Hello, Ada!"}
    assert job["progress"] | {"fraction": 1.0, "nodes_total": 3, "nodes_ended": 3} == job["progress"]
    lean = (await busy.get(f"{JOBS}/{job['job_id']}", params={"outputs": "false"})).json()
    assert lean["nodes"][1]["output"] is None


async def test_a_submission_is_answered_alike_on_the_direct_and_on_the_ordinary_way(idle: AsyncClient) -> None:
    """A content type that is spelled otherwise leaves the request to FastAPI."""
    answers = [
        await idle.post(JOBS, content=body, headers={"Content-Type": kind})
        for body in (b'{"workflow_id": "hello_world", "idempotency_key": "k"}', b'{"workflow_id": ""}', b"{", b"")
        for kind in ("application/json", "application/json; charset=utf-8")
    ]
    contents = [(answer.status_code, answer.json(), dict(answer.headers) | {"date": ""}) for answer in answers]
    assert contents[0::2] == contents[1::2]
    assert [answer.status_code for answer in answers[0::2]] == [202, 422, 400, 422]


async def test_inputs_is_understood_too_and_items_are_counted(busy: AsyncClient) -> None:
    accepted = await submit(busy, "fan_out_test", inputs={"item_list": [1, 2, 3, 4]})
    job = await until(busy, accepted["job_id"], "completed")
    assert [node["items"] for node in job["nodes"] if node["items"]] == [{"total": 4, "completed": 4, "failed": 0}]
    assert job["progress"]["items_ended"] == 4


async def test_a_job_that_nobody_has_claimed_is_queued(idle: AsyncClient) -> None:
    accepted = await submit(idle, priority=7, correlation_id="mine")
    job = (await idle.get(accepted["status_url"])).json()
    assert job | {"status": "queued", "priority": 7, "correlation_id": "mine", "nodes": []} == job
    assert (await idle.get(accepted["events_url"])).json() == {
        "events": [],
        "next_after": 0,
        "details_deleted_at": None,
    }
    assert [job["status"] for job in (await idle.get(JOBS)).json()["jobs"]] == ["queued"]
    for action in ("pause", "resume", "retry"):
        answer = await idle.post(f"{accepted['status_url']}/{action}")
        assert answer.status_code == 409
        assert "claimed" in answer.json()["detail"]
    answer = await idle.post(f"{accepted['status_url']}/cancel", json={"reason": "changed my mind"})
    assert (answer.status_code, answer.json()["status"]) == (202, "cancelled")
    assert (await idle.get(accepted["status_url"])).json()["error"] == "changed my mind"


async def test_one_key_one_job(busy: AsyncClient, idle: AsyncClient) -> None:
    first = await submit(busy, idempotency_key="k1")
    await until(busy, first["job_id"], "completed")
    again = await busy.post(JOBS, json={"workflow_id": "hello_world", "idempotency_key": "k1"})
    assert again.status_code == 200
    assert again.json() | {"job_id": first["job_id"], "status": "completed"} == again.json()
    other = await busy.post(JOBS, json={"workflow_id": "echo_test", "idempotency_key": "k1"})
    assert other.status_code == 409


async def test_one_key_one_job_even_before_it_is_claimed(idle: AsyncClient, pool: Pool) -> None:
    answers = await asyncio.gather(*(submit(idle, idempotency_key="k2") for _ in range(10)))
    assert len({answer["job_id"] for answer in answers}) == 1
    async with pool.connection() as conn:
        row = await (await conn.execute("SELECT count(*) AS messages FROM dagapp.dag_queue")).fetchone()
    assert row == {"messages": 1}


async def test_filters(busy: AsyncClient) -> None:
    hello = await submit(busy, correlation_id="a")
    echo = await submit(busy, "echo_test", inputs={"message": "x", "count": 1}, correlation_id="b")
    for accepted in (hello, echo):
        await until(busy, accepted["job_id"], "completed")

    async def matching(**filters: Any) -> set[str]:
        return {job["job_id"] for job in (await busy.get(JOBS, params=filters)).json()["jobs"]}

    assert await matching(workflow_id="echo_test") == {echo["job_id"]}
    assert await matching(correlation_id="a") == {hello["job_id"]}
    assert await matching(status="completed") == {hello["job_id"], echo["job_id"]}
    assert await matching(status="failed") == set()


@pytest.mark.parametrize("limit", [1, 3, 7, 50])
async def test_pages_show_every_job_once_however_many_share_a_moment(idle: AsyncClient, pool: Pool, limit: int) -> None:
    """New jobs come while somebody pages: they are in front, and disturb nothing."""
    insert = (
        "INSERT INTO dagapp.dag_jobs (job_id, workflow_id, status, created_at, completed_at)"
        " SELECT %s || n, 'w', 'failed', timestamptz '2026-01-01Z' + make_interval(secs => n / 5), now()"
        " FROM generate_series(1, %s) AS n"
    )
    async with pool.connection() as conn:
        await conn.execute(insert, ("old", 23))
    listed: list[str] = []
    cursor: str | None = None
    while True:
        page = (await idle.get(JOBS, params={"limit": limit} | ({"cursor": cursor} if cursor else {}))).json()
        listed += [job["job_id"] for job in page["jobs"] if job["job_id"].startswith("old")]
        async with pool.connection() as conn:
            await conn.execute(insert.replace("'2026-01-01Z'", "'2027-01-01Z'"), (f"new{len(listed)}-", 1))
        cursor = page["next_cursor"]
        if cursor is None:
            break
    assert sorted(listed) == sorted(f"old{n}" for n in range(1, 24))


async def test_events_are_paged(busy: AsyncClient) -> None:
    accepted = await submit(busy)
    await until(busy, accepted["job_id"], "completed")
    whole = (await busy.get(accepted["events_url"])).json()
    assert whole["events"][0]["event_type"] == "job_created"
    assert whole["events"][-1]["event_type"] == "job_completed"
    paged: list[dict[str, Any]] = []
    after = 0
    while page := (await busy.get(accepted["events_url"], params={"after": after, "limit": 2})).json():
        paged += page["events"]
        if not page["events"]:
            break
        after = page["next_after"]
    assert paged == whole["events"]


async def test_cancel_pause_resume_and_retry(make_platform: Any, make_client: Any) -> None:
    platform = make_platform(SLOW)
    platform.orchestrator()
    platform.worker()
    client = await make_client(platform)
    accepted = await submit(client, "slow")
    here = accepted["status_url"]
    await until(client, accepted["job_id"], "running")
    for action in ("pause", "resume", "cancel"):
        answer = await client.post(f"{here}/{action}")
        assert (answer.status_code, answer.json()["action"]) == (202, action)
    await until(client, accepted["job_id"], "cancelled")
    for action in ("cancel", "pause", "resume"):
        answer = await client.post(f"{here}/{action}")
        assert (answer.status_code, answer.json()["code"]) == (409, "conflict")
    answer = await client.post(f"{here}/retry")
    assert (answer.status_code, answer.json()["status"]) == (202, "running")
    assert (await client.get(here)).json()["run_number"] == 2
    await client.post(f"{here}/cancel")
    await until(client, accepted["job_id"], "cancelled")


async def test_an_estimate_once_something_is_known(make_platform: Any, make_client: Any) -> None:
    platform = make_platform(SLOW)
    platform.orchestrator()
    platform.worker()
    client = await make_client(platform)
    accepted = await submit(client, "slow", inputs={"seconds": 30})
    await until(client, accepted["job_id"], "running")
    await asyncio.sleep(0.2)
    progress = (await client.get(accepted["status_url"])).json()["progress"]
    assert 0 < progress["fraction"] < 1
    assert progress["remaining_seconds"] > 0
    assert progress["eta"]
    await client.post(f"{accepted['status_url']}/pause")

    async def paused() -> bool:
        return bool((await client.get(accepted["status_url"])).json()["paused"])

    await eventually(paused)
    job = (await client.get(accepted["status_url"])).json()
    assert job["progress"]["remaining_seconds"] is None


async def test_a_job_whose_details_were_deleted_says_so(busy: AsyncClient, pool: Pool) -> None:
    accepted = await submit(busy)
    await until(busy, accepted["job_id"], "completed")
    await Retention(pool, options=RetentionOptions(details=timedelta(microseconds=1))).run_once()
    job = await until(busy, accepted["job_id"], "completed")
    assert (job["nodes"], job["result"]) == ([], {"message": "Hello, World!"})
    events = (await busy.get(accepted["events_url"])).json()
    assert events == {"events": [], "next_after": 0, "details_deleted_at": job["details_deleted_at"]}
    assert job["details_deleted_at"] is not None


async def test_a_parked_job_is_seen_everywhere_and_can_be_released(
    busy: AsyncClient, pool: Pool, database: str, tmp_path: Path
) -> None:
    """The database refuses the verdict, and so the failure in its place."""
    async with pool.connection() as conn:
        await conn.execute(
            "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'secret_table says no'; END $$"
        )
        await conn.execute(
            "CREATE TRIGGER refuse BEFORE UPDATE ON dagapp.dag_jobs FOR EACH ROW"
            " WHEN (NEW.completed_at IS NOT NULL) EXECUTE FUNCTION refuse()"
        )
    job_id = (await submit(busy))["job_id"]

    async def is_parked() -> bool:
        return bool((await busy.get(f"{JOBS}/{job_id}")).json().get("parked_at"))

    await eventually(is_parked)
    job = (await busy.get(f"{JOBS}/{job_id}")).json()
    assert (job["status"], "secret_table" in job["parked_reason"]) == ("running", False)
    health = (await busy.get("/health")).json()
    assert health["status"] == "degraded"
    assert [parked["job_id"] for parked in health["parked"]] == [job_id]
    assert any(job_id in reason and "parked" in reason for reason in health["reasons"])
    assert health["jobs"] == {"parked": 1}
    findings = {finding.subject: finding for finding in await examine_database(database, tmp_path)}
    assert job_id in findings["parked jobs"].message
    async with pool.connection() as conn:
        await conn.execute("DROP TRIGGER refuse ON dagapp.dag_jobs")
    answer = await busy.post(f"{JOBS}/{job_id}/release")
    assert (answer.status_code, answer.json()["action"]) == (202, "release")
    assert (await until(busy, job_id, "completed"))["parked_at"] is None
    events = (await busy.get(f"{JOBS}/{job_id}/events")).json()["events"]
    assert [event["event_data"]["by"] for event in events if event["event_type"] == "job_released"] != [None]
    assert (await busy.post(f"{JOBS}/{job_id}/release")).status_code == 409
