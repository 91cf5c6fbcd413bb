"""Stage jobs over HTTP."""

from __future__ import annotations

import asyncio
import hashlib
import json
from typing import Any

import pytest
from httpx import AsyncClient

from geomill.engine.maintenance.callbacks import CallbackOptions
from tests.integration.api.conftest import eventually
from tests.integration.maintenance.receiver import LOOPBACK, Receiver
from tests.integration.maintenance.receiver import receiver as receiver
from tests.integration.stages.conftest import StagePlatform
from tests.integration.stages.conftest import make_stages as make_stages
from tests.integration.stages.test_running import ALIKE


@pytest.fixture
async def platform(make_stages: Any) -> StagePlatform:
    stage_platform: StagePlatform = make_stages()
    return stage_platform


@pytest.fixture
async def client(platform: StagePlatform, make_client: Any) -> AsyncClient:
    http_client: AsyncClient = await make_client(platform, job_types=platform.job_types, storage=platform.storage)
    return http_client


def start(platform: StagePlatform) -> None:
    platform.orchestrator()
    platform.worker()


async def status(client: AsyncClient, job_id: str) -> dict[str, Any]:
    answer = await client.get(f"/api/jobs/status/{job_id}")
    assert answer.status_code == 200, answer.text
    body: dict[str, Any] = answer.json()
    return body


async def ended(client: AsyncClient, job_id: str) -> dict[str, Any]:
    async def has_ended() -> bool:
        return (await status(client, job_id))["status"] in ("COMPLETED", "FAILED")

    await eventually(has_ended)
    return await status(client, job_id)


async def test_from_submission_to_result(client: AsyncClient, platform: StagePlatform) -> None:
    answer = await client.post("/api/jobs/submit/counting", json={"widths": [2, 1, 1]})
    assert answer.status_code == 202
    accepted = answer.json()
    text = 'counting{"fail_index":0,"fail_stage":0,"note":"","raise_in":"","seconds":0.0,"widths":[2,1,1]}'
    assert accepted["job_id"] == hashlib.sha256(text.encode()).hexdigest()
    assert (accepted["status"], accepted["queue"], accepted["attempt"]) == ("QUEUED", "dag-jobs", 1)
    assert answer.headers["location"] == accepted["status_url"] == f"/api/jobs/status/{accepted['job_id']}"
    waiting = await status(client, accepted["job_id"])
    assert (waiting["status"], waiting["stage"], waiting["total_stages"]) == ("QUEUED", 1, 3)
    assert (waiting["stage_results"], waiting["result_data"], waiting["progress"]) == ({}, None, 0.0)
    start(platform)
    done = await ended(client, accepted["job_id"])
    assert done["status"] == "COMPLETED", done
    assert (done["stage"], done["total_stages"], done["progress"]) == (3, 3, 1.0)
    assert [stage["tasks"] for stage in done["stages"]] == [
        {"total": count, "completed": count, "failed": 0, "cancelled": 0} for count in (2, 1, 1)
    ]
    assert done["result_data"]["stage_3"] == {"sum": 4, "tasks": 1, "failed": []}
    assert done["result_data"] == done["stage_results"]
    assert done["parameters"]["widths"] == [2, 1, 1]
    assert 0 < done["duration_seconds"] < 60
    again = await client.post("/api/jobs/submit/counting", json={"widths": [2, 1, 1], "note": ""})
    assert (again.status_code, again.json()["status"]) == (200, "COMPLETED")
    assert again.json()["message_id"] == accepted["message_id"]


