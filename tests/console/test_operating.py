"""The screens of operators on real jobs: overview, jobs, workflows, schedules, operations."""

from __future__ import annotations

import json
import re
import uuid
from urllib.parse import parse_qs, urlsplit

import psycopg
import pytest
from playwright.sync_api import Route, expect

from geomill.embedded import Cluster
from tests.acceptance.running import eventually
from tests.console.conftest import OpenPage, picture, serious
from tests.console.platform import SharedPlatform

pytestmark = pytest.mark.slow


def test_the_overview_shows_jobs_and_where_they_fail(open_page: OpenPage, platform: SharedPlatform) -> None:
    platform.run("hello_world")
    platform.run("fails")
    page = open_page("/overview", "operator")
    expect(page.get_by_text("1 orchestrator")).to_be_visible()
    row = page.get_by_role("row", name=re.compile("^fails"))
    expect(row).to_be_visible()
    assert serious(page) == []
    picture(page, "overview")
    row.get_by_role("link").last.click()
    expect(page).to_have_url(re.compile("status=failed"))
    expect(page.get_by_text("the disk is full").first).to_be_visible()


def test_the_overview_on_a_phone_in_the_dark(open_page: OpenPage) -> None:
    page = open_page("/overview", "reader", phone=True, dark=True)
    expect(page.get_by_role("heading", name="Needs attention")).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth") <= 375
    assert serious(page) == []
    picture(page, "overview-phone-dark")


def test_a_job_changes_in_the_list_and_a_new_one_waits_until_it_is_asked_for(
    open_page: OpenPage, platform: SharedPlatform
) -> None:
    with platform.client as client:
        job = client.post("/api/v1/jobs", json={"workflow_id": "naps", "input_params": {"seconds": 120}}).json()[
            "job_id"
        ]
        page = open_page("/jobs?workflow_id=naps&span=168", "operator")
        row = page.get_by_role("row").filter(has_text=job[:13])
        expect(row).to_contain_text("running")
        client.post(f"/api/v1/jobs/{job}/cancel")
        expect(row).to_contain_text("cancelled", timeout=10_000)
        other = client.post("/api/v1/jobs", json={"workflow_id": "naps", "input_params": {"seconds": 0}}).json()[
            "job_id"
        ]
    expect(page.get_by_text("Show", exact=False).filter(has_text="come or changed")).to_be_visible(timeout=10_000)
    expect(page.get_by_text(other[:13])).to_have_count(0)
    page.locator(".news").click()
    expect(page.get_by_text(other[:13])).to_be_visible()
    assert serious(page) == []
    picture(page, "jobs")


def test_several_jobs_are_cancelled_at_once(open_page: OpenPage, platform: SharedPlatform) -> None:
    mark = uuid.uuid4().hex[:12]
    with platform.client as client:
        order = {"workflow_id": "naps", "input_params": {"seconds": 200}, "correlation_id": mark}
        for _ in range(3):
            client.post("/api/v1/jobs", json=order)
    page = open_page(f"/jobs?correlation_id={mark}", "operator")
    expect(page.get_by_text("running")).to_have_count(4, timeout=15_000)  # three rows, and the button of the state
    page.get_by_role("checkbox", name="Select all that are loaded").check()
    page.get_by_role("button", name="Cancel", exact=True).click()
    page.get_by_label("Reason").fill("the source is wrong")
    page.get_by_role("dialog").get_by_role("button", name="Cancel 3 jobs").click()
    expect(page.get_by_text("Cancelling 3 jobs.")).to_be_visible()
    expect(page.locator("tbody .state").get_by_text("cancelled")).to_have_count(3, timeout=10_000)
    expect(page.get_by_text("the source is wrong")).to_have_count(3)


