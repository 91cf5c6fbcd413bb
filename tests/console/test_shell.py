"""The frame of every screen: keys, colours, live data, and the components that screens are made of."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from tests.console.conftest import OpenPage, picture, serious

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_components_can_be_used_by_everybody(open_page: OpenPage, dark: bool) -> None:
    page = open_page("/components", dark=dark)
    expect(page.locator(".map canvas")).to_be_visible()
    assert serious(page) == []
    picture(page, f"components-{'dark' if dark else 'light'}")


def test_on_a_phone(open_page: OpenPage) -> None:
    page = open_page("/components", phone=True)
    expect(page.get_by_role("heading", name="Components")).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth") <= 375
    page.get_by_role("button", name="Menu").click()
    expect(page.locator("#phone-menu").get_by_role("link", name="Jobs")).to_be_visible()
    assert serious(page) == []
    picture(page, "components-phone")


def test_keys_lead_to_places_and_do_nothing_in_a_field(open_page: OpenPage) -> None:
    page = open_page("/components")
    page.wait_for_selector(".bar")
    page.keyboard.press("?")
    expect(page.get_by_role("dialog", name="Keys")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)
    page.get_by_label("dataset_id").click()
    page.keyboard.type("go/?")
    expect(page).to_have_url(re.compile("/components$"))
    page.get_by_role("heading", name="Components").click()
    page.keyboard.press("/")
    expect(page.get_by_role("combobox", name="Find asset, job, request")).to_be_focused()
    page.keyboard.press("Escape")
    page.keyboard.press("g")
    page.keyboard.press("o")
    expect(page.get_by_role("heading", name="Overview", level=1)).to_be_visible()


def test_an_address_that_does_not_exist(open_page: OpenPage) -> None:
    page = open_page("/nowhere/at/all")
    expect(page.get_by_text("There is no such place")).to_be_visible()


def test_the_table_draws_few_of_ten_thousand_rows_and_reaches_the_last(open_page: OpenPage) -> None:
    page = open_page("/components")
    rows = page.locator(".gallery-table tbody tr:not(.spacer)")
    expect(rows.first).to_be_visible()
    assert rows.count() < 60
    page.locator(".gallery-table .table").evaluate("element => element.scrollTo(0, element.scrollHeight)")
    expect(page.get_by_text("row-9999")).to_be_visible()
    assert rows.count() < 60


def test_the_status_line_says_when_the_page_is_not_live_and_comes_back(open_page: OpenPage) -> None:
    page = open_page("/components")
    page.route("**/api/v1/stream*", lambda route: route.abort())
    page.reload()
    expect(page.get_by_role("button", name="Not live since")).to_be_visible()
    page.unroute("**/api/v1/stream*")
    expect(page.get_by_text("Live", exact=True)).to_be_visible(timeout=20_000)


def test_the_page_is_sent_with_a_strict_policy_and_its_files_are_kept(open_page: OpenPage) -> None:
    page = open_page("", None)
    answer = page.request.get("/console/any/place")
    assert "frame-ancestors 'none'" in answer.headers["content-security-policy"]
    assert answer.headers["x-content-type-options"] == "nosniff"
    script = page.locator("script").get_attribute("src")
    asset = page.request.get(script or "")
    assert asset.headers["cache-control"] == "public, max-age=31536000, immutable"
    assert asset.headers["content-encoding"] == "gzip"
    assert page.request.get("/console/assets/../../__init__.py").status in (200, 404)
    assert page.request.get("/console/assets/%2e%2e/%2e%2e/__init__.py").status == 404
