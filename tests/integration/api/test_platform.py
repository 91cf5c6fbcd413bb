"""The front desk over HTTP: submit, ask, decide, as partners and reviewers call it."""

from __future__ import annotations

from typing import Any

import pytest

from geomill.domain.access.principal import Role
from tests.integration.api.desk import REFS, TIFF, order, problem

TABLES = ("app.geospatial_assets", "app.platform_requests", "app.asset_audit", "dagapp.dag_queue")


async def rows(counter: Any) -> int:
    counts = [(await counter.engine.rows(f"SELECT count(*) FROM {table}"))[0]["count"] for table in TABLES]
    return sum(counts)


@pytest.fixture
async def idle_counter(make_counter: Any) -> Any:
    return await make_counter()


@pytest.fixture
async def counter(make_counter: Any) -> Any:
    return await make_counter(busy=True)


async def test_an_order_is_taken_at_once(idle_counter: Any) -> None:
    answer = await idle_counter.post("submit", order(clearance_level="public", priority=1, correlation_id="c"))
    assert answer.status_code == 202
    accepted = answer.json()
    assert answer.headers["location"] == accepted["monitor_url"] == f"/api/platform/status/{accepted['request_id']}"
    assert (accepted["operation"], accepted["revision"], accepted["status"]) == ("created", 1, "accepted")
    status = await idle_counter.status(accepted["request_id"])
    assert (status["status"], status["processing_status"], status["progress"]["fraction"]) == ("queued", "pending", 0.0)
    assert (status["asset"]["proposed_clearance"], status["clearance_state"]) == ("public", "uncleared")


async def test_the_three_fields_of_ddh_are_its_refs(idle_counter: Any) -> None:
    first = await idle_counter.post("submit", {**order(platform_id=None, platform_refs=None), **REFS})
    second = await idle_counter.post("submit", order())
    assert problem(second, 409, "asset_exists")["detail"].count(first.json()["asset_id"]) == 1


async def test_a_dry_run_tells_the_names_and_keeps_nothing(idle_counter: Any) -> None:
    answer = await idle_counter.post("submit", order(), dry_run="true")
    assert answer.status_code == 200
    would = answer.json()["would"]
    assert would["blob_prefix"] == "idnlulc/jakarta2024/v10/_r1"
    assert would["input_params"]["file_name"] == "a.tif"
    assert await rows(idle_counter) == 0


async def test_a_known_key_gives_the_same_request(idle_counter: Any) -> None:
    first = await idle_counter.submit(idempotency_key="k")
    again = await idle_counter.post("submit", order(idempotency_key="k"))
    assert (again.status_code, again.json()["operation"]) == (200, "repeated")
    assert again.json()["request_id"] == first["request_id"]
    other = await idle_counter.post("submit", order(idempotency_key="k", platform_refs={**REFS, "version_id": "v2"}))
    problem(other, 409, "conflict")