def test_all_jobs_of_a_filter_are_cancelled_although_few_are_loaded(
    open_page: OpenPage, platform: SharedPlatform
) -> None:
    """Pages have five jobs here, so that twelve are more than two pages."""
    mark = uuid.uuid4().hex[:12]
    order = {"workflow_id": "naps", "input_params": {"seconds": 200}, "correlation_id": mark}
    with platform.client as client:
        for _ in range(12):
            client.post("/api/v1/jobs", json=order)
        other = client.post("/api/v1/jobs", json={**order, "correlation_id": f"{mark}x"}).json()["job_id"]
    page = open_page("/overview", "operator")
    page.route(
        "**/api/v1/jobs?*", lambda route: route.continue_(url=re.sub("limit=[0-9]+", "limit=5", route.request.url))
    )
    page.goto(page.url.replace("/overview", f"/jobs?correlation_id={mark}"))
    page.get_by_role("row").nth(2).get_by_role("checkbox").check()
    page.get_by_role("button", name="Select all 12 that pass the filters").click()
    expect(page.get_by_text("All 12 jobs that pass the filters")).to_be_visible()
    assert serious(page) == []
    page.get_by_role("button", name="Cancel", exact=True).click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("Jobs that come later are left alone")
    assert serious(page) == []
    picture(page, "jobs-bulk")
    dialog.get_by_role("button", name="Cancel 12 jobs").click()
    expect(page.get_by_text("Cancelling 12 jobs.")).to_be_visible(timeout=60_000)
    with platform.client as client:

        def open_jobs() -> int:
            counts = client.get("/api/v1/jobs/counts", params={"correlation_id": mark}).json()["counts"]
            return sum(counts[state] for state in ("queued", "pending", "running"))

        eventually(lambda: open_jobs() == 0, "the cancellation of all")
        assert client.get(f"/api/v1/jobs/{other}").json()["status"] in ("queued", "pending", "running")
        client.post(f"/api/v1/jobs/{other}/cancel")


def test_a_search_goes_on_where_a_page_has_no_match(open_page: OpenPage, platform: SharedPlatform) -> None:
    """The first page is made empty, as one of 10,000 jobs without a match is. All else is real."""
    mark = uuid.uuid4().hex[:12]
    platform.run("fails", message=f"no luck {mark}")
    page = open_page("/overview", "operator")

    def first_without_matches(route: Route) -> None:
        query = parse_qs(urlsplit(route.request.url).query)
        if query.get("error") != [mark]:
            route.continue_()
        elif "cursor" in query:
            route.continue_(url=route.request.url.replace("&cursor=later", ""))
        else:
            answer = route.fetch()
            route.fulfill(response=answer, json={**answer.json(), "jobs": [], "next_cursor": "later"})

    page.route("**/api/v1/jobs?*", first_without_matches)
    page.goto(page.url.replace("/overview", f"/jobs?error={mark}"))
    expect(page.get_by_role("cell", name=re.compile(mark))).to_be_visible()
    expect(page.get_by_text("No job passes these filters")).to_have_count(0)


