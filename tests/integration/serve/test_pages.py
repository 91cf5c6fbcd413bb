"""The catalogue in a browser is a page; programs get JSON."""

from __future__ import annotations

import pytest

from tests.integration.serve.zone import House

pytestmark = pytest.mark.asyncio(loop_scope="module")

BROWSER = {"Accept": "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"}


async def test_a_browser_gets_a_page_and_a_program_json(house: House) -> None:
    for path in ("/stac/", "/stac/collections", "/stac/search?limit=1"):
        page = await house.client.get(path, headers=BROWSER)
        assert page.headers["content-type"].startswith("text/html"), path
        assert "script-src 'self'" in page.headers["content-security-policy"]
        assert "Accept" in page.headers["vary"]
        for headers in ({}, {"Accept": "application/json"}, {"Accept": "*/*"}):
            assert "json" in (await house.client.get(path, headers=headers)).headers["content-type"]
    forced = await house.client.get("/stac/search?f=json&limit=1", headers=BROWSER)
    assert "json" in forced.headers["content-type"]
    assert "text/html" in (await house.client.get("/stac/?f=html")).headers["content-type"]
    missing = await house.client.get("/stac/collections/<script>alert(1)", headers=BROWSER)
    assert (missing.status_code, "json" in missing.headers["content-type"]) == (404, True)