BAD: list[tuple[dict[str, Any], int, str, str]] = [
    ({"platform_id": "ddhh"}, 404, "not_found", "ddh"),
    ({"platform_id": "DDH"}, 422, "invalid_input", "platform_id"),
    ({"platform_refs": {"dataset_id": "x", "version_id": "1"}}, 422, "invalid_input", "platform_refs.resource_id"),
    ({"platform_refs": {**REFS, "colour": "red"}}, 422, "invalid_input", "platform_refs.colour"),
    ({"platform_refs": {**REFS, "dataset_id": ""}}, 422, "invalid_input", "must not be empty"),
    ({"platform_refs": {**REFS, "dataset_id": "a\nb"}}, 422, "invalid_input", "control characters"),
    ({"platform_refs": {**REFS, "dataset_id": "a\x00b"}}, 422, "invalid_input", "control characters"),
    ({"platform_refs": {**REFS, "dataset_id": "x" * 201}}, 422, "invalid_input", "at most 200"),
    ({"platform_refs": {**REFS, "dataset_id": 1.5}}, 422, "invalid_input", "platform_refs.dataset_id"),
    ({"platform_refs": {**REFS, "dataset_id": True}}, 422, "invalid_input", "platform_refs.dataset_id"),
    ({"platform_refs": {**REFS, "dataset_id": 2**60}}, 422, "invalid_input", "send it as a string"),
    ({"platform_refs": []}, 422, "invalid_input", "platform_refs"),
    ({"platform_refs": None}, 422, "invalid_input", "platform_refs is missing"),
    ({"dataset_id": "x"}, 422, "invalid_input", "not both"),
    ({"platform_id": "arcgis"}, 422, "invalid_input", "platform_refs.item_id"),
    ({"data_type": "raaster"}, 422, "invalid_input", "data_type"),
    ({"data_type": None}, 422, "invalid_input", "data_type"),
    ({"data_type": "vector"}, 422, "unusable_source", "data_type=raster"),
    ({"file_name": "b.tif"}, 422, "unusable_source", "upload it to the bronze zone first"),
    ({"file_name": []}, 422, "invalid_input", "file_name"),
    ({"file_name": ["a.tif", "a.tif"]}, 422, "invalid_inputs", "one by one"),
    ({"file_name": "../../etc/passwd"}, 422, "invalid_name", "file_name"),
    ({"file_name": "/etc/passwd"}, 422, "invalid_name", "file_name"),
    ({"file_name": "a\x07.tif"}, 422, "invalid_name", "file_name"),
    ({"file_name": "a\x00.tif"}, 422, "invalid_input", "NUL"),
    ({"container_name": ".."}, 422, "invalid_name", "container_name"),
    ({"container_name": "https://evil.example"}, 422, "invalid_name", "container_name"),
    ({"workflow_id": "publish_fil"}, 404, "not_found", "publish_file"),
    ({"processing_options": {"blob_prefx": "x"}}, 422, "invalid_inputs", "blob_prefx"),
    ({"processing_options": {"blob_prefix": "x"}}, 422, "invalid_inputs", "set by geomill"),
    ({"processing_options": {"a\x00b": 1}}, 422, "invalid_inputs", ""),
    ({"processing_options": "fast"}, 422, "invalid_input", "processing_options"),
    ({"overwrite": "yes"}, 422, "invalid_input", "overwrite"),
    ({"priority": 0}, 422, "invalid_input", "priority"),
    ({"priority": "1"}, 422, "invalid_input", "priority"),
    ({"clearance_level": "secret"}, 422, "invalid_input", "clearance_level"),
    ({"callback_url": "ftp://x"}, 422, "invalid_input", "callback_url"),
    ({"reviewer": "me"}, 422, "invalid_input", "the field does not exist"),
]


async def test_a_wrong_order_is_told_and_leaves_nothing(idle_counter: Any) -> None:
    for changes, status, code, says in BAD:
        answer = await idle_counter.post("submit", order(**changes))
        problem(answer, status, code)
        assert says in answer.text, changes
    assert await rows(idle_counter) == 0


BODIES = [
    (b"{" * 10_000_000, 413, "too_large"),
    (b'{"data_type": "\xff\xfe"}', 400, "malformed_request"),
    (b"not json", 400, "malformed_request"),
    (b"[]", 422, "invalid_input"),
    (b"", 422, "invalid_input"),
    (b'{"platform_refs": {"\\ud800": 1}, "data_type": "raster"}', 422, "invalid_input"),
    (b'{"processing_options": {"x": NaN}, "data_type": "raster"}', 422, "invalid_input"),
]


@pytest.mark.parametrize("action", ["submit", "approve", "rollback"])
async def test_a_body_that_is_none(idle_counter: Any, action: str) -> None:
    headers = {"Content-Type": "application/json"}
    for content, status, code in BODIES:
        answer = await idle_counter.client.post(f"/api/platform/{action}", content=content, headers=headers)
        problem(answer, status, code)


