"""Every route answers every role, and callers without one, as its rule says."""

from __future__ import annotations

import re
from typing import Any

import pytest
from fastapi import APIRouter, FastAPI
from httpx import AsyncClient

from geomill.api.access import EVERYONE, RULES, require_complete
from geomill.domain.access.api_key import Secret
from geomill.domain.access.principal import Role
from tests.integration.api.conftest import bearing, make_key
from tests.integration.api.test_jobs import submit, until
from tests.integration.api.test_stream import parse


async def routes(client: AsyncClient) -> list[tuple[str, str, dict[str, Any]]]:
    document = (await client.get("/openapi.json")).json()
    return [
        (method.upper(), path, operation)
        for path, operations in document["paths"].items()
        for method, operation in operations.items()
    ]


async def status(client: AsyncClient, method: str, path: str, headers: dict[str, str]) -> int:
    place = re.sub(r"\{\w+\}", "nothing", path)
    client.headers.pop("Authorization", None)
    return (await client.request(method, place, headers=headers)).status_code


@pytest.mark.parametrize("role", [None, *Role])
async def test_every_route_by_every_role(
    make_platform: Any, make_client: Any, database: str, role: Role | None
) -> None:
    idle = await make_client(make_platform(), streams_per_caller=0)  # an admitted stream would have no end
    headers = bearing(await make_key(database, role, platform_id="ddh")) if role else {}
    walked = await routes(idle)
    assert len(walked) >= 18
    for method, path, operation in walked:
        status_code = await status(idle, method, path, headers)
        who = RULES[f"{method} {path}"]
        if who is EVERYONE:
            assert status_code not in (401, 403), (method, path)
            assert operation["security"] == []
            continue
        assert operation["security"] == [{"bearer": []}, {"key": []}]
        assert {"401", "403"} <= set(operation["responses"])
        if role is None:
            assert status_code == 401, (method, path)
        else:
            assert (status_code == 403) is (role not in operation["x-roles"]), (method, path, role, status_code)
            assert status_code != 401


def test_what_is_open_and_what_is_the_administrators() -> None:
    """The rules are written down twice, so that a slip in the table opens no route."""
    assert [rule for rule, who in RULES.items() if who.roles is None] == [
        "GET /health/live",
        "GET /health/ready",
        "GET /openapi.json",
        "GET /docs",
        "GET /docs/{file}",
    ]
    assert RULES["POST /api/v1/bootstrap/migrate"].roles == {Role.ADMIN}
    assert [rule for rule, who in RULES.items() if not rule.startswith("GET ") and not who.roles] == []


def test_a_route_without_a_rule_and_a_rule_without_a_route_stop_the_start() -> None:
    app = FastAPI(openapi_url=None)
    router = APIRouter(prefix="/new")
    router.get("/thing")(lambda: None)
    app.include_router(router)
    with pytest.raises(RuntimeError, match="who may call GET /new/thing"):
        require_complete(app, {})
    with pytest.raises(RuntimeError, match="no route exists for the rule GET /old"):
        require_complete(app, {"GET /new/thing": EVERYONE, "GET /old": EVERYONE})
    require_complete(app, {"GET /new/thing": EVERYONE})


async def test_nothing_runs_that_was_not_asked_for_at_the_door(idle: AsyncClient) -> None:
    """A route that came later, past the check at the start, is refused and not open."""
    app: Any = idle._transport.app  # type: ignore[attr-defined]
    app.get("/later")(lambda: {"secret": 1})
    answer = await idle.get("/later")
    assert (answer.status_code, answer.json()["code"]) == (403, "forbidden")


@pytest.mark.parametrize(
    ("headers", "words"),
    [
        ({}, "send 'Authorization"),
        ({"Authorization": "Basic YWRtaW46YWRtaW4="}, "does not use the Bearer scheme"),
        ({"Authorization": "Bearer"}, "neither a key nor a token"),
        ({"Authorization": "Bearer " + "x" * 9000}, "neither a key nor a token"),
        ({"Authorization": "Bearer gm_short"}, "the key does not exist"),
        ({"Authorization": "Bearer some.other.thing"}, "accepts no tokens"),
        ({"Authorization": "Bearer a", "X-API-Key": "b"}, "more than one"),
        ({"X-API-Key": Secret.new().reveal()}, "the key does not exist"),
    ],
)
async def test_a_wrong_credential(idle: AsyncClient, headers: dict[str, str], words: str) -> None:
    del idle.headers["Authorization"]
    answer = await idle.get("/health", headers=headers)
    assert (answer.status_code, answer.json()["code"]) == (401, "unauthenticated")
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.headers["www-authenticate"].startswith("Bearer ")
    assert words in answer.json()["detail"]
    assert "gm_" not in answer.text


async def test_the_right_id_with_a_wrong_secret(idle: AsyncClient, database: str) -> None:
    secret, other = await make_key(database, Role.READER), Secret.new()
    forged = f"gm_{secret.key_id}_{other.reveal().rsplit('_', 1)[1]}"
    assert (await idle.get("/health", headers=bearing(forged))).status_code == 401
    assert (await idle.get("/health", headers={**bearing(secret), "X-API-Key": secret.reveal()})).status_code == 200
    assert (await idle.head("/openapi.json")).status_code == 200


async def test_a_body_is_not_read_for_a_stranger(idle: AsyncClient) -> None:
    del idle.headers["Authorization"]

    async def body() -> Any:
        raise AssertionError("it was read")
        yield b""

    answer = await idle.post("/api/v1/jobs", content=body(), headers={"content-type": "application/json"})
    assert answer.status_code == 401


async def test_a_job_is_its_submitters_and_a_stream_asks_too(busy: AsyncClient, database: str) -> None:
    operator = await make_key(database, Role.OPERATOR, name="nightly")
    reader = await make_key(database, Role.READER)
    busy.headers.update(bearing(operator))
    claimed = await busy.post("/api/v1/jobs", json={"workflow_id": "hello_world", "submitted_by": "somebody else"})
    assert (claimed.status_code, claimed.json()["errors"][0]["field"]) == (422, "submitted_by")
    accepted = await submit(busy)
    assert (await until(busy, accepted["job_id"], "completed"))["submitted_by"] == "key:nightly"
    streamed = await busy.get(accepted["stream_url"], headers=bearing(reader))
    assert parse(streamed.text)[-1][0] == "end"
    del busy.headers["Authorization"]
    assert (await busy.get(accepted["stream_url"])).status_code == 401
