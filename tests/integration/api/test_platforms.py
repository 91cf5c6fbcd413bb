"""Changes of platforms: PATCH changes what it names, PUT needs everything."""

from __future__ import annotations

from typing import Any

from httpx import AsyncClient

from tests.integration.api.desk import problem

DDH = "/api/platforms/ddh"
WHOLE: dict[str, Any] = {
    "display_name": "Hub",
    "description": None,
    "optional_refs": ["part"],
    "workflows": ["publish_file"],
    "containers": [],
    "is_active": True,
}


async def test_a_patch_changes_only_what_it_names(idle: AsyncClient) -> None:
    before = (await idle.get(DDH)).json()
    changed = (await idle.patch(DDH, json={"display_name": "Hub"})).json()
    assert changed["updated_at"] > before["updated_at"]
    assert changed == {**before, "display_name": "Hub", "updated_at": changed["updated_at"]}
    named = (await idle.patch(DDH, json={"description": None, "workflows": ["publish_file"]})).json()
    assert (named["description"], named["workflows"], named["containers"]) == (None, ["publish_file"], ["uploads"])
    assert (await idle.patch(DDH, json={"workflows": None})).json()["workflows"] is None
    entries = (await idle.get("/api/v1/audit", params={"action": "platform_changed"})).json()["entries"]
    assert entries[-1]["details"] == {
        "before": {"display_name": before["display_name"]},
        "after": {"display_name": "Hub"},
    }


async def test_a_put_that_forgets_a_field_is_refused(idle: AsyncClient) -> None:
    before = (await idle.get(DDH)).json()
    for name in WHOLE:
        body = {field: value for field, value in WHOLE.items() if field != name}
        refused = problem(await idle.put(DDH, json=body), 422, "invalid_input")
        assert [error["field"] for error in refused["errors"]] == [name]
        assert f"PATCH {DDH}" in refused["errors"][0]["hint"]
    assert (await idle.get(DDH)).json() == before


async def test_a_put_replaces_everything_but_the_required_identifiers(idle: AsyncClient) -> None:
    before = (await idle.get(DDH)).json()
    replaced = (await idle.put(DDH, json=WHOLE)).json()
    assert {name: replaced[name] for name in WHOLE} == WHOLE
    assert replaced["required_refs"] == before["required_refs"]
    problem(await idle.put("/api/platforms/nobody", json=WHOLE), 404, "not_found")


async def test_a_change_of_what_has_changed_since_is_refused(idle: AsyncClient) -> None:
    known = (await idle.get(DDH)).json()["updated_at"]
    first = await idle.patch(DDH, json={"display_name": "One", "expected_updated_at": known})
    assert first.status_code == 200
    late: list[tuple[str, dict[str, Any]]] = [("PATCH", {"display_name": "Two"}), ("PUT", WHOLE)]
    for method, body in late:
        answer = await idle.request(method, DDH, json={**body, "expected_updated_at": known})
        assert "read it again" in problem(answer, 409, "conflict")["detail"]
    fresh = {"display_name": "Two", "expected_updated_at": first.json()["updated_at"]}
    assert (await idle.patch(DDH, json=fresh)).json()["display_name"] == "Two"


WRONG: list[dict[str, Any]] = [
    {},
    {"expected_updated_at": "2026-01-01T00:00:00Z"},
    {"display_name": None},
    {"display_name": ""},
    {"containers": None},
    {"optional_refs": None},
    {"is_active": None},
    {"is_active": 1},
    {"required_refs": ["x"]},
    {"optional_refs": ["dataset_id"]},
    {"expected_updated_at": "yesterday", "display_name": "x"},
]


async def test_a_wrong_change(idle: AsyncClient) -> None:
    before = (await idle.get(DDH)).json()
    for body in WRONG:
        problem(await idle.patch(DDH, json=body), 422, "invalid_input")
    assert (await idle.get(DDH)).json() == before