async def test_a_body_that_is_nested_without_end(idle_counter: Any) -> None:
    """Python 3.11 cannot read it, later ones can; it is refused by all."""
    body = b'{"a":' * 5000 + b"1" + b"}" * 5000
    headers = {"Content-Type": "application/json"}
    answer = await idle_counter.client.post("/api/platform/submit", content=body, headers=headers)
    assert (answer.status_code, answer.json()["code"]) in ((400, "malformed_request"), (422, "invalid_input"))


async def test_an_inactive_platform_takes_nothing(idle_counter: Any) -> None:
    body = {"display_name": "D", "is_active": False}
    assert (await idle_counter.client.patch("/api/platforms/ddh", json=body)).status_code == 200
    refusal = problem(await idle_counter.post("submit", order()), 409, "platform_inactive")
    assert "administrator" in refusal["detail"]
    assert [platform["platform_id"] for platform in (await idle_counter.get("/api/platforms")).json()["platforms"]] == [
        "arcgis"
    ]


async def test_a_whole_life_over_http(counter: Any) -> None:
    status = await counter.published()
    asset_id = status["asset_id"]
    assert (status["status"], status["progress"]["fraction"]) == ("completed", 1.0)
    assert (
        status["outputs"]["blob_path"] == status["asset"]["blob_path"] == "published/idnlulc/jakarta2024/v10/_r1/a.tif"
    )
    served = {"stac_item", "viewer", "tilejson", "tiles", "wmts", "wms", "preview", "download"}
    assert set(status["links"]) == {"asset", "job", "events", "stream"} | served
    for link in ("asset", "job", "events"):
        assert (await counter.get(status["links"][link])).status_code == 200

    decision = await counter.decide("approve", job_id=status["job_id"], clearance_level="ouo", expected_revision=1)
    assert (decision["decision"], decision["clearance_state"], decision["export_job_id"]) == ("approved", "ouo", None)
    decision = await counter.decide("approve", request_id=status["request_id"], access_level="public")
    assert (decision["decision"], decision["reviewer"]) == ("clearance_changed", "key:root")
    assert (await counter.ended(decision["export_job_id"]))["status"] == "completed"
    export = (await counter.status(asset_id))["export"]
    assert (export["status"], export["external_revision"], len(export["files"])) == ("completed", 1, 1)

    decision = await counter.decide("approve", asset_id=asset_id, clearance_level="ouo")
    assert "hidden" in decision["warning"]
    assert decision["action_required"]
    assert (await counter.ended(decision["export_job_id"]))["status"] == "completed"

    await counter.put("a.tif", TIFF + b"2")
    second = await counter.published(overwrite=True)
    assert (second["revision"], second["approval_state"]) == (2, "pending_review")
    assert (await counter.decide("reject", asset_id=asset_id, reason=" holes "))["approval_state"] == "rejected"
    decision = await counter.decide("rollback", asset_id=asset_id, revision=1, reason="clouds", expected_revision=2)
    assert (decision["revision"], decision["approval_state"]) == (3, "pending_review")
    await counter.decide("approve", asset_id=asset_id, clearance_level="ouo")
    would = await counter.decide("unpublish", asset_id=asset_id, dry_run=True, delete_data=True)
    assert (would["dry_run"], would["deleted"], would["would"]["deletes_revisions"]) == (True, True, 3)
    decision = await counter.decide("revoke", asset_id=asset_id, reason="wrong data")
    assert (decision["deleted"], decision["approval_state"]) == (True, "rejected")
    again = await counter.submit()
    assert (again["operation"], again["revision"]) == ("reactivated", 4)

    details = (await counter.get(f"/api/assets/{asset_id}")).json()
    assert [revision["revision"] for revision in details["revisions"]] == [3, 2, 1]
    assert [entry["decision"] for entry in reversed(details["audit"])] == [
        "submitted",
        "approved",
        "clearance_changed",
        "clearance_changed",
        "overwritten",
        "rejected",
        "rolled_back",
        "approved",
        "revoked",
        "reactivated",
    ]
    assert {entry["actor"] for entry in details["audit"]} == {"key:root"}
    assert details["audit"][0]["client_address"] == "127.0.0.1"
    assert [request["revision"] for request in details["requests"]] == [4, 2, 1]
    assert {job["purpose"] for job in details["jobs"]} >= {"process", "export", "withdraw"}


