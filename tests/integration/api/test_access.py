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
@pytest.mark.slow
async def test_every_route_by_every_role(
    make_platform: Any, make_client: Any, database: str, role: Role | None
) -> None:
    idle = await make_client(make_platform(), streams_per_caller=0)  # an admitted stream would have no end
    headers = bearing(await make_key(database, role, platform_id="ddh")) if role else {}
    walked = await routes(idle)
    assert len(walked) >= 75
    for method, path, operation in walked:
        status_code = await status(idle, method, path, headers)
        who = RULES[f"{method} {path}"]
        if who.roles is None:
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
        "GET /",
        "GET /console",
        "GET /console/{path:path}",
        "GET /api/v1/session",
        "POST /api/v1/session",
        "DELETE /api/v1/session",
        "GET /api/v1/session/oidc",
        "GET /api/v1/session/oidc/return",
        "OPTIONS /api/platform/uploads",
    ]
    assert sorted(rule for rule, who in RULES.items() if who.roles == {Role.ADMIN}) == [
        "DELETE /api/v1/keys/{key_id}",
        "GET /api/v1/keys",
        "GET /api/v1/keys/{key_id}",
        "GET /api/v1/settings",
        "PATCH /api/platforms/{platform_id}",
        "POST /api/platforms",
        "POST /api/v1/bootstrap/migrate",
        "POST /api/v1/keys",
        "PUT /api/platforms/{platform_id}",
    ]
    assert [rule for rule, who in RULES.items() if not rule.startswith(("GET ", "OPTIONS ")) and not who.roles] == [
        "POST /api/v1/session",
        "DELETE /api/v1/session",
        "POST /api/v1/session/renewal",
        "POST /api/v1/session/links",
    ], "everybody may sign in and out, and change nothing else"


OPERATORS = (
    "POST /api/v1/dead-letters/redrive",
    "POST /api/v1/dead-letters/discard",
    "POST /api/v1/schedules",
    "PATCH /api/v1/schedules/{schedule_id}",
    "DELETE /api/v1/schedules/{schedule_id}",
    "POST /api/v1/schedules/{schedule_id}/run",
    "POST /api/v1/circuits/{handler}/close",
    "GET /api/v1/audit",
)


def test_what_only_an_operator_changes_and_what_a_partner_may_call() -> None:
    assert [rule for rule in OPERATORS if RULES[rule].roles != {Role.OPERATOR}] == []
    partners = [rule for rule, who in RULES.items() if who.roles and Role.SUBMITTER in who.roles]
    assert sorted(rule for rule in partners if "/api/v1/" in rule) == [
        "GET /api/v1/callbacks",
        "GET /api/v1/jobs/{job_id}/callback",
        "POST /api/v1/callbacks/{job_id}/send",
    ]


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
    accepted = await submit(busy, submitted_by="somebody else")
    job = await until(busy, accepted["job_id"], "completed")
    assert (job["submitted_by"], job["on_behalf_of"]) == ("key:nightly", "somebody else")
    streamed = await busy.get(accepted["stream_url"], headers=bearing(reader))
    assert parse(streamed.text)[-1][0] == "end"
    del busy.headers["Authorization"]
    assert (await busy.get(accepted["stream_url"])).status_code == 401