async def test_tasks_have_their_names_results_and_errors(client: AsyncClient, platform: StagePlatform) -> None:
    start(platform)
    job_id = (await client.post("/api/jobs/submit/plain", json={"blob_name": "a.tif", "tiles": 3})).json()["job_id"]
    await ended(client, job_id)
    first = (await client.get(f"/api/jobs/status/{job_id}/tasks")).json()["tasks"]
    assert [task["task_id"] for task in first] == [f"{job_id[:8]}-s1-list-tiles"]
    page = (await client.get(f"/api/jobs/status/{job_id}/tasks", params={"stage": 2, "limit": 2})).json()
    assert [task["task_id"] for task in page["tasks"]] == [f"{job_id[:8]}-s2-tile_{number}" for number in (0, 1)]
    assert page["tasks"][0]["result_data"] == {"value": "tile_0"}
    assert page["tasks"][0]["status"] == "COMPLETED"
    rest = {"stage": 2, "limit": 2, "after": page["next_after"]}
    last = (await client.get(f"/api/jobs/status/{job_id}/tasks", params=rest)).json()
    assert ([task["task_index"] for task in last["tasks"]], last["next_after"]) == (["tile_2"], None)
    assert (await client.get(f"/api/jobs/status/{job_id}/tasks", params={"stage": 9})).status_code == 404
    failing = {"widths": [1, 1, 1], "fail_stage": 2}
    job_id = (await client.post("/api/jobs/submit/counting", json=failing)).json()["job_id"]
    done = await ended(client, job_id)
    assert (done["status"], done["stage"]) == ("FAILED", 2)
    (task,) = (await client.get(f"/api/jobs/status/{job_id}/tasks", params={"stage": 2})).json()["tasks"]
    assert (task["status"], task["error_details"]) == ("FAILED", "this one fails")


async def test_a_plan_that_lies_in_the_store(client: AsyncClient, platform: StagePlatform) -> None:
    start(platform)
    job_id = (await client.post("/api/jobs/submit/bulky")).json()["job_id"]
    assert (await ended(client, job_id))["status"] == "COMPLETED"
    tasks = (await client.get(f"/api/jobs/status/{job_id}/tasks")).json()["tasks"]
    assert [(task["task_index"], task["result_data"]) for task in tasks] == [
        ("left", {"value": 4}),
        ("right", {"value": 5}),
    ]
    rows = await platform.rows("SELECT max(length(output::text)) AS longest FROM dagapp.dag_node_states")
    assert rows[0]["longest"] < 10_000


async def test_an_open_circuit_is_seen(client: AsyncClient, platform: StagePlatform) -> None:
    await platform.rows("""
        INSERT INTO dagapp.dag_circuits (handler, failures, error_code, error_message, opened_at, probe_at)
        VALUES ('test.call', 5, 'down', 'the service does not answer', now(), now()) RETURNING 1 AS one""")
    types = {job_type["job_type"]: job_type for job_type in (await client.get("/api/jobs/types")).json()}
    assert types["calling"]["stages"][0]["open_circuit"]["error_code"] == "down"
    assert types["counting"]["stages"][0]["open_circuit"] is None
    job_id = (await client.post("/api/jobs/submit/calling", json={"service": "tiles"})).json()["job_id"]
    assert (await status(client, job_id))["stages"][0]["open_circuit"]["failures"] == 5
    figures = (await client.get("/metrics")).text
    assert 'geomill_circuit_open{handler="test.call"} 1.0' in figures
    assert 'geomill_circuit_failures{handler="test.call"} 5.0' in figures


async def test_what_is_wrong_is_told_field_by_field(client: AsyncClient) -> None:
    answer = await client.post("/api/jobs/submit/counting", json={"widths": "many", "not": 1})
    problem = answer.json()
    assert (answer.status_code, problem["code"]) == (422, "invalid_inputs")
    assert {error["field"] for error in problem["errors"]} == {"widths", "not"}
    assert "did you mean 'note'?" in str(problem["errors"])
    unknown = await client.post("/api/jobs/submit/countin", json={})
    assert (unknown.status_code, unknown.json()["code"]) == (404, "not_found")
    assert (await client.post("/api/jobs/submit/counting", json=[1])).status_code == 422
    refused = await client.post("/api/jobs/submit/counting?callback_url=ftp://x", json={})
    assert refused.status_code == 422
    assert (await client.get("/api/jobs/status/nothing")).status_code == 404
    assert (await client.get("/api/jobs")).json() == {"jobs": [], "next_cursor": None}