def test_the_overview_shows_only_times_of_which_all_jobs_were_counted(open_page: OpenPage) -> None:
    page = open_page("/components", "operator")

    def of_very_many(route: Route) -> None:
        answer = route.fetch()
        histogram = answer.json()
        middle = histogram["parts"][len(histogram["parts"]) // 2]["begins_at"]
        route.fulfill(response=answer, json={**histogram, "more": True, "complete_from": middle})

    page.route("**/api/v1/jobs/histogram*", of_very_many)
    page.goto(page.url.replace("/components", "/overview"))
    expect(page.get_by_text("too many jobs to count")).to_be_visible()
    expect(page.get_by_text(re.compile("jobs since"))).to_be_visible()
    assert serious(page) == []
    picture(page, "overview-uncounted")


def test_paused_jobs_are_found_from_the_overview(open_page: OpenPage, platform: SharedPlatform) -> None:
    with platform.client as client:
        order = {"workflow_id": "naps", "input_params": {"seconds": 200}}
        job = client.post("/api/v1/jobs", json=order).json()["job_id"]
        eventually(lambda: client.post(f"/api/v1/jobs/{job}/pause").status_code == 202, "the paused job")
        page = open_page("/overview", "operator")
        concern = page.get_by_role("listitem").filter(has_text="paused")
        concern.get_by_role("link", name="Look at them").click()
        expect(page).to_have_url(re.compile("paused=true"))
        expect(page.get_by_role("row").filter(has_text=job[:13])).to_contain_text("paused")
        client.post(f"/api/v1/jobs/{job}/cancel")


def test_a_reader_may_look_and_nothing_else(open_page: OpenPage, platform: SharedPlatform) -> None:
    platform.run("hello_world")
    page = open_page("/jobs", "reader")
    expect(page.get_by_role("row").nth(1)).to_be_visible()
    expect(page.get_by_role("checkbox")).to_have_count(0)
    expect(page.get_by_text("Run a workflow")).to_have_count(0)
    page.goto("/console/operations")
    names = page.get_by_role("tab").all_text_contents()
    assert "Keys" not in names
    assert "Settings" not in names


def test_a_workflow_runs_from_its_form(open_page: OpenPage) -> None:
    page = open_page("/workflows", "operator")
    page.get_by_label("Find a workflow").fill("naps")
    page.get_by_role("link", name="naps").click()
    page.get_by_label("seconds").fill("soon")
    page.get_by_role("button", name="Run").click()
    expect(page.get_by_text("soon is not a number.")).to_be_visible()
    page.get_by_label("seconds").fill("0")
    assert serious(page) == []
    picture(page, "workflow-run")
    page.get_by_role("button", name="Run").click()
    expect(page).to_have_url(re.compile(r"/jobs/[0-9a-f-]{36}"))


def test_the_form_of_a_workflow_asks_for_what_is_required_and_offers_choices(open_page: OpenPage) -> None:
    page = open_page("/workflows/raster_processing", "operator")
    expect(page.get_by_label("output_tier").get_by_role("option")).to_have_text(
        ["default: analysis", "visualization", "analysis", "archive"]
    )
    page.get_by_role("button", name="Run").click()
    expect(page.get_by_text("This input is required.").first).to_be_visible()
    expect(page).to_have_url(re.compile("/workflows/raster_processing"))
    assert serious(page) == []
    picture(page, "workflow-form")


def test_a_workflow_is_drawn_and_a_chosen_node_is_marked(open_page: OpenPage) -> None:
    page = open_page("/workflows/process_large_raster?tab=nodes", "operator")
    graph = page.get_by_role("group", name=re.compile(r"^Graph of process_large_raster, \d+ nodes"))
    expect(graph).to_be_visible()
    rows = page.get_by_role("region", name="Nodes").get_by_role("row")
    assert graph.get_by_role("button").count() == rows.count() - 1
    graph.get_by_role("button", name=re.compile("runs raster.process_tile_batch")).click()
    chosen = page.locator("tr[aria-selected=true]")
    expect(chosen).to_contain_text("raster.process_tile_batch")
    expect(page).to_have_url(re.compile("node="))
    assert serious(page) == []
    picture(page, "workflow-graph")


def test_a_workflow_is_drawn_on_a_phone_in_the_dark(open_page: OpenPage) -> None:
    page = open_page("/workflows/raster_processing?tab=nodes", "reader", phone=True, dark=True)
    expect(page.get_by_role("group", name=re.compile("^Graph of raster_processing"))).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth") <= 375
    assert serious(page) == []
    picture(page, "workflow-graph-phone-dark")


def test_yaml_is_checked_with_its_lines(open_page: OpenPage) -> None:
    page = open_page("/workflows?tab=check", "operator")
    page.get_by_label("YAML of a workflow").fill(
        "workflow_id: x\nname: X\nnodes:\n  START: {type: start, next: nowhere}\n"
    )
    page.get_by_role("button", name="Check").click()
    expect(page.get_by_text("problem", exact=False).first).to_be_visible()
    page.get_by_role("button", name="line 4").first.click()
    chosen = page.get_by_label("YAML of a workflow").evaluate(
        "field => field.value.slice(field.selectionStart, field.selectionEnd)"
    )
    assert chosen == "  START: {type: start, next: nowhere}"
    assert serious(page) == []
    picture(page, "workflow-check")


def test_a_schedule_is_created_run_and_paused(open_page: OpenPage) -> None:
    name = f"nightly-{uuid.uuid4().hex[:6]}"
    page = open_page("/workflows?tab=schedules", "operator")
    page.get_by_role("button", name="New schedule").click()
    page.get_by_label("Name").fill(name)
    page.get_by_role("combobox", name="Workflow").select_option("hello_world")
    page.get_by_role("button", name="Create").click()
    row = page.get_by_role("row").filter(has_text=name)
    expect(row).to_be_visible()
    row.get_by_role("button", name="Run now").click()
    expect(page.get_by_text("has been submitted")).to_be_visible()
    row.get_by_role("button", name="Pause").click()
    expect(row).to_contain_text("paused")
    assert serious(page) == []
    picture(page, "schedules")


def test_a_schedule_has_inputs_is_changed_and_deleted(open_page: OpenPage, platform: SharedPlatform) -> None:
    name = f"often-{uuid.uuid4().hex[:6]}"
    page = open_page("/workflows?tab=schedules", "operator")
    page.get_by_role("button", name="New schedule").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Name", exact=True).fill(name)
    dialog.get_by_role("combobox", name="Workflow").select_option("naps")
    dialog.get_by_role("button", name="Every").click()
    dialog.get_by_label("Minutes between two jobs").fill("90")
    dialog.get_by_label("seconds").fill("soon")
    dialog.get_by_role("button", name="Create").click()
    expect(dialog.get_by_text("soon is not a number.")).to_be_visible()
    dialog.get_by_label("seconds").fill("0.1")
    assert serious(page) == []
    picture(page, "schedule-new")
    dialog.get_by_role("button", name="Create").click()
    row = page.get_by_role("row").filter(has_text=name)
    expect(row).to_contain_text("every 1 h 30 min")
    row.get_by_role("button", name="Edit").click()
    expect(dialog.get_by_label("seconds")).to_have_value("0.1")
    dialog.get_by_role("button", name="At times").click()
    dialog.get_by_label("Cron").fill("15 4 * * 1")
    dialog.get_by_role("button", name="Save").click()
    expect(row).to_contain_text("15 4 * * 1")
    with platform.client as client:
        schedule = client.get(f"/api/v1/schedules/{name}").json()
    assert (schedule["input_params"], schedule["interval_seconds"]) == ({"seconds": 0.1}, None)
    row.get_by_role("button", name="Delete").click()
    dialog.get_by_role("button", name="Delete").click()
    expect(row).to_have_count(0)


def test_a_platform_is_registered_and_changed(open_page: OpenPage, platform: SharedPlatform) -> None:
    name = f"hub_{uuid.uuid4().hex[:6]}"
    page = open_page("/operations?tab=platforms", "admin")
    page.get_by_role("button", name="New platform").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Platform").fill(name.upper())
    dialog.get_by_label("Identifiers", exact=True).fill("item_id, layer")
    dialog.get_by_label("Name", exact=True).fill("The hub")
    dialog.get_by_role("button", name="Create").click()
    expect(dialog.get_by_role("alert").first).to_be_visible()
    assert serious(page) == []
    dialog.get_by_label("Platform").fill(name)
    picture(page, "platform-new")
    dialog.get_by_role("button", name="Create").click()
    row = page.get_by_role("row").filter(has_text=name)
    expect(row).to_contain_text("item_id, layer")
    row.get_by_role("button", name="Edit").click()
    dialog.get_by_label("It may submit").uncheck()
    with platform.client as client:  # somebody else is faster
        assert client.patch(f"/api/platforms/{name}", json={"display_name": "Another hub"}).status_code == 200
    dialog.get_by_role("button", name="Save").click()
    expect(dialog.get_by_role("alert").first).to_contain_text("was changed")
    dialog.get_by_role("button", name="Close").click()
    expect(row).to_contain_text("Another hub")
    row.get_by_role("button", name="Edit").click()
    dialog.get_by_label("It may submit").uncheck()
    dialog.get_by_role("button", name="Save").click()
    expect(row).to_contain_text("closed")


def test_a_reader_sees_platforms_and_edits_none(open_page: OpenPage) -> None:
    page = open_page("/operations?tab=platforms", "reader")
    expect(page.get_by_role("row").nth(1)).to_be_visible()
    expect(page.get_by_role("button", name="Edit")).to_have_count(0)
    expect(page.get_by_role("button", name="New platform")).to_have_count(0)


def test_a_key_is_shown_once_and_revoked(open_page: OpenPage) -> None:
    name = f"ada-{uuid.uuid4().hex[:6]}"
    page = open_page("/operations?tab=keys", "admin")
    page.get_by_role("button", name="New key").click()
    page.get_by_label("Name of its holder").fill(name)
    page.get_by_label("reader").check()
    page.get_by_label("Ends").select_option(label="in 30 days")
    page.get_by_role("button", name="Create").click()
    expect(page.locator(".secret")).to_have_text(re.compile("^gm_"))
    page.get_by_role("button", name="I have kept it").click()
    row = page.get_by_role("row").filter(has_text=name)
    expect(row.get_by_role("time")).to_have_count(2)  # created, ends
    row.get_by_role("button", name="Revoke").click()
    page.get_by_role("dialog").get_by_role("button", name="Revoke").click()
    expect(row).to_have_count(0)


def test_a_dead_letter_is_sent_again_and_its_job_runs(open_page: OpenPage, platform: SharedPlatform) -> None:
    job_id, name = str(uuid.uuid4()), f"Redriven {uuid.uuid4().hex[:6]}"
    order = {"job_id": job_id, "message_id": job_id, "workflow_id": "hello_world", "input_params": {"name": name}}
    with psycopg.connect(Cluster(platform.data).url("geomill"), autocommit=True) as conn:
        conn.execute(
            "INSERT INTO dagapp.dag_dead_letters (queue_name, message_id, body, reason, description)"
            " VALUES ('dag-jobs', %s, %s, 'MaxDeliveryCountExceeded', 'the broker was away')",
            (job_id, json.dumps(order)),
        )
    page = open_page("/operations?tab=dead-letters", "operator")
    row = page.get_by_role("row").filter(has_text=job_id[:13])
    expect(row).to_contain_text("MaxDeliveryCountExceeded")
    assert serious(page) == []
    picture(page, "operations-dead-letters")
    row.get_by_role("checkbox").check()
    page.get_by_role("button", name="Redrive").click()
    expect(page.get_by_text("Sent 1 message again.")).to_be_visible()
    expect(row).to_have_count(0)
    page.goto(f"/console/jobs/{job_id}")
    expect(page.locator(".head .badge")).to_have_text("completed", timeout=30_000)
    with platform.client as client:
        assert client.get(f"/api/v1/jobs/{job_id}").json()["result"]["message"] == f"Hello, {name}!"


@pytest.mark.parametrize(
    "tab", ["queues", "dead-letters", "parked", "callbacks", "processes", "keys", "settings", "audit"]
)
def test_operations(open_page: OpenPage, tab: str) -> None:
    page = open_page(f"/operations?tab={tab}", "admin")
    expect(page.get_by_role("tabpanel")).not_to_be_empty()
    expect(page.get_by_role("tabpanel").locator("table, .empty, label").first).to_be_visible()
    assert serious(page) == []
    if tab in ("queues", "keys"):
        picture(page, f"operations-{tab}")
