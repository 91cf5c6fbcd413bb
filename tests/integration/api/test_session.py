"""Sessions of the console: who gets one, for how long, and what a page of another origin can do with it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from http.cookies import SimpleCookie
from typing import Any

import pytest
from httpx import AsyncClient, Response

from geomill.api.access import RULES
from geomill.domain.access.api_key import Secret
from geomill.domain.access.principal import Role
from geomill.store import keys
from geomill.store.pool import Pool
from tests.integration.api.conftest import bearing, client_of, make_key

OWN = {"X-Geomill-Console": "1"}
SESSION = "/api/v1/session"


@pytest.fixture
async def browser(make_platform: Callable[..., Any], database: str):
    """A gateway, called without a key."""
    async with client_of(database, make_platform()) as client:
        yield client


@pytest.fixture(autouse=True)
def _always_look(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("geomill.api.sessions.FRESH_SECONDS", 0.0)


async def sign_in(browser: AsyncClient, secret: Secret) -> Response:
    answer = await browser.post(SESSION, json={"key": secret.reveal()}, headers=OWN)
    assert answer.status_code == 200, answer.text
    return answer


async def test_a_session_is_a_cookie_that_scripts_cannot_read(browser: AsyncClient, database: str) -> None:
    answer = await sign_in(browser, await make_key(database, Role.READER, name="ada"))
    (morsel,) = SimpleCookie(answer.headers["set-cookie"]).values()
    assert (morsel["httponly"], morsel["samesite"], morsel["path"], morsel["domain"]) == (True, "strict", "/", "")
    assert answer.headers["cache-control"] == "no-store"
    caller = answer.json()["caller"]
    assert (caller["subject"], caller["roles"]) == ("key:ada", ["reader"])
    assert (await browser.get("/health")).status_code == 200
    assert (await browser.get(SESSION)).json()["caller"]["subject"] == "key:ada"


async def test_over_https_the_cookie_is_secure_and_of_this_host_alone(
    make_platform: Callable[..., Any], database: str
) -> None:
    secret = await make_key(database, Role.READER)
    async with client_of(database, make_platform(), hosts=()) as client:
        client.base_url = "https://maps.example.org"  # type: ignore[assignment]
        answer = await sign_in(client, secret)
        assert answer.headers["set-cookie"].startswith("__Host-geomill-session=")
        assert "Secure" in answer.headers["set-cookie"]
        assert (await client.get("/health")).status_code == 200


async def test_the_database_has_no_token(browser: AsyncClient, database: str, pool: Pool) -> None:
    answer = await sign_in(browser, await make_key(database, Role.READER))
    token = next(iter(SimpleCookie(answer.headers["set-cookie"]).values())).value
    async with pool.connection() as conn:
        row = await (await conn.execute("SELECT to_jsonb(s)::text AS row FROM app.console_sessions s")).fetchone()
    assert row is not None
    assert token not in row["row"]
    assert token.removeprefix("gms_") not in row["row"]


async def test_a_session_token_is_no_key(browser: AsyncClient, database: str) -> None:
    answer = await sign_in(browser, await make_key(database, Role.ADMIN))
    token = next(iter(SimpleCookie(answer.headers["set-cookie"]).values())).value
    browser.cookies.clear()
    assert (await browser.get("/health", headers=bearing(token))).status_code == 401


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {**OWN, "Origin": "http://evil.example"},
        {**OWN, "Origin": "null"},
        {**OWN, "Sec-Fetch-Site": "cross-site"},
        {**OWN, "Sec-Fetch-Site": "same-site"},
        {"Origin": "http://localhost"},
    ],
)
async def test_a_page_of_another_origin_changes_nothing(
    browser: AsyncClient, database: str, headers: dict[str, str]
) -> None:
    secret = await make_key(database, Role.OPERATOR)
    assert (await browser.post(SESSION, json={"key": secret.reveal()}, headers=headers)).status_code == 403
    await sign_in(browser, secret)
    order = {"workflow_id": "nap", "input_params": {}}
    answer = await browser.post("/api/v1/jobs", json=order, headers=headers)
    assert (answer.status_code, answer.json()["code"]) == (403, "forbidden")
    assert (await browser.delete(SESSION, headers=headers)).status_code == 403
    assert (await browser.get("/health")).status_code == 200


async def test_signing_out_ends_the_session_for_every_copy_of_the_cookie(browser: AsyncClient, database: str) -> None:
    await sign_in(browser, await make_key(database, Role.READER))
    copied = dict(browser.cookies)
    assert (await browser.delete(SESSION, headers=OWN)).status_code == 204
    assert not browser.cookies
    browser.cookies.update(copied)
    assert (await browser.get("/health")).status_code == 401
    assert (await browser.get(SESSION)).json()["caller"] is None


async def test_a_revoked_key_ends_its_sessions(browser: AsyncClient, database: str, pool: Pool) -> None:
    secret = await make_key(database, Role.READER)
    await sign_in(browser, secret)
    async with pool.connection() as conn:
        await keys.revoke(conn, secret.key_id)
    assert (await browser.get("/health")).status_code == 401


async def test_an_expired_key_ends_its_sessions(browser: AsyncClient, database: str, pool: Pool) -> None:
    secret = await make_key(database, Role.READER, expires_seconds=60)
    await sign_in(browser, secret)
    async with pool.connection() as conn:
        await conn.execute("UPDATE app.api_keys SET expires_at = now() WHERE key_id = %s", (secret.key_id,))
    assert (await browser.get("/health")).status_code == 401


@pytest.mark.parametrize(
    "passed", ["expires_at = now()", "last_used_at = now() - interval '2 hours 1 second'", "begun_at = NULL"]
)
async def test_a_session_ends(browser: AsyncClient, database: str, pool: Pool, passed: str) -> None:
    await sign_in(browser, await make_key(database, Role.READER))
    async with pool.connection() as conn:
        await conn.execute(f"UPDATE app.console_sessions SET {passed}".encode())
    assert (await browser.get("/health")).status_code == 401


async def test_an_ended_session_is_nobody_where_nobody_may_call(browser: AsyncClient, database: str) -> None:
    await sign_in(browser, await make_key(database, Role.READER))
    for name in browser.cookies:
        browser.cookies.set(name, "gms_" + "x" * 43)
    assert (await browser.get("/health")).status_code == 401
    assert (await browser.get("/console")).status_code in (200, 503)
    assert (await browser.get(SESSION)).status_code == 200


@pytest.mark.parametrize("value", ["", "gms_", "gm_x", "ä", '"', "gms_" + "x" * 5000, "gms_" + "'" * 43])
async def test_an_odd_cookie_is_none(browser: AsyncClient, value: str) -> None:
    headers = {"Cookie": f"geomill-session={value}".encode()}
    assert (await browser.get("/health", headers=headers)).status_code == 401


async def test_a_renewal_changes_the_token_and_not_the_end(browser: AsyncClient, database: str, pool: Pool) -> None:
    await sign_in(browser, await make_key(database, Role.READER))
    before, end = dict(browser.cookies), (await browser.get(SESSION)).json()["caller"]["expires_at"]
    assert (await browser.post(f"{SESSION}/renewal", headers=OWN)).status_code == 204
    assert dict(browser.cookies) != before
    assert (await browser.get(SESSION)).json()["caller"]["expires_at"] == end
    after = dict(browser.cookies)
    browser.cookies.clear()
    browser.cookies.update(before)
    assert (await browser.get("/health")).status_code == 200  # requests under way still carry it
    assert (await browser.post(f"{SESSION}/renewal", headers=OWN)).status_code == 204
    assert dict(browser.cookies) == before, "the old token is not renewed again"
    async with pool.connection() as conn:
        await conn.execute("UPDATE app.console_sessions SET rotated_at = now() - interval '61 seconds'")
    assert (await browser.get("/health")).status_code == 401
    browser.cookies.clear()
    browser.cookies.update(after)
    assert (await browser.get("/health")).status_code == 200


async def test_signing_out_with_the_token_before_a_renewal(browser: AsyncClient, database: str) -> None:
    await sign_in(browser, await make_key(database, Role.READER))
    before = dict(browser.cookies)
    await browser.post(f"{SESSION}/renewal", headers=OWN)
    after = dict(browser.cookies)
    browser.cookies.clear()
    browser.cookies.update(before)
    assert (await browser.delete(SESSION, headers=OWN)).status_code == 204
    browser.cookies.clear()
    browser.cookies.update(after)
    assert (await browser.get("/health")).status_code == 401


async def link(browser: AsyncClient, secret: Secret, **order: Any) -> str:
    answer = await browser.post(f"{SESSION}/links", json=order, headers=bearing(secret))
    assert answer.status_code == 201, answer.text
    place, _, code = answer.json()["url"].partition("#")
    assert place.endswith("/console/enter")
    return code


async def enter(browser: AsyncClient, code: str) -> Response:
    return await browser.post(SESSION, json={"code": code}, headers=OWN)


async def test_a_link_signs_in_once(browser: AsyncClient, database: str) -> None:
    code = await link(browser, await make_key(database, Role.ADMIN, name="root"))
    answers = await asyncio.gather(*(enter(browser, code) for _ in range(5)))
    assert sorted(answer.status_code for answer in answers) == [200, 401, 401, 401, 401]
    assert (await browser.get(SESSION)).json()["caller"]["subject"] == "key:root"


async def test_the_code_of_a_link_is_no_session(browser: AsyncClient, database: str) -> None:
    code = await link(browser, await make_key(database, Role.ADMIN))
    assert (await browser.get("/health", headers={"Cookie": f"geomill-session={code}"})).status_code == 401


async def test_a_link_may_have_fewer_roles_but_never_more(browser: AsyncClient, database: str) -> None:
    code = await link(browser, await make_key(database, Role.ADMIN), roles=["reviewer"])
    assert (await enter(browser, code)).json()["caller"]["roles"] == ["reviewer"]
    reader = await make_key(database, Role.READER)
    answer = await browser.post(f"{SESSION}/links", json={"roles": ["admin"]}, headers=bearing(reader))
    assert answer.status_code == 403


async def test_a_link_ends_with_its_time_and_with_its_key(browser: AsyncClient, database: str, pool: Pool) -> None:
    secret = await make_key(database, Role.READER)
    late, revoked = await link(browser, secret), await link(browser, secret)
    async with pool.connection() as conn:
        await conn.execute("UPDATE app.console_sessions SET expires_at = now() WHERE token_hash <> %s", ("",))
        assert (await enter(browser, late)).status_code == 401
        await conn.execute("UPDATE app.console_sessions SET expires_at = now() + interval '1 minute'")
        await keys.revoke(conn, secret.key_id)
    assert (await enter(browser, revoked)).status_code == 401


async def test_a_session_makes_no_links(browser: AsyncClient, database: str) -> None:
    await sign_in(browser, await make_key(database, Role.ADMIN))
    assert (await browser.post(f"{SESSION}/links", headers=OWN)).status_code == 403


@pytest.mark.parametrize("role", [role for role in Role if role is not Role.SUBMITTER])
async def test_the_session_says_exactly_what_the_role_may_do(browser: AsyncClient, database: str, role: Role) -> None:
    """The matrix of roles: whatever `may` leaves out is refused, and whatever it lists is not refused for the role."""
    answer = await sign_in(browser, await make_key(database, role))
    may = set(answer.json()["caller"]["may"])
    for rule, who in RULES.items():
        if who.roles is None:
            continue
        method, _, path = rule.partition(" ")
        if rule in may and (method != "GET" or path.endswith("/stream")):
            continue  # those would change something, or never end
        path = path.replace("{", "").replace("}", "")
        status = (await browser.request(method, path, headers=OWN, json=None if method == "GET" else {})).status_code
        assert (status == 403) == (rule not in may), rule


async def test_nobody_may_nothing(browser: AsyncClient) -> None:
    document = (await browser.get(SESSION)).json()
    assert (document["caller"], document["oidc"]) == (None, False)
    assert (await browser.get("/api/v1/jobs")).status_code == 401


async def test_a_wrong_key_and_a_thing_that_is_none(browser: AsyncClient) -> None:
    for key in (Secret.new().reveal(), "swordfish"):
        answer = await browser.post(SESSION, json={"key": key}, headers=OWN)
        assert (answer.status_code, answer.json()["code"]) == (401, "unauthenticated")
        assert key not in answer.text
    for order in ({}, {"key": "a", "code": "b"}, {"key": ""}):
        assert (await browser.post(SESSION, json=order, headers=OWN)).status_code == 422


async def test_guessing_keys_is_held_back(browser: AsyncClient) -> None:
    statuses = [
        (await browser.post(SESSION, json={"key": Secret.new().reveal()}, headers=OWN)).status_code for _ in range(40)
    ]
    assert statuses[-1] == 429


async def test_ended_sessions_are_deleted_by_those_that_begin(browser: AsyncClient, database: str, pool: Pool) -> None:
    secret = await make_key(database, Role.READER)
    await sign_in(browser, secret)
    async with pool.connection() as conn:
        await conn.execute("UPDATE app.console_sessions SET expires_at = now() - interval '2 hours'")
        browser.cookies.clear()
        await sign_in(browser, secret)
        row = await (await conn.execute("SELECT count(*) AS rows FROM app.console_sessions")).fetchone()
    assert row == {"rows": 1}


async def test_a_stream_ends_with_its_session(
    browser: AsyncClient, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("geomill.api.session_watch.LOOK_SECONDS", 0.05)
    await sign_in(browser, await make_key(database, Role.READER))
    reading = asyncio.create_task(browser.get("/api/v1/instances/stream"))
    await asyncio.sleep(0.3)
    assert not reading.done()
    assert (await browser.delete(SESSION, headers=OWN)).status_code == 204
    async with asyncio.timeout(5):
        answer = await reading
    assert answer.text.startswith(("event: snapshot", "id:"))


async def test_use_is_noted_and_keeps_a_session_alive(browser: AsyncClient, database: str, pool: Pool) -> None:
    await sign_in(browser, await make_key(database, Role.READER))
    async with pool.connection() as conn:
        await conn.execute("UPDATE app.console_sessions SET last_used_at = now() - interval '119 minutes'")
        assert (await browser.get("/health")).status_code == 200
        await browser._transport.app.state.sessions.note()
        row = await (
            await conn.execute("SELECT last_used_at > now() - interval '1 minute' AS fresh FROM app.console_sessions")
        ).fetchone()
    assert row == {"fresh": True}