async def test_the_list_and_the_types(client: AsyncClient) -> None:
    ids = [
        (await client.post("/api/jobs/submit/counting", json={"note": str(number)})).json()["job_id"]
        for number in range(3)
    ]
    await client.post("/api/jobs/submit/wide")
    page = (await client.get("/api/jobs", params={"job_type": "counting", "limit": 2})).json()
    assert [job["job_id"] for job in page["jobs"]] == [ids[2], ids[1]]
    rest = (await client.get("/api/jobs", params={"job_type": "counting", "cursor": page["next_cursor"]})).json()
    assert ([job["job_id"] for job in rest["jobs"]], rest["next_cursor"]) == ([ids[0]], None)
    assert len((await client.get("/api/jobs", params={"status": "QUEUED"})).json()["jobs"]) == 4
    assert (await client.get("/api/jobs", params={"status": "COMPLETED"})).json()["jobs"] == []
    types = {job_type["job_type"]: job_type for job_type in (await client.get("/api/jobs/types")).json()}
    assert {"counting", "plain", "hello_world"} <= types.keys()
    assert types["counting"]["parameters_schema"]["properties"]["seconds"]["type"] == "number"
    assert types["counting"]["total_stages"] == 3
    assert types["tolerant"]["stages"][0]["max_parallel_tasks"] == 2
    graph = await client.get(f"/api/v1/workflows/{types['counting']['workflow_id']}")
    assert "stage2_plan" in graph.json()["mermaid"]


async def test_cancelled_by_its_id_and_submitted_again(client: AsyncClient) -> None:
    job_id = (await client.post("/api/jobs/submit/counting")).json()["job_id"]
    assert (await client.post(f"/api/v1/jobs/{job_id}/cancel", json={"reason": "enough"})).status_code == 202
    body = await status(client, job_id)
    assert (body["status"], body["cancelled"], body["error_details"]) == ("FAILED", True, "enough")
    again = await client.post("/api/jobs/submit/counting")
    assert (again.status_code, again.json()["attempt"]) == (202, 2)
    body = await status(client, job_id)
    assert [(attempt["attempt"], attempt["status"]) for attempt in body["attempts"]] == [(2, "QUEUED"), (1, "FAILED")]
    assert (await client.get(f"/api/v1/jobs/{job_id}")).json()["job_id"] == body["run_id"]


async def test_the_end_of_an_attempt_is_told(client: AsyncClient, platform: StagePlatform, receiver: Receiver) -> None:
    platform.orchestrator(callbacks=CallbackOptions(allowed=LOOPBACK))
    platform.worker()
    options = {"callback_url": receiver.url, "correlation_id": "order-7"}
    job_id = (await client.post("/api/jobs/submit/wide", params=options, json={"widths": [1, 1]})).json()["job_id"]
    async with asyncio.timeout(10):
        await receiver.arrived.wait()
    body = json.loads(receiver.requests[0].body)
    assert (body["stage_job_id"], body["job_type"], body["attempt"]) == (job_id, "wide", 1)
    assert (body["status"], body["correlation_id"]) == ("completed", "order-7")
    assert body["result_url"] == f"/api/jobs/status/{job_id}"
    assert (await client.get(body["result_url"])).json()["job_id"] == job_id


async def tasks_of(client: AsyncClient, job_id: str, stage: int = 1) -> list[dict[str, Any]]:
    answer = await client.get(f"/api/jobs/status/{job_id}/tasks", params={"stage": stage})
    tasks: list[dict[str, Any]] = answer.json()["tasks"]
    return tasks


