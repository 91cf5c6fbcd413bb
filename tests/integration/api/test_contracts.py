"""The contracts of the earlier system: bodies, answers and routes that its clients know."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pytest
from httpx import AsyncClient

from geomill.domain.access.principal import MayName, Role
from geomill.store.pool import Pool
from tests.integration.api.conftest import bearing, make_key
from tests.integration.api.desk import order, problem
from tests.integration.engine.platform import registry_of

JOBS = "/api/v1/jobs"
ADA = "ada@example.org"


@pytest.fixture
async def idle_counter(make_counter: Any) -> Any:
    return await make_counter()


@pytest.fixture
async def counter(make_counter: Any) -> Any:
    return await make_counter(busy=True)


async def test_a_submission_is_answered_with_message_and_time(idle: AsyncClient) -> None:
    body = {
        "workflow_id": "hello_world",
        "input_params": {"name": "Ada"},
        "correlation_id": "ddh-req-12345",
        "submitted_by": "ddh-gateway",
        "priority": 10,
        "idempotency_key": "k",
    }
    first = await idle.post(JOBS, json=body)
    assert first.status_code == 202, first.text
    accepted = first.json()
    assert accepted["message_id"] == accepted["job_id"]
    assert datetime.fromisoformat(accepted["submitted_at"]).tzinfo is not None
    job = (await idle.get(accepted["status_url"])).json()
    assert (job["on_behalf_of"], job["priority"]) == ("ddh-gateway", 10)
    assert job["submitted_by"].startswith("key:")
    assert (await idle.post(JOBS, json=body)).json() == accepted


async def test_the_claim_goes_with_the_job(busy: AsyncClient) -> None:
    accepted = (await busy.post(JOBS, json={"workflow_id": "hello_world", "on_behalf_of": ADA})).json()
    async with busy.stream("GET", accepted["stream_url"]) as stream:
        await stream.aread()
    job = (await busy.get(accepted["status_url"])).json()
    assert (job["status"], job["on_behalf_of"]) == ("completed", ADA)
    assert job["submitted_by"].startswith("key:")


@pytest.mark.parametrize("person", ["", "  ", "a\nb", "a\x00b", "x" * 201, 7, {"name": "ada"}])
async def test_a_person_is_a_printable_name(idle: AsyncClient, person: Any) -> None:
    answer = await idle.post(JOBS, json={"workflow_id": "hello_world", "submitted_by": person})
    problem(answer, 422, "invalid_input")


async def test_the_same_key_with_another_submission_says_what_differs(idle: AsyncClient, database: str) -> None:
    body = {"workflow_id": "echo_test", "inputs": {"message": "x", "count": 1}, "idempotency_key": "k"}
    assert (await idle.post(JOBS, json=body)).status_code == 202
    again = await idle.post(JOBS, json={**body, "inputs": {"message": "secret", "count": 1}, "priority": 3})
    detail = problem(again, 409, "conflict")["detail"]
    assert "input_params.message, priority" in detail
    assert "count" not in detail
    other = problem(await idle.post(JOBS, json={**body, "workflow_id": "hello_world", "inputs": {}}), 409, "conflict")
    assert "differs in workflow_id;" in other["detail"]
    stranger = bearing(await make_key(database, Role.OPERATOR))
    taken = await idle.post(JOBS, json={**body, "inputs": {"message": "y", "count": 1}}, headers=stranger)
    assert problem(taken, 409, "conflict")["detail"] == (
        "the idempotency key is taken by a job of another submitter; use another key"
    )
    assert (await idle.post(JOBS, json=body, headers=stranger)).status_code == 202, (
        "the same submission is a repetition"
    )


async def test_a_default_that_is_written_out_is_no_difference(busy: AsyncClient) -> None:
    body = {"workflow_id": "hello_world", "idempotency_key": "k"}
    first = (await busy.post(JOBS, json=body)).json()
    async with busy.stream("GET", first["stream_url"]) as stream:
        await stream.aread()
    inputs = (await busy.get(first["status_url"])).json()["input_params"]
    again = await busy.post(JOBS, json={**body, "input_params": inputs})
    assert (again.status_code, again.json()["job_id"]) == (200, first["job_id"])
    assert again.json()["submitted_at"] == first["submitted_at"]
    other = await busy.post(JOBS, json={**body, "input_params": {"name": "Eve"}})
    assert "differs in input_params.name" in problem(other, 409, "conflict")["detail"]


async def test_a_request_with_a_known_key_says_what_differs(idle_counter: Any) -> None:
    await idle_counter.put("b.tif", b"II*\0" + bytes(300))
    await idle_counter.submit(idempotency_key="k", correlation_id="one", on_behalf_of=ADA)
    again = await idle_counter.post("submit", order(idempotency_key="k", correlation_id="two"))
    assert again.status_code == 200
    changed = order(idempotency_key="k", file_name="b.tif", overwrite=True)
    detail = problem(await idle_counter.post("submit", changed), 409, "conflict")["detail"]
    assert "differs in file_name, overwrite;" in detail


async def test_the_earlier_names_of_the_routes(idle_counter: Any) -> None:
    client = idle_counter.client
    accepted = await client.post("/platform/submit_dag", json=order())
    assert accepted.status_code == 202, accepted.text
    request_id = accepted.json()["request_id"]
    answers = [
        await client.get(path) for path in (f"/platform/dag_status/{request_id}", accepted.json()["monitor_url"])
    ]
    assert [answer.status_code for answer in answers] == [200, 200]
    assert answers[0].json()["asset_id"] == answers[1].json()["asset_id"]
    submitter = await idle_counter.key(Role.SUBMITTER, platform_id="arcgis")
    assert (await client.post("/platform/submit_dag", json=order(), headers=submitter)).status_code == 403
    assert (await client.get(f"/platform/dag_status/{request_id}", headers=submitter)).status_code == 404
    reader = await idle_counter.key(Role.READER)
    assert (await client.post("/platform/submit_dag", json=order(), headers=reader)).status_code == 403


async def test_the_status_of_a_job_without_an_asset_says_where_to_look(idle_counter: Any) -> None:
    client = idle_counter.client
    job_id = (await client.post(JOBS, json={"workflow_id": "hello_world"})).json()["job_id"]
    answer = (await idle_counter.get(f"/api/platform/status/{job_id}")).json()
    assert answer | {"kind": "job", "status": "queued", "status_url": f"{JOBS}/{job_id}"} == answer
    assert (await client.get(answer["status_url"])).status_code == 200
    submitter = await idle_counter.key(Role.SUBMITTER, platform_id="ddh")
    refusals = [
        (await idle_counter.get(f"/api/platform/status/{identifier}", by=submitter)).text.replace(identifier, "…")
        for identifier in (job_id, job_id[:-1] + "f")
    ]
    assert refusals[0] == refusals[1]
    assert "there is no request, asset or job" in refusals[0]


async def test_priority_has_one_direction_in_answers(idle_counter: Any) -> None:
    asset = (await idle_counter.submit(priority=2))["asset_id"]
    details = (await idle_counter.get(f"/api/assets/{asset}")).json()
    shown = [details, details["requests"][0]]
    assert [(view["job_priority"], view["priority"]) for view in shown] == [(3, 2), (3, 2)]
    job = (await idle_counter.get(f"{JOBS}/{details['requests'][0]['job_id']}")).json()
    assert job["priority"] == 3


async def test_a_reviewer_is_recorded_beside_the_key(counter: Any) -> None:
    asset = (await counter.published(submitted_by="kim"))["asset_id"]
    decided = await counter.decide("approve", asset_id=asset, clearance_level="ouo", reviewer=ADA)
    assert (decided["reviewer"], decided["decided_by"], decided["on_behalf_of"]) == ("key:root", "key:root", ADA)
    status = await counter.status(asset)
    assert (status["asset"]["reviewer"], status["asset"]["reviewed_on_behalf_of"]) == ("key:root", ADA)
    await counter.decide("revoke", asset_id=asset, reason="wrong", reviewer="bo")
    await counter.published(overwrite=True)
    assert (await counter.status(asset))["asset"]["reviewed_on_behalf_of"] is None
    await counter.decide("reject", asset_id=asset, reason="no", reviewer="cy")
    await counter.published(overwrite=True)
    await counter.decide("rollback", asset_id=asset, revision=2, on_behalf_of="di")
    await counter.decide("unpublish", asset_id=asset, on_behalf_of="ed")
    details = (await counter.get(f"/api/assets/{asset}")).json()
    assert [(entry["decision"], entry["on_behalf_of"]) for entry in reversed(details["audit"])] == [
        ("submitted", "kim"),
        ("approved", ADA),
        ("revoked", "bo"),
        ("reactivated", None),
        ("rejected", "cy"),
        ("overwritten", None),
        ("rolled_back", "di"),
        ("unpublished", "ed"),
    ]
    assert {entry["actor"] for entry in details["audit"]} == {"key:root"}
    assert [request["on_behalf_of"] for request in details["requests"]] == [None, None, "kim"]


async def test_a_key_may_be_forbidden_or_required_to_name_somebody(idle_counter: Any, pool: Pool) -> None:
    silent, naming = [
        bearing(await make_key(idle_counter.url, Role.ADMIN, may_name=may))
        for may in (MayName.FORBIDDEN, MayName.REQUIRED)
    ]
    client = idle_counter.client
    for path, body in (
        (JOBS, {"workflow_id": "hello_world"}),
        ("/api/platform/submit", order()),
        ("/api/platform/retry", {"asset_id": "a"}),
        ("/api/platform/reject", {"asset_id": "a", "reason": "r"}),
        ("/api/platform/unpublish", {"asset_id": "a"}),
    ):
        named = await client.post(path, json={**body, "on_behalf_of": ADA}, headers=silent)
        assert ADA in problem(named, 403, "forbidden")["detail"], path
        unnamed = await client.post(path, json=body, headers=naming)
        assert problem(unnamed, 422, "invalid_input")["errors"][0]["field"] == "on_behalf_of", path
    stage = "/api/jobs/submit/none"
    problem(await client.post(stage, json={}, params={"on_behalf_of": ADA}, headers=silent), 403, "forbidden")
    problem(await client.post(stage, json={}, headers=naming), 422, "invalid_input")
    async with pool.connection() as conn:
        row = await (await conn.execute("SELECT count(*) AS messages FROM dagapp.dag_queue")).fetchone()
    assert row == {"messages": 0}
    assert (await client.post(JOBS, json={"workflow_id": "hello_world"}, headers=silent)).status_code == 202
    body = {"workflow_id": "hello_world", "on_behalf_of": ADA}
    assert (await client.post(JOBS, json=body, headers=naming)).status_code == 202


FLAKY = """
workflow_id: flaky
name: Fails, but not for ever
nodes:
  START: {type: start, next: bad}
  bad: {type: task, handler: fail, params: {error_message: "no luck"}, retry: {max_attempts: 1}, next: END}
  END: {type: end}
"""


async def test_a_remedy_fits_the_error(counter: Any) -> None:
    """Data that can never pass is not to be tried again."""
    registry = counter.engine.workflow_registry
    registry._workflows |= registry_of(counter.engine.registry, FLAKY)._workflows
    final = await counter.published(workflow_id="failing")
    assert final["error"]["message"].endswith("no luck")
    assert final["error"]["remedy"] == (
        "POST /api/platform/retry with other processing_options, "
        "or fix the file and submit it again with overwrite=true"
    )
    passing = await counter.published(workflow_id="flaky", overwrite=True)
    assert passing["error"]["remedy"].startswith("POST /api/platform/retry to try again, or fix the file")
