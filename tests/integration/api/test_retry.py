"""Retries with intent: from a node, only what failed, or a new job with changed inputs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from httpx import AsyncClient

from geomill.domain.access.principal import Role
from geomill.store.pool import Pool
from tests.integration.api.conftest import bearing, make_key
from tests.integration.api.test_jobs import JOBS, submit, until
from tests.integration.engine.platform import EnginePlatform

STEPS = """
workflow_id: steps
name: Steps
started_by: operators
inputs:
  numbers: {type: array, default: [1, 2, 3]}
  fails: {type: boolean, default: true}
nodes:
  START: {type: start, next: [first, aside]}
  first: {type: task, handler: echo, params: {numbers: "{{ inputs.numbers }}"}, next: each}
  aside: {type: task, handler: echo, params: {}, next: last}
  each:
    type: fan_out
    source: "{{ nodes.first.output.echoed_params.numbers }}"
    task: {handler: echo, params: {number: "{{ item }}"}}
    next: gather
  gather: {type: fan_in, aggregation: count, next: last}
  last:
    type: conditional
    condition_field: "{{ inputs.fails }}"
    branches: [{name: bad, condition: "== true", next: bad}, {name: good, default: true, next: END}]
  bad: {type: task, handler: fail, params: {error_message: "no luck", retryable: false}, next: END}
  END: {type: end}