async def test_an_error_names_stage_and_task_and_retries_are_counted(
    client: AsyncClient, platform: StagePlatform, receiver: Receiver
) -> None:
    platform.orchestrator(callbacks=CallbackOptions(allowed=LOOPBACK))
    platform.worker()
    options = {"callback_url": receiver.url, "on_behalf_of": "ada"}
    answer = await client.post("/api/jobs/submit/tiles", params=options, json={"bad": "tile_x0_y10"})
    job_id = answer.json()["job_id"]
    done = await ended(client, job_id)
    assert done["error_details"] == "stage 1, task tile_x0_y10: no pixels"
    assert (await client.get("/api/jobs")).json()["jobs"][0]["error_details"] == done["error_details"]
    async with asyncio.timeout(10):
        await receiver.arrived.wait()
    assert json.loads(receiver.requests[0].body)["error"] == done["error_details"]
    good, bad = await tasks_of(client, job_id)
    assert (good["retry_count"], bad["retry_count"], bad["attempt"]) == (0, 1, 2)
    assert (bad["status"], bad["error_details"], bad["task_type"]) == ("FAILED", "no pixels", "test.work")
    assert (bad["parent_job_id"], bad["parameters"]["fail"]) == (job_id, "no pixels")
    assert bad["created_at"] <= bad["updated_at"]
    for task_id in (bad["task_id"], bad["engine_task_id"]):
        assert (await client.get(f"/api/jobs/tasks/{task_id}")).json() == bad
    assert bad["task_id"] == f"{job_id[:8]}-s1-tile_x0_y10"
    assert await platform.rows("SELECT on_behalf_of FROM dagapp.dag_jobs") == [{"on_behalf_of": "ada"}]


async def test_a_task_that_was_only_cancelled_says_so(client: AsyncClient, platform: StagePlatform) -> None:
    start(platform)
    job_id = (await client.post("/api/jobs/submit/tiles", json={"seconds": 30})).json()["job_id"]

    async def both_run() -> bool:
        return [task["status"] for task in await tasks_of(client, job_id)] == ["PROCESSING"] * 2

    await eventually(both_run)
    assert all(task["heartbeat"] and task["started_at"] for task in await tasks_of(client, job_id))
    await client.post(f"/api/v1/jobs/{job_id}/cancel", json={"reason": "enough"})
    done = await ended(client, job_id)
    counts = {"total": 2, "completed": 0, "failed": 0, "cancelled": 2}
    assert (done["cancelled"], done["stages"][0]["tasks"]) == (True, counts)
    tasks = await tasks_of(client, job_id)
    assert [(task["status"], task["retry_count"]) for task in tasks] == [("CANCELLED", 0)] * 2


async def test_a_task_is_found_by_its_id(client: AsyncClient, platform: StagePlatform) -> None:
    start(platform)
    job_id = (await client.post("/api/jobs/submit/handing")).json()["job_id"]
    await ended(client, job_id)
    task = (await client.get(f"/api/jobs/tasks/{job_id[:8]}-s1-b")).json()
    assert (task["next_stage_params"], task["stage"], task["status"]) == ({"value": "from b"}, 1, "COMPLETED")
    following = (await client.get(f"/api/jobs/tasks/{job_id[:8]}-s2-b")).json()
    assert following["parameters"] == {"value": "from b"}
    assert (await client.get(f"/api/jobs/tasks/{job_id[:8]}-s1-b", params={"job_id": job_id})).json() == task
    strangers = (f"{job_id[:8]}-s1-c", f"{job_id[:8]}-s9-b", "00000000-s1-b", "x", f"{job_id}:stage1_tasks[0]:1")
    for unknown in strangers:
        assert (await client.get(f"/api/jobs/tasks/{unknown}")).status_code == 404, unknown


async def test_tasks_of_jobs_whose_ids_begin_alike(client: AsyncClient, platform: StagePlatform) -> None:
    start(platform)
    bodies = [{"note": f"n{note}"} for note in ALIKE]
    ids = [(await client.post("/api/jobs/submit/counting", json=body)).json()["job_id"] for body in bodies]
    assert ids[0][:8] == ids[1][:8]
    for job_id in ids:
        await ended(client, job_id)
    path = f"/api/jobs/tasks/{ids[0][:8]}-s1-0"
    refused = await client.get(path)
    assert (refused.status_code, [job_id in refused.text for job_id in ids]) == (409, [True, True])
    for job_id in ids:
        assert (await client.get(path, params={"job_id": job_id})).json()["parent_job_id"] == job_id


async def test_the_status_of_an_asset_knows_stage_jobs(client: AsyncClient) -> None:
    accepted = (await client.post("/api/jobs/submit/counting")).json()
    for identifier in (accepted["job_id"], accepted["message_id"]):
        answer = (await client.get(f"/api/platform/status/{identifier}")).json()
        expected = {"kind": "stage_job", "status": "QUEUED", "status_url": accepted["status_url"]}
        assert answer | expected == answer