async def test_metadata_is_checked_field_by_field_and_goes_with_the_revision(counter: Any) -> None:
    wrong = {"title": "<b>x</b>", "license": "mine", "providers": [{"name": "A", "url": "javascript:x"}]}
    refused = problem(await counter.post("submit", order(metadata=wrong)), 422, "invalid_input")
    assert [error["field"] for error in refused["errors"]] == [
        "metadata.title",
        "metadata.license",
        "metadata.providers.0.url",
    ]
    assert await rows(counter) == 0
    done = await counter.published(metadata={"title": "Heights", "license": "cc-by-4.0"})
    assert done["outputs"]["dataset_metadata"] == {"title": "Heights", "license": "CC-BY-4.0"}


async def test_a_retry_with_options_is_a_new_request_of_the_same_revision(counter: Any) -> None:
    failed = await counter.published(workflow_id="failing")
    unknown = await counter.post("retry", {"asset_id": failed["asset_id"], "processing_options": {"luck": 1}})
    assert problem(unknown, 422, "invalid_inputs")["errors"][0]["field"] == "luck"
    other = await counter.key(Role.SUBMITTER, platform_id="ddh")
    again = await counter.post(
        "retry", {"asset_id": failed["asset_id"], "processing_options": {"luck": None}}, by=other
    )
    assert again.status_code == 202
    assert again.json()["revision"] == 1
    assert again.json()["request_id"] != failed["request_id"]
    assert (await counter.status(failed["request_id"]))["status"] == "superseded"


async def test_the_status_of_a_failure_says_what_to_do(counter: Any) -> None:
    accepted = await counter.submit(workflow_id="failing", file_name="a.tif")
    failed = await counter.ended(accepted["request_id"])
    assert (failed["status"], failed["processing_status"]) == ("failed", "failed")
    assert failed["error"]["message"]
    assert failed["error"]["node"]
    assert failed["error"]["remedy"] == (
        "POST /api/platform/retry with other processing_options, "
        "or fix the file and submit it again with overwrite=true"
    )
    refused = await counter.post("approve", {"asset_id": failed["asset_id"], "clearance_level": "ouo"})
    assert "cannot be approved" in problem(refused, 409, "asset_state")["detail"]
    problem(
        await counter.post("retry", {"asset_id": failed["asset_id"], "expected_revision": 2}), 409, "revision_changed"
    )
    again = await counter.post("retry", {"job_id": failed["job_id"]})
    assert again.status_code == 202
    assert again.json()["request_id"] == failed["request_id"]
    assert again.json()["job_id"] != failed["job_id"]
    assert (await counter.ended(failed["request_id"]))["retry_count"] == 1
    newer = await counter.published(overwrite=True)
    assert newer["error"] is None
    old = await counter.status(failed["request_id"])
    assert (old["status"], old["error"]["message"]) == ("failed", failed["error"]["message"])


async def test_each_of_the_three_ids_in_each_phase(idle_counter: Any) -> None:
    counter = idle_counter
    accepted = await counter.submit()

    async def phase() -> set[tuple[str, str, str]]:
        looks = [await counter.status(accepted[name]) for name in ("request_id", "job_id", "asset_id")]
        return {(look["status"], look["request_id"], look["job_id"]) for look in looks}

    ids = accepted["request_id"], accepted["job_id"]
    assert await phase() == {("queued", *ids)}
    counter.engine.orchestrator()
    await counter.engine.until(accepted["job_id"], lambda job: job is not None and job.status.value == "running")
    assert await phase() == {("running", *ids)}
    counter.engine.worker()
    await counter.ended(accepted["job_id"])
    assert await phase() == {("completed", *ids)}
    newer = await counter.submit(overwrite=True)
    assert (await counter.status(accepted["request_id"]))["status"] == "completed"
    assert (await counter.status(accepted["asset_id"]))["request_id"] == newer["request_id"]


