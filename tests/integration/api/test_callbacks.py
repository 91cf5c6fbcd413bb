"""Callbacks over HTTP: who sees them, what they tell, and sending one again."""

from __future__ import annotations

import json
from typing import Any

import pytest

from geomill.domain.access.principal import Role
from geomill.engine.maintenance.callbacks import CallbackCaller, CallbackOptions
from geomill.store.pool import Pool
from tests.integration.api.desk import TIFF, problem
from tests.integration.maintenance.receiver import LOOPBACK, Receiver
from tests.integration.maintenance.receiver import receiver as receiver

CALLBACKS = "/api/v1/callbacks"
NOWHERE = "http://203.0.113.7:9/hook?token=hidden&a=b"
ARCGIS = {"item_id": "i", "layer_index": 1}
ABSENT = "0" * 36


async def seed(pool: Pool, job_id: str, platform_id: str | None = None, url: str = NOWHERE, **columns: Any) -> None:
    """A callback that was given up, of a job that failed."""
    fields = {
        "job_id": job_id,
        "url": url,
        "payload": json.dumps({"job_id": job_id}),
        "platform_id": platform_id,
        "status": "given_up",
        "attempts": 3,
        **columns,
    }
    ended = "NULL" if fields["status"] == "pending" else "now()"
    names, places = ", ".join(fields), ", ".join(f"%({name})s" for name in fields)
    async with pool.connection() as conn:
        await conn.execute(
            "INSERT INTO dagapp.dag_jobs (job_id, workflow_id, status, completed_at, called_back_run)"
            " VALUES (%s, 'w', 'failed', now(), 1)",
            (job_id,),
        )
        await conn.execute(f"INSERT INTO dagapp.dag_callbacks ({names}, ended_at) VALUES ({places}, {ended})", fields)


@pytest.fixture
async def counter(make_counter: Any) -> Any:
    return await make_counter()


async def test_a_submitter_sees_and_sends_only_those_of_its_platforms_requests(make_counter: Any) -> None:
    counter = await make_counter(busy=True)
    await counter.put("b.tif", TIFF, container="arcgis")
    theirs = {"platform_id": "arcgis", "platform_refs": ARCGIS, "container_name": "arcgis", "file_name": "b.tif"}
    own = (await counter.published(callback_url=NOWHERE))["job_id"]
    foreign = (await counter.published(callback_url=NOWHERE, **theirs))["job_id"]
    house = (await counter.engine.run("hello_world", callback_url=NOWHERE)).job_id
    job_ids = {own, foreign, house}
    for job_id in job_ids:
        await counter.engine.rows_soon(f"SELECT FROM dagapp.dag_callbacks WHERE job_id = '{job_id}'")
    by = await counter.key(Role.SUBMITTER, platform_id="ddh")
    listed = (await counter.get(CALLBACKS, by=by)).json()["callbacks"]
    assert [callback["job_id"] for callback in listed] == [own]
    assert (await counter.get(f"/api/v1/jobs/{own}/callback", by=by)).status_code == 200
    assert (await counter.client.post(f"{CALLBACKS}/{own}/send", headers=by)).status_code == 202
    for job_id in (foreign, house):
        for method, path in (("GET", "/api/v1/jobs/{}/callback"), ("POST", CALLBACKS + "/{}/send")):
            refused = await counter.client.request(method, path.format(job_id), headers=by)
            none = await counter.client.request(method, path.format(ABSENT), headers=by)
            assert (refused.status_code, none.status_code) == (404, 404)
            assert refused.text.replace(job_id, "…") == none.text.replace(ABSENT, "…")
    everything = (await counter.get(CALLBACKS)).json()["callbacks"]
    assert {callback["job_id"] for callback in everything} == job_ids


