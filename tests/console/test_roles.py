"""The role matrix: what each role finds on each screen, and what the gateway refuses although a page asks for it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.acceptance.running import eventually
from tests.console.conftest import OpenPage, serious
from tests.console.platform import SharedPlatform
from tests.console.submissions import publish, squares

pytestmark = pytest.mark.slow

SOON = 30_000
ROLES = ("reader", "submitter", "reviewer", "operator", "admin")
PLACES = {
    "/overview": {"reader", "reviewer", "operator", "admin"},
    "/submit": {"submitter", "operator", "admin"},
    "/review": {"reviewer", "admin"},
    "/assets": {"reader", "submitter", "reviewer", "operator", "admin"},
    "/jobs": {"reader", "reviewer", "operator", "admin"},
    "/workflows": {"reader", "submitter", "reviewer", "operator", "admin"},
    "/operations": {"reader", "reviewer", "operator", "admin"},
}
CONTROLS = {
    ("/jobs", "link", "Run a workflow$"): {"operator", "admin"},
    ("/workflows/hello_world", "button", "Run$"): {"operator", "admin"},
    ("/workflows?tab=schedules", "button", "New schedule$"): {"operator", "admin"},
    ("/workflows?tab=check", "button", "Check$"): {"reader", "reviewer", "operator", "admin"},
    ("/operations?tab=keys", "button", "New key$"): {"admin"},
    ("/assets/{asset}", "button", "Save as style of the asset$"): {"submitter", "reviewer", "operator", "admin"},
    ("/review/{asset}", "button", "Approve r1 as official use"): {"reviewer", "admin"},
}
"""Controls that change something, by screen and name (a regular expression), and the roles that find them."""
REQUESTS = {
    ("POST", "/api/platform/submit"): {"submitter", "operator", "admin"},
    ("POST", "/api/platform/approve"): {"reviewer", "admin"},
    ("POST", "/api/platform/reject"): {"reviewer", "admin"},
    ("POST", "/api/platform/revoke"): {"reviewer", "admin"},
    ("POST", "/api/platform/rollback"): {"reviewer", "admin"},
    ("POST", "/api/platform/unpublish"): {"reviewer", "operator", "admin"},
    ("GET", "/api/assets/decisions?limit=0"): {"reader", "reviewer", "operator", "admin"},
    ("PUT", "/api/assets/none/styles/x"): {"submitter", "reviewer", "operator", "admin"},
    ("POST", "/api/v1/jobs"): {"operator", "admin"},
    ("POST", "/api/v1/jobs/none/cancel"): {"operator", "admin"},
    ("POST", "/api/v1/jobs/none/retry"): {"operator", "admin"},
    ("POST", "/api/v1/schedules"): {"operator", "admin"},
    ("POST", "/api/v1/dead-letters/redrive"): {"operator", "admin"},
    ("POST", "/api/v1/dead-letters/discard"): {"operator", "admin"},
    ("POST", "/api/v1/keys"): {"admin"},
    ("POST", "/api/platforms"): {"admin"},
    ("GET", "/api/v1/settings"): {"admin"},
}
"""Requests that are wrong in themselves, so that they change nothing, and the roles that get past the door."""
ASK = """async ([method, path]) => (await fetch(path, {method, headers: {"X-Geomill-Console": "1",
  "Content-Type": "application/json"}, ...(method === "GET" ? {} : {body: '{"nonsense": 1}'})})).status"""


@pytest.fixture(scope="module")
def asset(platform: SharedPlatform, tmp_path_factory: pytest.TempPathFactory) -> str:
    path = squares(tmp_path_factory.mktemp("roles"), "squares.gpkg", ["a"])
    return str(publish(platform, path, "roles")["asset_id"])


def sign_in(open_page: OpenPage, platform: SharedPlatform, role: str) -> Page:
    """A page of somebody with a key of this role. A submitter's key is of a platform, which a link cannot give."""
    with platform.client as client:
        body = {"roles": [role], **({"platform_id": "ddh"} if role == "submitter" else {})}
        key = client.post("/api/v1/keys", json=body).json()["key"]
    page = open_page("", None)
    page.get_by_label("API key").fill(key)
    page.get_by_role("button", name="Sign in").click()
    expect(page.locator(".bar")).to_be_visible()
    return page


@pytest.mark.parametrize("role", ROLES)
def test_a_role_finds_what_it_may_use_and_the_gateway_refuses_the_rest(
    open_page: OpenPage, platform: SharedPlatform, asset: str, role: str
) -> None:
    page = sign_in(open_page, platform, role)
    for place, roles in PLACES.items():
        page.goto(f"/console{place}")
        expect(page.locator("main")).to_be_visible()
        refusal = page.get_by_text("Your role does not open")
        expect(refusal).to_have_count(0 if role in roles else 1)
        link = page.get_by_role("navigation", name="Places").locator(f'a[href="/console{place}"]')
        expect(link).to_have_count(1 if role in roles else 0)
    assert serious(page) == []
    for (place, kind, name), roles in CONTROLS.items():
        page.goto(f"/console{place.format(asset=asset)}")
        expect(page.locator("main")).to_be_visible()
        expect(page.locator("main .loading")).to_have_count(0, timeout=SOON)
        control = page.get_by_role(kind, name=re.compile(f"^{name}"))  # type: ignore[arg-type]
        expect(control, f"{name} on {place}").to_have_count(1 if role in roles else 0, timeout=SOON)
    for (method, path), roles in REQUESTS.items():
        status = page.evaluate(ASK, [method, path])
        assert (status == 403) == (role not in roles), f"{method} {path}: {status}"
        assert status != 500


def test_anybody_sees_a_public_asset_after_its_approval_and_nobody_before(
    open_page: OpenPage, platform: SharedPlatform, tmp_path: Path
) -> None:
    asset_id = publish(platform, squares(tmp_path, "parks.gpkg", ["a", "b"]), "anonymous")["asset_id"]
    stranger = open_page("", None)
    assert stranger.goto(f"/viewer/{asset_id}").status in (401, 404)  # type: ignore[union-attr]
    reviewer = open_page(f"/review/{asset_id}", "reviewer")
    expect(reviewer.get_by_role("button", name="Approve r1 as official use")).to_be_enabled(timeout=SOON)
    reviewer.keyboard.press("2")
    reviewer.keyboard.press("a")
    reviewer.keyboard.press("a")
    expect(reviewer.get_by_role("link", name="Export job")).to_be_visible(timeout=SOON)
    eventually(lambda: stranger.goto(f"/viewer/{asset_id}").status == 200, "the public asset")  # type: ignore[union-attr]
    expect(stranger.locator("body[data-drawn=yes]")).to_be_attached(timeout=SOON)
    expect(stranger.get_by_text("Parcels anonymous").first).to_be_visible()
    assert stranger.request.get(f"/api/assets/{asset_id}").status == 401
