"""Review: the public and the new revision are compared, and a decision is about the revision that was looked at."""

from __future__ import annotations

import re
import time
from pathlib import Path

import httpx
import pytest
from playwright.sync_api import Route, expect

from tests.console.conftest import OpenPage, picture, serious
from tests.console.platform import SharedPlatform
from tests.console.submissions import publish, squares, state

pytestmark = pytest.mark.slow

SOON = 30_000


def test_revisions_are_compared_and_the_new_one_made_public(
    open_page: OpenPage, platform: SharedPlatform, tmp_path: Path
) -> None:
    first = squares(tmp_path, "first.gpkg", ["a", "a", "a"])
    asset_id = publish(platform, first, "compared", clearance="public")["asset_id"]
    publish(platform, squares(tmp_path, "second.gpkg", ["a", "b", "a", "a"]), "compared")
    page = open_page(f"/review/{asset_id}", "reviewer")
    tally = page.get_by_label("Differences in this view")
    expect(tally).to_contain_text("added1changed1removed0", timeout=SOON)
    expect(page.get_by_role("row", name="Features 3 4 +1")).to_be_visible()
    expect(page.get_by_role("slider")).to_have_attribute("aria-valuenow", "50")
    page.keyboard.press("ArrowRight")
    expect(page.get_by_role("slider")).to_have_attribute("aria-valuenow", "52")
    assert serious(page) == []
    picture(page, "review")
    page.keyboard.press("b")
    expect(page.get_by_role("slider")).to_have_count(0)
    assert "mode=beside" in page.url
    page.keyboard.press("2")
    expect(page.get_by_text("Replaces r1 outside")).to_be_visible()
    page.keyboard.press("a")
    expect(page.get_by_text("Everybody will see r2")).to_be_visible()
    assert state(platform, asset_id)["approval_state"] == "pending_review"
    page.keyboard.press("a")
    expect(page.get_by_role("link", name="Export job")).to_be_visible(timeout=SOON)
    assert state(platform, asset_id)["public_revision"] == 2
    address, deadline = f"{platform.url}/vector/collections/{asset_id}/items", time.monotonic() + 10
    while httpx.get(address).json()["numberMatched"] != 4:  # servers look at the asset again after a second
        assert time.monotonic() < deadline
        time.sleep(0.1)


def test_a_revision_that_came_meanwhile_is_not_decided(
    open_page: OpenPage, platform: SharedPlatform, tmp_path: Path
) -> None:
    path = squares(tmp_path, "squares.gpkg", ["a", "a"])
    asset_id = publish(platform, path, "changed")["asset_id"]
    page = open_page(f"/review/{asset_id}", "reviewer")
    expect(page.get_by_role("button", name="Approve r1 as official use")).to_be_enabled(timeout=SOON)
    answers: list[int] = []

    def overtaken(route: Route) -> None:
        publish(platform, path, "changed")
        answer = route.fetch()
        answers.append(answer.status)
        route.fulfill(response=answer)

    page.route("**/api/platform/approve", overtaken)
    page.keyboard.press("1")
    page.keyboard.press("a")
    expect(page.get_by_text("r2 came while you looked at r1.")).to_be_visible(timeout=SOON)
    expect(page.get_by_role("button", name="Approve r1 as official use")).to_be_disabled()
    assert answers == [409]
    picture(page, "review-changed")
    page.unroute_all()
    page.get_by_role("button", name="Look at r2").click()
    expect(page.get_by_role("button", name="Approve r2 as official use")).to_be_enabled(timeout=SOON)
    assert state(platform, asset_id)["approval_state"] == "pending_review"


def test_a_rejection_has_a_reason_and_the_next_one_opens(
    open_page: OpenPage, platform: SharedPlatform, tmp_path: Path
) -> None:
    path = squares(tmp_path, "squares.gpkg", ["a", "a"])
    asset_id = publish(platform, path, "rejected")["asset_id"]
    other = publish(platform, path, "rejected-next")["asset_id"]
    page = open_page(f"/review/{asset_id}", "reviewer", phone=True)
    expect(page.get_by_role("button", name="Reject", exact=False)).to_be_visible(timeout=SOON)
    assert page.evaluate("document.documentElement.scrollWidth") <= 375
    assert serious(page) == []
    picture(page, "review-phone")
    page.keyboard.press("r")
    page.get_by_role("button", name="CRS is wrong").click()
    page.keyboard.press("Control+Enter")
    expect(page.get_by_text("is rejected.")).to_be_visible(timeout=SOON)
    page.wait_for_url(lambda url: asset_id not in url)
    asset = state(platform, asset_id)
    assert (asset["approval_state"], asset["rejection_reason"][:17]) == ("rejected", "The CRS is wrong.")
    assert state(platform, other)["approval_state"] == "pending_review"


def test_who_decided_what_today(open_page: OpenPage, platform: SharedPlatform, tmp_path: Path) -> None:
    path = squares(tmp_path, "squares.gpkg", ["a"])
    asset_id = publish(platform, path, "decided", clearance="ouo")["asset_id"]
    publish(platform, path, "undecided")
    page = open_page("/review", "reviewer")
    expect(page.get_by_text(re.compile(r"^Decided today: \d+ approved"))).to_be_visible(timeout=SOON)
    page.get_by_role("button", name="Show decided").click()
    expect(page).to_have_url(re.compile("list=decided"))
    row = page.get_by_role("list", name="Decided today").get_by_role("listitem").filter(has_text="review-decided-v1")
    expect(row).to_contain_text("r1 approved as official use only by admin")
    assert serious(page) == []
    picture(page, "review-decided")
    row.get_by_role("link").click()
    expect(page).to_have_url(re.compile(f"/assets/{asset_id}"))
    expect(page.get_by_role("cell", name="Approved", exact=True)).to_be_visible()


def test_an_operator_has_no_review(open_page: OpenPage) -> None:
    page = open_page("/submit", "operator")
    expect(page.get_by_role("link", name="Submit")).to_be_visible()
    expect(page.get_by_role("link", name="Review")).to_have_count(0)