async def test_a_superseded_request_says_so(idle_counter: Any) -> None:
    first = await idle_counter.submit()
    await idle_counter.submit(overwrite=True)
    for name in ("request_id", "job_id"):
        assert (await idle_counter.status(first[name]))["status"] == "superseded"


WRONG: list[tuple[str, dict[str, Any], str]] = [
    ("approve", {"asset_id": "a"}, "clearance_level"),
    ("approve", {"asset_id": "a", "clearance_level": "uncleared"}, "ouo or public"),
    ("approve", {"clearance_level": "ouo"}, "exactly one"),
    ("approve", {"asset_id": "a", "job_id": "b", "clearance_level": "ouo"}, "exactly one"),
    ("approve", {"asset_id": "a", "clearance_level": "ouo", "reviewer": "a\nb"}, "reviewer"),
    ("approve", {"asset_id": "a", "clearance_level": "ouo", "expected_revision": 0}, "expected_revision"),
    ("approve", {"asset_id": "a", "clearance_level": "ouo", "expected_revision": "1"}, "expected_revision"),
    ("reject", {"asset_id": "a"}, "reason"),
    ("reject", {"asset_id": "a", "reason": "  "}, "reason"),
    ("reject", {"asset_id": "a", "reason": "\x00"}, "NUL"),
    ("revoke", {"asset_id": "a"}, "reason"),
    ("unpublish", {"asset_id": "a", "delete_data": "yes"}, "delete_data"),
    ("rollback", {"asset_id": "a"}, "revision"),
    ("rollback", {"asset_id": "a", "revision": 2**31}, "revision"),
    ("retry", {}, "exactly one"),
    ("export/retry", {"asset_id": "\x00"}, "NUL"),
]


async def test_a_wrong_decision(idle_counter: Any) -> None:
    for action, body, says in WRONG:
        answer = await idle_counter.post(action, body)
        problem(answer, 422, "invalid_input")
        assert says in answer.text, (action, body)


DECISIONS: list[tuple[str, dict[str, Any]]] = [
    ("approve", {"clearance_level": "ouo"}),
    ("reject", {"reason": "x"}),
    ("revoke", {"reason": "x"}),
    ("unpublish", {}),
    ("rollback", {"revision": 1}),
    ("retry", {}),
    ("export/retry", {}),
]


@pytest.mark.parametrize(("action", "body"), DECISIONS)
async def test_a_decision_about_nothing_or_too_early(idle_counter: Any, action: str, body: dict[str, Any]) -> None:
    refusal = problem(await idle_counter.post(action, {"asset_id": "nobody", **body}), 404, "not_found")
    assert "nobody" in refusal["detail"]
    accepted = await idle_counter.submit()
    if action not in ("reject", "unpublish"):
        refused = await idle_counter.post(action, {"request_id": accepted["request_id"], **body})
        problem(refused, 409, "asset_state")
    if action != "retry":
        late = await idle_counter.post(action, {"asset_id": accepted["asset_id"], **body, "expected_revision": 9})
        assert late.status_code == 409


async def test_a_status_of_nothing(idle_counter: Any) -> None:
    for identifier in ("nobody", "%00", "a" * 65, "%ff%fe", "..%2f..%2fetc"):
        answer = await idle_counter.get(f"/api/platform/status/{identifier}")
        assert answer.status_code in (404, 422), answer.text
        assert answer.headers["content-type"] == "application/problem+json"


