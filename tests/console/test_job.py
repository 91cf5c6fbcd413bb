"""The screen of a job: graph, timeline, items, errors and retries, live."""

from __future__ import annotations

import re
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.acceptance.running import eventually
from tests.console.conftest import OpenPage, picture, serious
from tests.console.platform import SharedPlatform

pytestmark = pytest.mark.slow

MOST_MILLISECONDS = 200
"""The most that an interaction may take until the next paint."""
MEASURE = """() => {
  window.interactions = {};
  new PerformanceObserver((list) => {
    for (const entry of list.getEntries()) {
      if (!entry.interactionId) continue;
      const longest = window.interactions[entry.interactionId] ??= { duration: 0, own: 0, name: entry.name };
      longest.duration = Math.max(longest.duration, entry.duration);
      longest.own = Math.max(longest.own, entry.processingEnd - entry.processingStart);
    }
  }).observe({ type: 'event', durationThreshold: 16, buffered: true });
}"""


def start(platform: SharedPlatform, workflow_id: str, **inputs: Any) -> str:
    with platform.client as client:
        answer = client.post("/api/v1/jobs", json={"workflow_id": workflow_id, "input_params": inputs})
        assert answer.status_code == 202, answer.text
        return str(answer.json()["job_id"])


def ended_items(platform: SharedPlatform, job_id: str) -> int:
    with platform.client as client:
        progress = client.get(f"/api/v1/jobs/{job_id}", params={"outputs": False}).json()["progress"]
        return int(progress["items_ended"])


def node(page: Page, name: str) -> Any:
    return page.locator(f'[data-node="{name}"]')


def test_ten_thousand_items_stay_responsive(open_page: OpenPage, platform: SharedPlatform) -> None:
    job_id = start(platform, "tiles", tiles=10_000, damaged=[7, 24, 310], seconds=0.01)
    page = open_page(f"/jobs/{job_id}", "operator")
    eventually(lambda: ended_items(platform, job_id) > 400, "the first items")
    page.evaluate(MEASURE)
    expect(node(page, "tiles")).to_have_attribute("aria-label", re.compile("fan-out of 10,000, running"))
    expect(page.get_by_role("cell", name="unreadable").first).to_be_visible()
    for name in ("validate", "tiles", "mosaic", "tiles"):
        node(page, name).click()
    for key in ("ArrowDown", "ArrowDown", "ArrowUp", "Enter", "e", "e", "Escape", "0"):
        page.keyboard.press(key)
    for choice in ("all", "slowest", "failed", "completed", "Worth a look"):
        page.get_by_role("button", name=choice, exact=True).click()
    page.get_by_role("tab", name="Events").click()
    page.get_by_role("tab", name="Items").click()
    page.get_by_role("button", name="all", exact=True).click()
    table = page.get_by_role("region", name="Items of tiles")
    expect(table.get_by_role("button", name="Open item 0", exact=True)).to_be_visible()
    later = table.get_by_role("button", name=re.compile(r"Open item ([4-9]\d\d|\d{4})$"))
    for _ in range(100):
        if later.count() > 0:
            break
        table.evaluate("element => element.scrollBy(0, 4000)")
        page.wait_for_timeout(100)
    expect(later.first).to_be_visible()
    assert table.locator("tbody tr").count() < 80
    page.get_by_label("Find an item by its number").fill("item 9,999")
    page.keyboard.press("Enter")
    expect(page.get_by_role("complementary", name="Item 9999 of tiles")).to_be_visible()
    assert "item=9999" in page.url
    picture(page, "job-live")
    page.wait_for_timeout(300)
    interactions = list(page.evaluate("window.interactions").values())
    assert len(interactions) > 5, "the browser has measured few interactions"
    # The slowest one is left out, as the measure does for one in fifty: a machine with other work may stop the browser.
    for measure in ("own", "duration"):
        assert sorted(interaction[measure] for interaction in interactions)[-2] < MOST_MILLISECONDS, interactions
    page.get_by_role("button", name="Cancel").click()
    page.get_by_label("Reason").fill("enough was seen")
    page.get_by_role("button", name="Cancel the job").click()
    expect(page.locator(".head .badge")).to_have_text("cancelled", timeout=30_000)
    expect(page.get_by_text("enough was seen")).to_be_visible()


