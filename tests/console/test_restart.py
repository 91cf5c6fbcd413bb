"""The gateway goes and comes back while a page is open: the page says so, and is right again without a reload."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from tests.acceptance.running import children, client_of, eventually, free_port, is_ready, running, show_key
from tests.conftest import FOLDER
from tests.console.conftest import DESK
from tests.prepared import copy_prepared

pytestmark = pytest.mark.slow

SOON = 30_000


def test_the_stream_comes_back_after_the_gateway_was_killed(browser: Browser) -> None:
    data, port = Path(os.environ[FOLDER]) / "console-restart" / "data", free_port()
    data.parent.mkdir()  # PostgreSQL's user may enter it, unlike the folder of a test
    copy_prepared(data)
    with running(data, port) as process, client_of(port) as client:
        eventually(lambda: is_ready(client), "ready")
        show_key(client, data)
        context = browser.new_context(viewport=DESK, base_url=f"http://127.0.0.1:{port}")  # type: ignore[arg-type]
        page = context.new_page()
        page.goto(client.post("/api/v1/session/links", json={}).json()["url"])
        page.wait_for_selector(".bar")
        page.goto("/console/jobs")
        expect(page.get_by_text("Live", exact=True)).to_be_visible(timeout=SOON)
        page.evaluate("window.same = true")
        gateway = children(process.pid)["gateway"]
        os.kill(gateway, signal.SIGKILL)
        expect(page.get_by_role("button", name="Not live since")).to_be_visible(timeout=SOON)
        eventually(lambda: is_ready(client), "ready again")
        assert children(process.pid)["gateway"] != gateway
        expect(page.get_by_text("Live", exact=True)).to_be_visible(timeout=2 * SOON)
        job = client.post("/api/v1/jobs", json={"workflow_id": "hello_world"}).json()["job_id"]
        news = page.locator(".news")
        expect(news.or_(page.get_by_text(job[:13])).first).to_be_visible(timeout=SOON)
        assert page.evaluate("window.same") is True, "the page was loaded again"
        context.close()
