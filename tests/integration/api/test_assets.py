"""Lists of assets, pages of them, reports, and the registry of platforms."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from psycopg.types.json import Json

from geomill.domain.access.principal import Role
from tests.integration.api.desk import REFS, order, problem


@pytest.fixture
async def counter(make_counter: Any) -> Any:
    return await make_counter()


async def listed(counter: Any, **query: Any) -> list[str]:
    answer = await counter.get("/api/assets", **query)
    assert answer.status_code == 200, answer.text
    return [asset["platform_refs"].get("version_id") or asset["platform_id"] for asset in answer.json()["assets"]]


async def test_pages_hold_every_asset_once_while_more_come(counter: Any) -> None:
    for number in range(7):
        await counter.submit(platform_refs={**REFS, "version_id": f"v{number}"})
    versions, cursor = [], None
    while True:
        query = {"limit": 3, **({"cursor": cursor} if cursor else {})}
        page = (await counter.get("/api/assets", **query)).json()
        versions += [asset["platform_refs"]["version_id"] for asset in page["assets"]]
        cursor = page["next_cursor"]
        if cursor is None:
            break
        await counter.submit(platform_refs={**REFS, "version_id": f"late{len(versions)}"})
    assert versions == [f"v{number}" for number in reversed(range(7))]


async def test_jobs_are_listed_with_the_name_of_their_asset(counter: Any) -> None:
    accepted = await counter.submit()
    asset = (await counter.get(f"/api/assets/{accepted['asset_id']}")).json()
    (job,) = (await counter.get("/api/v1/jobs", asset_id=accepted["asset_id"])).json()["jobs"]
    assert job["asset_name"] == asset["stac_item_id"]


async def test_filters(counter: Any) -> None:
    await counter.put("b.json", b'{"type": "FeatureCollection"}')
    await counter.submit(platform_refs={**REFS, "version_id": "a%b"})
    await counter.submit(platform_refs={**REFS, "dataset_id": "Größe", "version_id": 'say "x"'})
    await counter.submit(platform_refs={**REFS, "version_id": "vec"}, data_type="vector", file_name="b.json")
    await counter.submit(
        platform_id="arcgis", platform_refs={"item_id": "f00", "layer_index": 0}, workflow_id="hello_world"
    )
    gone = await counter.submit(platform_refs={**REFS, "version_id": "gone"})
    await counter.decide("unpublish", asset_id=gone["asset_id"])
    assert await listed(counter) == ["arcgis", "vec", 'say "x"', "a%b"]
    assert await listed(counter, deleted="true") == ["gone", "arcgis", "vec", 'say "x"', "a%b"]
    assert await listed(counter, platform_id="arcgis") == ["arcgis"]
    assert await listed(counter, platform_id="nobody") == []
    assert await listed(counter, refs=json.dumps({"dataset_id": "Größe"})) == ['say "x"']
    assert await listed(counter, refs='{"layer_index": 0}') == ["arcgis"]
    assert await listed(counter, refs='{"layer_index": "0"}') == [], "a number is not its text"
    assert await listed(counter, text="A%B") == ["a%b"]
    assert await listed(counter, text="%") == ["a%b"], "a wildcard is a character"
    assert await listed(counter, text="grö") == ['say "x"']
    async with counter.engine.pool.connection() as conn, conn.transaction():
        await conn.execute("SET LOCAL session_replication_role = replica")  # outputs follow a job; there is none
        await conn.execute(
            "UPDATE app.geospatial_assets SET outputs = %s WHERE platform_refs ->> 'version_id' = 'vec'",
            (Json({"dataset_metadata": {"title": 'Parcels "2026" of 100_%'}}),),
        )
    assert await listed(counter, text='parcels "2026"') == ["vec"], "a title"
    assert await listed(counter, text="0_%") == ["vec"], "a wildcard is a character in a title, too"
    assert await listed(counter, text='say "x"') == ['say "x"']
    assert await listed(counter, text="dataset_id") == [], "names of identifiers are not searched"
    assert await listed(counter, data_type="vector") == ["vec"]
    assert await listed(counter, workflow_id="hello_world") == ["arcgis"]
    assert len(await listed(counter, processing_status="pending")) == 4
    assert await listed(counter, approval_state="approved") == []
    assert len(await listed(counter, clearance_state="uncleared", approval_state="pending_review")) == 4


QUERIES: list[dict[str, Any]] = [
    {"limit": 0},
    {"limit": 1001},
    {"limit": "many"},
    {"cursor": "x"},
    {"cursor": "W10"},
    {"refs": "x"},
    {"refs": "[]"},
    {"refs": '{"a": null}'},
    {"refs": '{"a": 1.5}'},
    {"refs": '{"a": "\\u0000"}'},
    {"refs": '{"a": "\\ud800"}'},
    {"refs": "[" * 1500},
    {"text": ""},
    {"text": "\x00"},
    {"approval_state": "maybe"},
    {"processing_status": "done"},
    {"deleted": "perhaps"},
    {"colour": "red"},
]


async def test_a_wrong_query_is_told(counter: Any) -> None:
    for query in QUERIES:
        refusal = problem(await counter.get("/api/assets", **query), 422, "invalid_input")
        assert refusal["errors"][0]["field"] in query


@pytest.mark.parametrize("asset_id", ["nobody", "%00", "x" * 65])
async def test_an_asset_that_is_not_there(counter: Any, asset_id: str) -> None:
    assert (await counter.get(f"/api/assets/{asset_id}")).status_code in (404, 422)


async def test_decisions_over_all_assets_are_listed_newest_first(make_counter: Any) -> None:
    counter = await make_counter(busy=True)
    one = (await counter.published(metadata={"title": "Floods"}))["asset_id"]
    two = (await counter.published(platform_refs={**REFS, "version_id": "two"}))["asset_id"]
    await counter.decide("approve", asset_id=one, clearance_level="ouo")
    before = datetime.now(UTC)
    await counter.decide("reject", asset_id=two, reason="holes", reviewer="Ayu")

    async def listed(**query: Any) -> dict[str, Any]:
        answer = await counter.get("/api/assets/decisions", **query)
        assert answer.status_code == 200, answer.text
        page: dict[str, Any] = answer.json()
        return page

    decisions = (await listed())["decisions"]
    assert [(entry["asset_id"], entry["decision"], entry["clearance_state"]) for entry in decisions] == [
        (two, "rejected", "uncleared"),
        (one, "approved", "ouo"),
    ]  # submissions are no decisions
    assert (decisions[0]["reason"], decisions[0]["on_behalf_of"], decisions[0]["revision"]) == ("holes", "Ayu", 1)
    assert (decisions[1]["title"], decisions[1]["stac_item_id"]) == ("Floods", "idn-lulc-jakarta-2024-v10")
    assert [entry["asset_id"] for entry in (await listed(since=before.isoformat()))["decisions"]] == [two]
    first = await listed(limit=1)
    second = await listed(limit=1, cursor=first["next_cursor"])
    assert [page["decisions"][0]["asset_id"] for page in (first, second)] == [two, one]
    assert second["next_cursor"] is None
    for query in ({"since": "yesterday"}, {"since": "2026-01-01T00:00:00"}, {"limit": 0}, {"cursor": "x"}):
        problem(await counter.get("/api/assets/decisions", **query), 422, "invalid_input")
    own = await counter.key(Role.SUBMITTER, platform_id="ddh")
    problem(await counter.get("/api/assets/decisions", by=own), 403, "forbidden")


async def test_reports(make_counter: Any) -> None:
    counter = await make_counter(busy=True)
    await counter.published()
    failed = await counter.published(workflow_id="failing", platform_refs={**REFS, "version_id": "bad"})
    await counter.post("retry", {"asset_id": failed["asset_id"]})
    await counter.ended(failed["request_id"])

    async def report(name: str, **query: Any) -> list[dict[str, Any]]:
        answer = await counter.get(f"/api/assets/reports/{name}", **query)
        assert answer.status_code == 200, answer.text
        rows: list[dict[str, Any]] = answer.json()["rows"]
        return rows

    assert [(row["asset_id"], row["job_count"]) for row in await report("failed")] == [(failed["asset_id"], 2)]
    assert [row["asset_id"] for row in await report("retried")] == [failed["asset_id"]]
    [sla] = await report("sla")
    assert (sla["workflow_id"], sla["total"]) == ("publish_file", 1)
    assert 0 <= sla["p50_seconds"] <= sla["p95_seconds"]
    assert await report("stuck", seconds=0.001) == []
    assert await report("load") == []
    for query in ({"seconds": 0}, {"seconds": "nan"}, {"limit": 0}):
        problem(await counter.get("/api/assets/reports/stuck", **query), 422, "invalid_input")
    problem(await counter.get("/api/assets/reports/everything"), 422, "invalid_input")


async def test_what_waits_and_what_is_stuck_is_reported(counter: Any) -> None:
    await counter.submit()
    load = (await counter.get("/api/assets/reports/load")).json()
    assert load["rows"] == [{"workflow_id": "publish_file", "active": 0, "waiting": 1}]
    counter.engine.orchestrator()
    accepted = await counter.submit(overwrite=True)
    await counter.engine.until(accepted["job_id"], lambda job: job is not None and job.status.value == "running")
    stuck = (await counter.get("/api/assets/reports/stuck", seconds=0.001)).json()["rows"]
    assert [row["job_id"] for row in stuck] == [accepted["job_id"]]


async def test_the_registry_of_platforms(counter: Any) -> None:
    body = {"platform_id": "ckan", "display_name": "CKAN", "required_refs": ["package"], "optional_refs": ["part"]}
    created = await counter.client.post("/api/platforms", json=body)
    assert (created.status_code, created.headers["location"]) == (201, "/api/platforms/ckan")
    problem(await counter.client.post("/api/platforms", json=body), 409, "conflict")
    assert (await counter.get("/api/platforms/ckan")).json()["required_refs"] == ["package"]
    answer = await counter.post("submit", order(platform_id="ckan", platform_refs={"package": "p", "part": 7}))
    assert answer.status_code == 202
    problem(await counter.get("/api/platforms/ckann"), 404, "not_found")
    changed = await counter.client.patch("/api/platforms/ckan", json={"display_name": "C", "optional_refs": ["piece"]})
    assert changed.json()["optional_refs"] == ["piece"]
    missing = await counter.client.patch("/api/platforms/nobody", json={"display_name": "C"})
    problem(missing, 404, "not_found")


PLATFORMS: list[tuple[dict[str, Any], str]] = [
    ({"required_refs": []}, "required_refs"),
    ({"required_refs": ["A b"]}, "required_refs"),
    ({"optional_refs": ["package"]}, "twice"),
    ({"platform_id": "Ckan"}, "platform_id"),
    ({"platform_id": "x" * 51}, "platform_id"),
    ({"display_name": ""}, "display_name"),
    ({"display_name": "\x00"}, "NUL"),
    ({"is_active": "yes"}, "is_active"),
    ({"owner": "me"}, "the field does not exist"),
]


async def test_a_wrong_platform(counter: Any) -> None:
    for changes, says in PLATFORMS:
        body = {"platform_id": "ckan", "display_name": "CKAN", "required_refs": ["package"], **changes}
        answer = await counter.client.post("/api/platforms", json=body)
        problem(answer, 422, "invalid_input")
        assert says in answer.text, changes


@pytest.mark.parametrize("optional", [["dataset_id"], ["x", "x"]])
async def test_a_change_cannot_name_an_identifier_twice(counter: Any, optional: list[str]) -> None:
    answer = await counter.client.patch("/api/platforms/ddh", json={"display_name": "D", "optional_refs": optional})
    assert problem(answer, 422, "invalid_input")["errors"][0]["field"] == "optional_refs"


async def test_the_registry_is_the_administrators(counter: Any) -> None:
    operator = await counter.key(Role.OPERATOR)
    body = {"platform_id": "ckan", "display_name": "CKAN", "required_refs": ["package"]}
    problem(await counter.client.post("/api/platforms", json=body, headers=operator), 403, "forbidden")
    assert (await counter.get("/api/platforms", by=operator)).status_code == 200
