"""The sign-in to the console at an OIDC issuer: the way there and back, and every way in which it can be wrong."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from httpx import AsyncClient, Response

from geomill.settings import ConsoleSettings
from tests.integration.api.conftest import client_of
from tests.integration.api.issuer import Issuer

START, BACK = "/api/v1/session/oidc", "/api/v1/session/oidc/return"


@pytest.fixture
async def browser(make_platform: Callable[..., Any], database: str, issuer: Issuer) -> AsyncIterator[AsyncClient]:
    console = ConsoleSettings(oidc_client_id="console")
    async with client_of(database, make_platform(), access=issuer.settings(), console_settings=console) as client:
        yield client


async def go(browser: AsyncClient) -> str:
    answer = await browser.get(START)
    assert answer.status_code == 303
    return answer.headers["location"]


async def come_back(browser: AsyncClient, code: str, state: str) -> Response:
    answer = await browser.get(BACK, params={"code": code, "state": state, "session_state": "of the issuer"})
    assert answer.status_code == 303
    return answer


async def caller(browser: AsyncClient) -> Any:
    return (await browser.get("/api/v1/session")).json()["caller"]


async def test_there_and_back(browser: AsyncClient, issuer: Issuer) -> None:
    assert (await browser.get("/api/v1/session")).json()["oidc"] is True
    address = await go(browser)
    asked = parse_qs(urlsplit(address).query)
    assert address.startswith(f"{issuer.url}/authorize?")
    assert (asked["response_type"], asked["code_challenge_method"]) == (["code"], ["S256"])
    assert asked["redirect_uri"][0].endswith(BACK)
    answer = await come_back(browser, *issuer.authorize(address, "reviewer", sub="ada"))
    assert answer.headers["location"] == "/console"
    cookies = answer.headers.get_list("set-cookie")
    assert any("geomill-session" in cookie and "SameSite=strict" in cookie for cookie in cookies)
    person = await caller(browser)
    assert (person["subject"], person["roles"]) == ("ada", ["reviewer"])
    assert "POST /api/platform/approve" in person["may"]


async def test_the_cookie_of_the_way_is_for_the_way_alone(browser: AsyncClient) -> None:
    (cookie,) = (await browser.get(START)).headers.get_list("set-cookie")
    assert "HttpOnly" in cookie
    assert "SameSite=lax" in cookie
    assert f"Path={START}" in cookie


async def problem_of(browser: AsyncClient, code: str, state: str) -> str:
    answer = await come_back(browser, code, state)
    assert await caller(browser) is None
    return answer.headers["location"].removeprefix("/console/sign-in?problem=")


async def test_an_answer_for_another_browser_is_refused(browser: AsyncClient, issuer: Issuer) -> None:
    """Somebody signs in and sends the victim the return address: the victim must not end up in that account."""
    code, state = issuer.authorize(await go(browser), "admin")
    browser.cookies.clear()
    assert await problem_of(browser, code, state) == "expired"
    await go(browser)
    assert await problem_of(browser, code, state) == "expired"


@pytest.mark.parametrize("state", ["", "x", "ä", "x" * 256])
async def test_a_wrong_state(browser: AsyncClient, issuer: Issuer, state: str) -> None:
    code, _ = issuer.authorize(await go(browser), "admin")
    assert await problem_of(browser, code, state) == "expired"


async def test_a_code_works_once_and_only_with_its_verifier(browser: AsyncClient, issuer: Issuer) -> None:
    code, _ = issuer.authorize(await go(browser), "admin")
    _, state = issuer.authorize(await go(browser), "admin")
    assert await problem_of(browser, code, state) == "refused"


@pytest.mark.parametrize(
    "claims",
    [
        {"roles": []},
        {"roles": ["emperor"]},
        {"aud": "somebody else"},
        {"nonce": "of another sign-in"},
        {"nonce": None},
        {"exp": 1},
        {"iss": "https://evil.example"},
        {"sub": "key:root"},
        {"roles": ["submitter"]},
    ],
)
async def test_a_token_that_does_not_fit(browser: AsyncClient, issuer: Issuer, claims: dict[str, Any]) -> None:
    roles = claims.pop("roles", ["admin"])
    code, state = issuer.authorize(await go(browser), *roles, **claims)
    assert await problem_of(browser, code, state) == "refused"


async def test_somebody_who_says_no(browser: AsyncClient, issuer: Issuer) -> None:
    _, state = issuer.authorize(await go(browser), "admin")
    assert await problem_of(browser, "", state) == "denied"


async def test_an_issuer_that_is_away(browser: AsyncClient, issuer: Issuer) -> None:
    code, state = issuer.authorize(await go(browser), "admin")
    issuer.away = True
    assert await problem_of(browser, code, state) == "unavailable"
    assert (await browser.get(START)).status_code == 503


async def test_without_a_client_id_there_is_no_way(
    make_platform: Callable[..., Any], database: str, issuer: Issuer
) -> None:
    async with client_of(database, make_platform(), access=issuer.settings()) as client:
        assert (await client.get(START)).status_code == 404
        assert (await client.get(BACK)).status_code == 404
        assert (await client.get("/api/v1/session")).json()["oidc"] is False