async def test_a_reader_who_also_submits_sends_only_its_own(counter: Any, pool: Pool) -> None:
    await seed(pool, "foreign", "arcgis")
    by = await counter.key(Role.SUBMITTER, Role.READER, platform_id="ddh")
    assert (await counter.get("/api/v1/jobs/foreign/callback", by=by)).status_code == 200
    problem(await counter.client.post(f"{CALLBACKS}/foreign/send", headers=by), 404, "not_found")
    reader = await counter.key(Role.READER)
    problem(await counter.client.post(f"{CALLBACKS}/foreign/send", headers=reader), 403, "forbidden")
    operator = await counter.key(Role.OPERATOR)
    assert (await counter.client.post(f"{CALLBACKS}/foreign/send", headers=operator)).status_code == 202


async def test_a_partner_reads_no_addresses_and_nobody_the_token(counter: Any, pool: Pool) -> None:
    await seed(pool, "inside", "ddh", last_error="'x' has the address 10.0.0.7, which is not public")
    await seed(pool, "answered", "ddh", last_error="the status was 500", last_status=500)
    by = await counter.key(Role.SUBMITTER, platform_id="ddh")
    seen = await counter.get("/api/v1/jobs/inside/callback", by=by)
    assert "10.0.0.7" not in seen.text + (await counter.get(CALLBACKS, by=by)).text
    assert seen.json()["reason"].startswith("the call got no response")
    answered = (await counter.get("/api/v1/jobs/answered/callback", by=by)).json()
    assert (answered["reason"], answered["last_status_code"]) == ("the status was 500", 500)
    staff = await counter.get("/api/v1/jobs/inside/callback")
    assert "10.0.0.7" in staff.json()["reason"]
    assert staff.json()["url"] == "http://203.0.113.7:9/hook?token=…&a=…"
    assert "hidden" not in seen.text + staff.text


async def test_a_callback_that_was_given_up_is_sent_again(counter: Any, pool: Pool, receiver: Receiver) -> None:
    await seed(pool, "job", url=receiver.url, attempts=40, last_error="the status was 500", last_status=500)
    async with pool.connection() as conn:
        await conn.execute("UPDATE dagapp.dag_callbacks SET created_at = now() - interval '9 days'")
    before = (await counter.get("/api/v1/jobs/job/callback")).json()
    assert (before["status"], before["last_status_code"], before["next_attempt_at"]) == ("given_up", 500, None)
    sent = (await counter.client.post(f"{CALLBACKS}/job/send")).json()
    assert (sent["status"], sent["attempts"]) == ("pending", 40)
    assert sent["next_attempt_at"]
    again = (await counter.client.post(f"{CALLBACKS}/job/send")).json()
    assert again["sent_again_at"] == sent["sent_again_at"]  # it is due already

    receiver.statuses = [500, 204]
    caller = CallbackCaller(pool, CallbackOptions(allowed=LOOPBACK))
    await caller.run_once()
    await caller.idle()
    failed = (await counter.get("/api/v1/jobs/job/callback")).json()
    assert (failed["status"], failed["last_status_code"]) == ("pending", 500)  # repeated for a day from now on
    await counter.client.post(f"{CALLBACKS}/job/send")
    await caller.run_once()
    await caller.idle()
    after = (await counter.get("/api/v1/jobs/job/callback")).json()
    assert (after["status"], after["last_status_code"], after["reason"]) == ("delivered", 204, None)
    assert [json.loads(request.body)["job_id"] for request in receiver.requests] == ["job", "job"]
    entries = (await counter.get("/api/v1/audit", action="callback_sent")).json()["entries"]
    assert [entry["target"] for entry in entries] == ["job", "job"]


async def test_pages_and_filters_of_callbacks(counter: Any, pool: Pool) -> None:
    for number in range(4):
        await seed(pool, f"j{number}")
    await seed(pool, "j4", status="pending")
    seen: list[str] = []
    cursor = None
    while not seen or cursor:
        page = (await counter.get(CALLBACKS, limit=2, **({"cursor": cursor} if cursor else {}))).json()
        seen += [callback["job_id"] for callback in page["callbacks"]]
        cursor = page["next_cursor"]
    assert seen == ["j4", "j3", "j2", "j1", "j0"]
    pending = (await counter.get(CALLBACKS, status="pending")).json()["callbacks"]
    assert [callback["job_id"] for callback in pending] == ["j4"]
    problem(await counter.get(CALLBACKS, status="lost"), 422, "invalid_input")
