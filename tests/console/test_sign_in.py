"""Signing in and out in a browser, and what somebody sees without it."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from tests.console.conftest import OpenPage, picture, serious
from tests.console.platform import SharedPlatform

pytestmark = pytest.mark.slow


def test_with_a_key_to_the_place_that_was_asked_for_and_out_again(
    open_page: OpenPage, platform: SharedPlatform
) -> None:
    page = open_page("/components?tab=two", None)
    expect(page.get_by_role("button", name="Sign in")).to_be_disabled()
    assert serious(page) == []
    picture(page, "sign-in")
    page.get_by_label("API key").fill("gm_wrong")
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_text("This is not a key.")).to_be_visible()
    page.get_by_label("API key").fill(platform.key)
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_text("Another tab.")).to_be_visible()
    assert page.evaluate("document.cookie") == ""
    page.get_by_role("button", name="Signed in as").click()
    page.get_by_role("button", name="Sign out").click()
    expect(page.get_by_label("API key")).to_be_visible()


def test_a_link_works_once_and_leaves_no_trace_in_the_address(open_page: OpenPage, platform: SharedPlatform) -> None:
    link = platform.link("reader")
    page = open_page("", None)
    page.goto(link)
    expect(page.locator(".bar")).to_be_visible()
    assert "gms_" not in page.url
    other = open_page("", None)
    other.goto(link)
    expect(other.get_by_text("The sign-in link has been used or has expired")).to_be_visible()


def test_a_revoked_key_ends_the_page(open_page: OpenPage, platform: SharedPlatform) -> None:
    with platform.client as client:
        created = client.post("/api/v1/keys", json={"roles": ["reader"]}).json()
        page = open_page("/components", None)
        page.get_by_label("API key").fill(created["key"])
        page.get_by_role("button", name="Sign in").click()
        expect(page.get_by_text("Live", exact=True).or_(page.get_by_text("Not a live screen"))).to_be_visible()
        client.delete(f"/api/v1/keys/{created['key_id']}")
    expect(page.get_by_label("API key")).to_be_visible(timeout=20_000)


@pytest.mark.parametrize(
    ("role", "places"),
    [
        ("reader", ["Overview", "Assets", "Jobs", "Workflows", "Operations"]),
        ("reviewer", ["Overview", "Review", "Assets", "Jobs", "Workflows", "Operations"]),
        ("operator", ["Overview", "Submit", "Assets", "Jobs", "Workflows", "Operations"]),
        ("admin", ["Overview", "Submit", "Review", "Assets", "Jobs", "Workflows", "Operations"]),
    ],
)
def test_a_role_sees_the_places_that_it_may_use(open_page: OpenPage, role: str, places: list[str]) -> None:
    page = open_page("/components", role)
    links = page.get_by_role("navigation", name="Places").locator("a")
    expect(links.first).to_be_visible()
    assert [re.sub(r"\d+$", "", text) for text in links.all_text_contents()] == places


def test_the_viewer_uses_the_session(open_page: OpenPage) -> None:
    page = open_page("/components", "reader")
    page.goto("/viewer/?f=json")
    assert page.evaluate("document.body.innerText").startswith("{")