async def test_a_priority_above_normal_is_the_operators_to_give(idle_counter: Any) -> None:
    partner = await idle_counter.key(Role.SUBMITTER, platform_id="ddh")
    for priority in (1, 4):
        refused = problem(await idle_counter.post("submit", order(priority=priority), by=partner), 403, "forbidden")
        assert f"the priority {priority} is above normal, which is 5" in refused["detail"]
        assert "5 to 10" in str(refused)
    assert await rows(idle_counter) == 0
    assert (await idle_counter.post("submit", order(priority=10), by=partner)).status_code == 202
    operator = await idle_counter.key(Role.OPERATOR)
    urgent = await idle_counter.post("submit", order(priority=1, overwrite=True), by=operator)
    assert urgent.status_code == 202
    newest = "SELECT priority, tenant FROM dagapp.dag_queue ORDER BY sequence DESC LIMIT 1"
    assert await idle_counter.engine.rows(newest) == [{"priority": 4, "tenant": "ddh"}]


async def test_a_partner_who_retries_what_an_operator_hurried_is_back_at_normal(counter: Any) -> None:
    failed = await counter.published(workflow_id="failing", priority=1)
    partner = await counter.key(Role.SUBMITTER, platform_id="ddh")
    query = "SELECT priority FROM dagapp.dag_jobs ORDER BY created_at"
    assert await counter.engine.rows(query) == [{"priority": 4}]
    again = await counter.post("retry", {"asset_id": failed["asset_id"]}, by=partner)
    assert again.status_code == 202
    await counter.engine.until(again.json()["job_id"], lambda job: job is not None)
    assert await counter.engine.rows(query) == [{"priority": 4}, {"priority": 0}]


async def test_another_platforms_submitter_sees_and_touches_nothing(counter: Any) -> None:
    failed = await counter.published(workflow_id="failing")
    own = await counter.key(Role.SUBMITTER, platform_id="ddh")
    other = await counter.key(Role.SUBMITTER, platform_id="arcgis")
    ids = [failed[name] for name in ("asset_id", "request_id", "job_id")]
    for identifier in ids:
        path = f"/api/platform/status/{identifier}"
        assert (await counter.get(path, by=own)).status_code == 200
        unseen = problem(await counter.get(path, by=other), 404, "not_found")
        nobody = problem(await counter.get("/api/platform/status/nobody", by=other), 404, "not_found")
        assert unseen["detail"].replace(identifier, "nobody") == nobody["detail"], "not even that it exists"
    for name in ("asset_id", "request_id", "job_id"):
        problem(await counter.post("retry", {name: failed[name]}, by=other), 404, "not_found")
    problem(await counter.get(f"/api/assets/{failed['asset_id']}", by=other), 404, "not_found")
    for query in ({}, {"platform_id": "ddh"}, {"text": "lulc"}, {"deleted": "true"}):
        assert (await counter.get("/api/assets", by=other, **query)).json()["assets"] == []
    assert len((await counter.get("/api/assets", by=own)).json()["assets"]) == 1
    problem(await counter.post("submit", order(overwrite=True), by=other), 403, "forbidden")
    assert (await counter.post("retry", {"asset_id": failed["asset_id"]}, by=own)).status_code == 202
    for action, body in DECISIONS:
        if action != "retry":
            problem(await counter.post(action, {"asset_id": failed["asset_id"], **body}, by=own), 403, "forbidden")
    problem(await counter.get("/api/assets/reports/failed", by=own), 403, "forbidden")


async def test_who_may_also_read_still_submits_for_its_own_platform_only(idle_counter: Any) -> None:
    both = await idle_counter.key(Role.SUBMITTER, Role.READER, platform_id="arcgis")
    problem(await idle_counter.post("submit", order(), by=both), 403, "forbidden")
    accepted = await idle_counter.submit()
    assert (await idle_counter.get(f"/api/platform/status/{accepted['asset_id']}", by=both)).status_code == 200
    problem(await idle_counter.post("retry", {"asset_id": accepted["asset_id"]}, by=both), 403, "forbidden")
    await idle_counter.put("a.tif", TIFF, container="arcgis")
    body = order(platform_id="arcgis", platform_refs={"item_id": "x", "layer_index": 0}, container_name="arcgis")
    assert (await idle_counter.post("submit", body, by=both)).status_code == 202
