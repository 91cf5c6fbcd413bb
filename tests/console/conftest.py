"""A browser on the running platform: pages of each role, a check of accessibility, and pictures for people to look at.

`CONSOLE_PICTURES` names the folder of the pictures; by default it is `.local/pictures`.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

from tests.console.platform import SharedPlatform, shared_platform

ROOT = Path(__file__).parents[2]
AXE = ROOT / "console/node_modules/axe-core/axe.min.js"
PICTURES = Path(os.environ.get("CONSOLE_PICTURES", ROOT / ".local/pictures"))
FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--use-gl=angle",
    "--use-angle=swiftshader",
    "--enable-unsafe-swiftshader",
]
DESK = {"width": 1440, "height": 900}
PHONE = {"width": 375, "height": 812}
HARMLESS = (
    "GPU stall",
    "net::ERR_FAILED",
    "net::ERR_NETWORK_CHANGED",
    "status of 401",
    "status of 403",
    "status of 404",
    "status of 409",
    "status of 422",
)
"""Parts of messages of the browser that are no defect: refusals that tests provoke, SwiftShader's slowness, and the
networks that other tests (tests/deploy) make and remove meanwhile."""


@pytest.fixture(scope="session")
def platform() -> SharedPlatform:
    return shared_platform(Path(__file__).with_name("workflows"))


@pytest.fixture(scope="module")
def browser(platform: SharedPlatform) -> Iterator[Browser]:
    """Not for the whole session: Playwright keeps an event loop, beside which other tests can start none. For this
    reason the platform is started first."""
    del platform
    chromium = shutil.which("chromium")
    assert chromium, "chromium is missing: run script/setup --tests"
    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=chromium, args=FLAGS)
        yield opened
        opened.close()


OpenPage = Callable[..., Page]


@pytest.fixture
def open_page(browser: Browser, platform: SharedPlatform) -> Iterator[OpenPage]:
    """`open_page("/jobs", "operator")`: a page of somebody who is signed in with these roles; without roles, as an
    administrator; with None, as nobody. At the end of the test no page may have had an error, or have called another
    host."""
    contexts: list[Any] = []
    wrong: list[str] = []

    def open_one(path: str = "", *roles: str | None, phone: bool = False, dark: bool = False) -> Page:
        context = browser.new_context(
            viewport=PHONE if phone else DESK,
            color_scheme="dark" if dark else "light",
            has_touch=phone,
            is_mobile=phone,
            timezone_id="Asia/Jakarta",
            base_url=platform.url,
            reduced_motion="reduce",
        )
        contexts.append(context)
        page = context.new_page()
        watch(page, platform, wrong)
        if roles != (None,):
            page.goto(platform.link(*[role for role in roles if role]))
            page.wait_for_selector(".bar")
        page.goto(f"/console{path}")
        return page

    yield open_one
    for context in contexts:
        context.close()
    assert wrong == []


def watch(page: Page, platform: SharedPlatform, wrong: list[str]) -> None:
    def tell(message: Any) -> None:
        if message.type == "error" and not any(part in message.text for part in HARMLESS):
            wrong.append(message.text)

    def asked(request: Any) -> None:
        parts = urlsplit(request.url)
        if parts.scheme not in ("data", "blob") and parts.netloc != urlsplit(platform.url).netloc:
            wrong.append(f"a request to another host: {request.url}")

    page.on("console", tell)
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on("request", asked)


def serious(page: Page) -> list[str]:
    """Findings of axe that keep people from using the page: serious and critical ones, with their places."""
    if not page.evaluate("() => 'axe' in window"):
        page.evaluate(AXE.read_text())
    findings = page.evaluate("() => axe.run(document, {resultTypes: ['violations']}).then(result => result.violations)")
    return [
        f"{finding['id']}: {finding['help']}: {[node['html'][:160] for node in finding['nodes'][:3]]}"
        for finding in findings
        if finding["impact"] in ("serious", "critical")
    ]


def picture(page: Page, name: str) -> None:
    """Keep a picture of the page, so that a person can look at it."""
    PICTURES.mkdir(parents=True, exist_ok=True)
    page.wait_for_timeout(300)
    page.screenshot(path=PICTURES / f"{name}.png")
