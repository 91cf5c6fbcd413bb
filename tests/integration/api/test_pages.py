"""The pages for browsers: the API's own page loads nothing from elsewhere, and only permitted origins may call."""

from __future__ import annotations

import re
from typing import Any

from httpx import AsyncClient

from geomill.settings import AccessSettings

CONSOLE = "https://console.example.org"
PREFLIGHT = {
    "Origin": CONSOLE,
    "Access-Control-Request-Method": "POST",
    "Access-Control-Request-Headers": "authorization",
}


async def test_the_page_loads_nothing_from_elsewhere(idle: AsyncClient) -> None:
    del idle.headers["Authorization"]
    page = await idle.get("/docs")
    assert page.status_code == 200
    assert not re.findall(r"(?:src|href)=\"(?:https?:)?//", page.text)
    assert "'self'" in page.headers["content-security-policy"]
    addresses = re.findall(r"(?:src|href)=\"(docs/[^\"]+)\"", page.text)
    assert len(addresses) == 3
    for place in addresses:
        answer = await idle.get(f"/{place}")
        assert (answer.status_code, len(answer.content) > 1000) == (200, True)
    for place in ("/docs/redoc.standalone.js", "/docs/..%2f__init__.py", "/docs/core.py"):
        assert (await idle.get(place)).status_code == 404


async def test_cors_is_off(idle: AsyncClient) -> None:
    answer = await idle.options("/api/v1/jobs", headers=PREFLIGHT)
    assert answer.status_code == 405
    answer = await idle.get("/health", headers={"Origin": CONSOLE})
    assert [name for name in answer.headers if name.startswith("access-control")] == []


async def test_pages_of_named_origins_may_call(make_platform: Any, make_client: Any) -> None:
    client = await make_client(make_platform(), access=AccessSettings(cors_origins=[CONSOLE]))
    answer = await client.options("/api/v1/jobs", headers=PREFLIGHT)
    assert (answer.status_code, answer.headers["access-control-allow-origin"]) == (200, CONSOLE)
    assert "access-control-allow-credentials" not in answer.headers
    answer = await client.post("/api/v1/jobs", json={"workflow_id": "hello_world"}, headers={"Origin": CONSOLE})
    assert (answer.status_code, answer.headers["access-control-allow-origin"]) == (202, CONSOLE)
    refused = await client.get("/health", headers={"Origin": CONSOLE, "Authorization": "Bearer x"})
    assert (refused.status_code, refused.headers["access-control-allow-origin"]) == (401, CONSOLE)
    evil = await client.options("/api/v1/jobs", headers={**PREFLIGHT, "Origin": "https://evil.example"})
    assert (evil.status_code, "access-control-allow-origin" in evil.headers) == (400, False)
    evil = await client.post("/api/v1/jobs", json={}, headers={"Origin": "https://evil.example"})
    assert evil.status_code == 403


async def test_behind_a_proxy_a_page_has_another_origin_than_the_host(make_platform: Any, make_client: Any) -> None:
    client = await make_client(make_platform(), hosts=())
    headers = {"Origin": "https://geo.example.org", "Host": "10.0.0.7:8000"}
    assert (await client.post("/api/v1/jobs/nothing/cancel", headers=headers)).status_code == 404


async def test_the_size_of_a_body_is_a_setting(make_platform: Any, make_client: Any) -> None:
    client = await make_client(make_platform(), access=AccessSettings(body_limit=2000))
    answer = await client.post("/api/v1/jobs", json={"workflow_id": "x" * 3000})
    assert (answer.status_code, "2000 bytes" in answer.json()["detail"]) == (413, True)
