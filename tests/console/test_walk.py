"""A walk through every screen, in light and dark, on a phone and on a large display.

Everybody can use it, nothing is cut off, and no request leaves the gateway: the fixture `open_page` checks that.
"""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from tests.console.conftest import OpenPage, picture, serious
from tests.console.platform import SharedPlatform
from tests.console.published import publish, write_heights

pytestmark = pytest.mark.slow

OPERATIONS = (
    "queues", "dead-letters", "parked", "callbacks", "processes", "circuits", "storage", "keys", "platforms",
    "settings", "audit",
)  # fmt: skip
ASSET_TABS = ("revisions", "links", "audit", "statistics", "files", "requests")


@pytest.fixture(scope="module")
def screens(platform: SharedPlatform, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    asset = publish(platform, write_heights(tmp_path_factory.mktemp("walk") / "walked.tif"), "raster", "v1")
    job = platform.run("tiles", tiles=12, damaged=[3])["job_id"]
    return {
        "overview": "/overview",
        "submit": "/submit",
        "review": f"/review/{asset}",
        "decided": f"/review/{asset}?list=decided",
        "assets": "/assets",
        "jobs": "/jobs",
        "job": f"/jobs/{job}?node=tiles",
        "workflows": "/workflows",
        "workflow-run": "/workflows/raster_processing",
        "workflow-graph": "/workflows/process_large_raster?tab=nodes",
        "workflow-check": "/workflows?tab=check",
        "schedules": "/workflows?tab=schedules",
        **{f"asset-{tab}": f"/assets/{asset}?tab={tab}" for tab in ASSET_TABS},
        **{f"operations-{tab}": f"/operations?tab={tab}" for tab in OPERATIONS},
    }


def settle(page: Page) -> None:
    expect(page.locator("main")).to_be_visible()
    expect(page.locator("main .loading")).to_have_count(0)
    page.wait_for_timeout(250)


@pytest.mark.parametrize("look", ["light", "dark", "phone", "large"])
def test_every_screen(open_page: OpenPage, screens: dict[str, str], look: str) -> None:
    page = open_page("/overview", "admin", phone=look == "phone", dark=look == "dark")
    if look == "large":
        page.set_viewport_size({"width": 3840, "height": 2160})
    width = page.viewport_size["width"]  # type: ignore[index]
    findings = {}
    for name, path in screens.items():
        page.goto(f"/console{path}")
        settle(page)
        expect(page.get_by_role("heading", level=1)).to_have_count(1)
        found = serious(page) if look != "large" else []
        if page.evaluate("document.documentElement.scrollWidth") > width:
            found.append("the page is wider than its window")
        if found:
            findings[name] = found
        picture(page, f"walk-{name}-{look}")
    assert findings == {}


def test_what_a_stranger_sees_first(open_page: OpenPage) -> None:
    for dark in (False, True):
        page = open_page("/jobs", None, dark=dark)
        expect(page.get_by_label("API key")).to_be_visible()
        assert serious(page) == []