"""


@pytest.fixture
async def platform(make_platform: Callable[..., EnginePlatform]) -> EnginePlatform:
    platform = make_platform(STEPS)
    platform.orchestrator()
    platform.worker()
    return platform


@pytest.fixture
async def client(platform: EnginePlatform, make_client: Any) -> AsyncClient:
    return await make_client(platform)


async def attempts(client: AsyncClient, job_id: str) -> dict[str, int]:
    job = (await client.get(f"{JOBS}/{job_id}")).json()
    return {node["node_id"]: node["attempt"] for node in job["nodes"]}


async def runs_again(client: AsyncClient, job_id: str, run_number: int) -> dict[str, Any]:
    while True:
        job = await until(client, job_id, "failed", "completed")
        if job["run_number"] == run_number:
            return job


async def test_a_node_and_all_after_it_run_again(client: AsyncClient, pool: Pool) -> None:
    accepted = await submit(client, "steps")
    failed = await until(client, accepted["job_id"], "failed")
    assert failed["error"] == "no luck" or "no luck" in failed["error"]
    url = f"{JOBS}/{accepted['job_id']}"
    before = await attempts(client, accepted["job_id"])
    answer = await client.post(f"{url}/retry", json={"from_node": "first"})
    assert answer.status_code == 202, answer.text
    job = await runs_again(client, accepted["job_id"], 2)
    assert job["status"] == "failed"
    after = await attempts(client, accepted["job_id"])
    assert (before["first"], after["first"]) == (1, 2)
    assert after["aside"] == before["aside"] == 1
    nodes = {node["node_id"]: node for node in job["nodes"]}
    assert nodes["each"]["items"] == {"total": 3, "completed": 3, "failed": 0}
    assert nodes["gather"]["status"] == "completed"
    item = (await client.get(f"{url}/nodes/each/items/2")).json()
    assert (item["attempt"], item["output"]["echoed_params"]) == (1, {"number": 3})
    events = (await client.get(f"{url}/events")).json()["events"]
    assert [event["event_data"] for event in events if event["event_type"] == "job_retried"] == [{"from_node": "first"}]


async def test_without_intent_only_what_failed_runs_again(client: AsyncClient) -> None:
    accepted = await submit(client, "steps")
    await until(client, accepted["job_id"], "failed")
    for number, body in enumerate(({"only_failed": True}, {}, None), start=2):
        answer = await client.post(f"{JOBS}/{accepted['job_id']}/retry", json=body)
        assert answer.status_code == 202, answer.text
        await runs_again(client, accepted["job_id"], number)
        numbers = await attempts(client, accepted["job_id"])
        assert (numbers["first"], numbers["bad"]) == (1, number)


async def test_changed_inputs_are_a_new_job(client: AsyncClient) -> None:
    accepted = await submit(client, "steps", inputs={"numbers": [7]}, correlation_id="mine", priority=3)
    await until(client, accepted["job_id"], "failed")
    url = f"{JOBS}/{accepted['job_id']}"
    answer = await client.post(f"{url}/retry", json={"input_params": {"fails": False}})
    assert answer.status_code == 202, answer.text
    repeated = answer.json()
    assert repeated["retry_of"] == accepted["job_id"] != repeated["job_id"]
    job = await until(client, repeated["job_id"], "completed")
    assert job["retry_of"] == accepted["job_id"]
    assert job["input_params"] == {"numbers": [7], "fails": False}
    assert (job["correlation_id"], job["priority"]) == ("mine", 3)
    assert (await client.get(url)).json()["status"] == "failed"
    difference = (await client.get(f"{url}/difference", params={"with": job["job_id"]})).json()
    assert difference["same_definition"] is True
    assert difference["inputs"] == [{"name": "fails", "change": "changed", "before": True, "after": False}]
    nodes = {node["node_id"]: node for node in difference["nodes"]}
    assert nodes["bad"]["status"] == {"before": "failed", "after": "skipped"}
    assert "each" not in nodes
    assert difference["status"] == {"before": "failed", "after": "completed"}


@pytest.mark.parametrize(
    ("body", "status", "text"),
    [
        ({"from_node": "frist"}, 422, "first"),
        ({"from_node": "first", "only_failed": True}, 422, "one of"),
        ({"input_params": {"stranger": 1}}, 422, "stranger"),
        ({"input_params": {"numbers": "x"}}, 422, "numbers"),
        ({"colour": "red"}, 422, "colour"),
    ],
)
async def test_a_wrong_retry_changes_nothing(client: AsyncClient, body: Any, status: int, text: str) -> None:
    accepted = await submit(client, "steps")
    await until(client, accepted["job_id"], "failed")
    answer = await client.post(f"{JOBS}/{accepted['job_id']}/retry", json=body)
    assert answer.status_code == status
    assert text in answer.text
    assert (await client.get(f"{JOBS}/{accepted['job_id']}")).json()["run_number"] == 1
    assert len((await client.get(JOBS)).json()["jobs"]) == 1


async def test_a_job_of_an_asset_or_of_geomill_is_not_repeated(client: AsyncClient, pool: Pool) -> None:
    async with pool.connection() as conn:
        await conn.execute(
            "INSERT INTO dagapp.dag_jobs (job_id, workflow_id, status, asset_id, completed_at)"
            " VALUES ('theirs', 'steps', 'failed', 'a', now()), ('ours', 'delete_asset_data', 'failed', NULL, now())"
        )
    answer = await client.post(f"{JOBS}/theirs/retry", json={"input_params": {}})
    assert (answer.status_code, "asset" in answer.json()["detail"]) == (409, True)
    answer = await client.post(f"{JOBS}/ours/retry", json={"input_params": {}})
    assert answer.status_code in (403, 404)
    assert (await client.get(JOBS, params={"status": "queued"})).json()["jobs"] == []


async def test_a_reader_may_look_and_not_retry(client: AsyncClient, database: str) -> None:
    reader = bearing(await make_key(database, Role.READER))
    accepted = await submit(client, "steps")
    await until(client, accepted["job_id"], "failed")
    url = f"{JOBS}/{accepted['job_id']}"
    assert (await client.post(f"{url}/retry", json={}, headers=reader)).status_code == 403
    answer = await client.get(f"{url}/difference", params={"with": accepted["job_id"]}, headers=reader)
    assert answer.status_code == 200
    assert (answer.json()["inputs"], answer.json()["nodes"]) == ([], [])