def test_a_failing_node_its_traceback_and_its_retry(open_page: OpenPage, platform: SharedPlatform) -> None:
    job = platform.run("divides")
    assert job["status"] == "failed"
    page = open_page(f"/jobs/{job['job_id']}", "operator")
    expect(page.locator(".head .badge")).to_have_text("failed")
    page.keyboard.press("e")
    drawer = page.get_by_role("complementary", name="Node divide")
    traceback = drawer.get_by_role("region", name="Traceback of attempt 2")
    expect(traceback).to_contain_text("tests/console/handlers.py")
    expect(traceback.locator(".hot")).to_have_text("ZeroDivisionError: float division by zero")
    drawer.get_by_role("button", name="Attempt 1").click()
    expect(drawer.get_by_role("region", name="Traceback of attempt 1")).to_be_visible()
    assert "node=divide" in page.url
    assert serious(page) == []
    picture(page, "job-failed")
    drawer.get_by_role("tab", name="Log").click()
    expect(drawer.get_by_role("log")).to_contain_text("dividing in attempt 2")
    drawer.get_by_role("tab", name="Params").click()
    expect(drawer).to_contain_text('"zero_until": 2')
    page.keyboard.press("t")
    expect(page.get_by_role("radio", name="From divide")).to_be_checked()
    page.get_by_role("dialog").get_by_role("button", name="Retry").click()
    expect(page.locator(".head .badge")).to_have_text("completed", timeout=20_000)
    drawer.get_by_role("tab", name="Output").click()
    expect(drawer).to_contain_text('"quotient": 6')


def test_a_retry_with_changed_inputs_is_compared_with_the_first(open_page: OpenPage, platform: SharedPlatform) -> None:
    job = platform.run("divides", zero_until=99)
    page = open_page(f"/jobs/{job['job_id']}", "operator")
    page.get_by_role("button", name="Retry").click()
    page.get_by_role("radio", name="With changed inputs").check()
    field = page.get_by_label("zero_until")
    expect(field).to_have_value("99")
    field.fill("never")
    expect(page.get_by_text("a number is needed")).to_be_visible()
    expect(page.get_by_role("button", name="Start a new job")).to_be_disabled()
    field.fill("0")
    page.get_by_role("button", name="Start a new job").click()
    expect(page.locator(".head .badge")).to_have_text("completed", timeout=20_000)
    assert job["job_id"] not in page.url
    page.get_by_role("tab", name="Compare").click()
    differences = page.get_by_role("table", name="Differences")
    expect(differences).to_contain_text("input zero_until")
    expect(differences.get_by_role("row", name="divide failed")).to_contain_text("failed")


def test_a_job_is_paused_by_a_key_and_is_right_after_a_reconnect(open_page: OpenPage, platform: SharedPlatform) -> None:
    job_id = start(platform, "naps", seconds=60)
    page = open_page(f"/jobs/{job_id}", "operator")
    expect(node(page, "nap")).to_have_attribute("aria-label", "nap, running", timeout=20_000)
    page.keyboard.press("p")
    expect(page.locator(".head .badge")).to_have_text("paused")
    page.route("**/api/v1/stream*", lambda route: route.abort())
    page.reload()
    expect(page.get_by_role("button", name="Not live since")).to_be_visible()
    expect(page.locator(".head .badge")).to_have_text("paused")
    with platform.client as client:
        assert client.post(f"/api/v1/jobs/{job_id}/cancel", json={"reason": "seen"}).status_code == 202
    page.unroute("**/api/v1/stream*")
    expect(page.locator(".head .badge")).to_have_text("cancelled", timeout=20_000)
    expect(page.get_by_role("button", name="Pause")).to_have_count(0)


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_a_reader_sees_everything_and_may_change_nothing(
    open_page: OpenPage, platform: SharedPlatform, dark: bool
) -> None:
    job = platform.run("tiles", tiles=12, damaged=[3])
    page = open_page(f"/jobs/{job['job_id']}?node=tiles&item=3&tab=run", "reader", dark=dark)
    drawer = page.get_by_role("complementary", name="Item 3 of tiles")
    expect(drawer).to_contain_text("block 3 of band 2 is damaged")
    expect(node(page, "extract")).to_have_attribute("aria-label", "extract, skipped")
    assert page.locator(".arrow.off").count() == 2
    expect(page.get_by_role("button", name="Retry")).to_have_count(0)
    expect(page.get_by_role("button", name="Repeat")).to_have_count(0)
    assert serious(page) == []
    picture(page, f"job-{'dark' if dark else 'light'}")


def test_on_a_phone_the_parts_are_tabs(open_page: OpenPage, platform: SharedPlatform) -> None:
    job = platform.run("tiles", tiles=12, damaged=[3])
    page = open_page(f"/jobs/{job['job_id']}", "operator", phone=True)
    expect(node(page, "tiles")).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth") <= 375
    page.get_by_role("button", name="Timeline").click()
    expect(page.get_by_role("region", name="Timeline")).to_be_visible()
    expect(node(page, "tiles")).not_to_be_visible()
    page.get_by_role("button", name="Items and more").click()
    page.get_by_role("button", name="Open item 3").click()
    expect(page.get_by_role("complementary", name="Item 3 of tiles")).to_be_visible()
    assert serious(page) == []
    picture(page, "job-phone")


def test_a_job_that_does_not_exist(open_page: OpenPage) -> None:
    page = open_page("/jobs/none", "operator")
    expect(page.get_by_text("There is no job 'none'")).to_be_visible()
    page.get_by_role("link", name="All jobs").click()
    expect(page.get_by_role("heading", name="Jobs", level=1)).to_be_visible()
