"""Submit: files are uploaded, looked into, mended with a click, submitted, and become maps."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import pytest
from PIL import Image
from playwright.sync_api import Page, Route, expect

from tests.console.conftest import OpenPage, picture, serious
from tests.console.platform import SharedPlatform
from tests.console.submissions import raster, shapefile_without_crs, squares, state
from tests.integration.vector import sources

pytestmark = pytest.mark.slow

DROP = """([name, text]) => {
  const bytes = Uint8Array.from(atob(text), letter => letter.charCodeAt(0));
  const data = new DataTransfer();
  data.items.add(new File([bytes], name));
  const target = document.querySelector(".submit");
  const facts = {dataTransfer: data, bubbles: true, cancelable: true};
  for (const type of ["dragover", "drop"]) target.dispatchEvent(new DragEvent(type, facts));
}"""
PIECE = 16 * 1024 * 1024
SOON = 30_000


def choose(page: Page, *paths: Path) -> None:
    page.set_input_files("input[type=file]", [str(path) for path in paths])


def test_a_problem_is_solved_and_the_file_becomes_a_map(
    open_page: OpenPage, platform: SharedPlatform, tmp_path: Path
) -> None:
    page = open_page("/submit", "operator")
    expect(page.get_by_text("No file yet")).to_be_visible()
    assert serious(page) == []
    choose(page, shapefile_without_crs(tmp_path, "villages_2026.zip"))
    expect(page.get_by_text("no_crs")).to_be_visible(timeout=SOON)
    expect(page.get_by_role("button", name="Submit", exact=False).last).to_be_disabled()
    assert serious(page) == []
    page.keyboard.press("1")
    page.keyboard.type("EPSG:4326")
    page.keyboard.press("Enter")
    expect(page.get_by_text("chosen by you")).to_be_visible(timeout=SOON)
    expect(page.locator(".where canvas")).to_be_visible()
    page.get_by_label("dataset_id").fill("villages")
    expect(page.get_by_text("are new: revision 1")).to_be_visible(timeout=SOON)
    page.get_by_label("Title").fill("Villages, 2026")
    page.get_by_label("When the data was taken").fill("2026-06-30")
    expect(page.get_by_text("Starts at once")).to_be_visible(timeout=SOON)
    picture(page, "submit")
    page.keyboard.press("Control+Enter")
    expect(page.locator(".inspect .badge", has_text="completed")).to_be_visible(timeout=SOON)
    expect(page.locator(".result canvas")).to_be_visible()
    picture(page, "submit-result")
    assert serious(page) == []
    with platform.client as client:
        (asset,) = client.get("/api/assets", params={"text": "villages"}).json()["assets"]
    request = state(platform, asset["asset_id"])["requests"][0]
    assert request["processing_options"] == {"source_crs": "EPSG:4326", "datetime": "2026-06-30"}
    assert asset["title"] == "Villages, 2026"


def test_files_are_dropped_and_known_identifiers_are_told(
    open_page: OpenPage, platform: SharedPlatform, tmp_path: Path
) -> None:
    page = open_page("/submit", "operator")
    path = raster(tmp_path, "rain.tif")
    page.wait_for_selector(".submit")
    page.evaluate(DROP, [path.name, base64.b64encode(path.read_bytes()).decode()])
    expect(page.get_by_text("96 \N{MULTIPLICATION SIGN} 64")).to_be_visible(timeout=SOON)
    page.get_by_label("dataset_id").fill("rain")
    page.get_by_label("resource_id").fill("daily")
    expect(page.get_by_text("are new: revision 1")).to_be_visible(timeout=SOON)
    page.get_by_role("button", name="Submit", exact=False).last.click()
    expect(page.locator(".inspect .badge", has_text="completed")).to_be_visible(timeout=SOON)
    page.get_by_role("button", name="Submit the file again").click()
    expect(page.get_by_text("have an asset: this is revision 2")).to_be_visible(timeout=SOON)
    expect(page.get_by_text("Say that this is its next revision")).to_be_visible()
    page.get_by_label("Make it the next revision").check()
    page.get_by_role("button", name="Submit", exact=False).last.click()
    expect(page.locator(".inspect .tag", has_text="r2")).to_be_visible(timeout=SOON)


def test_an_upload_goes_on_after_a_reload(open_page: OpenPage, platform: SharedPlatform, tmp_path: Path) -> None:
    page = open_page("/submit", "operator")
    path = tmp_path / "large.bin"
    path.write_bytes(b"\x01" * (PIECE + 4000))
    offsets: list[str] = []

    def only_the_first(route: Route) -> None:
        offsets.append(route.request.headers.get("upload-offset", ""))
        if len(offsets) == 1:
            route.continue_()
        else:
            route.abort()

    address = "**/api/platform/uploads/*"
    page.route(address, lambda route: only_the_first(route) if route.request.method == "PATCH" else route.continue_())
    choose(page, path)
    expect(page.get_by_role("button", name="Pause")).to_be_visible()
    for _ in range(100):
        if len(offsets) > 1:
            break
        page.wait_for_timeout(100)
    page.get_by_role("button", name="Pause").click()
    expect(page.get_by_text("paused at")).to_be_visible()
    page.reload()
    expect(page.get_by_text("arrived. Drop the same file again")).to_be_visible()
    page.unroute_all()
    choose(page, path)
    expect(page.get_by_text("remark").or_(page.get_by_text("problem", exact=False)).first).to_be_visible(timeout=SOON)
    assert offsets[:2] == ["0", str(PIECE)]
    with platform.client as client:
        uploads = client.get("/api/platform/uploads", params={"limit": 10}).json()["uploads"]
    mine = [upload for upload in uploads if upload["file_name"].endswith("/large.bin")]
    assert [(upload["status"], upload["received_bytes"]) for upload in mine] == [("complete", PIECE + 4000)]


def submit(page: Page, dataset: str, resource: str) -> dict[str, Any]:
    """Fill in the identifiers and submit. Returns what was sent."""
    page.get_by_label("dataset_id").fill(dataset)
    page.get_by_label("resource_id").fill(resource)
    expect(page.get_by_text("are new: revision 1")).to_be_visible(timeout=SOON)
    with page.expect_request(lambda request: request.url.endswith("/api/platform/submit")) as sent:
        page.get_by_role("button", name="Submit", exact=False).last.click()
    expect(page.locator(".inspect .badge", has_text="completed")).to_be_visible(timeout=2 * SOON)
    body: dict[str, Any] = sent.value.post_data_json
    return body


def test_the_parts_of_a_shapefile_become_one_submission(open_page: OpenPage, tmp_path: Path) -> None:
    page = open_page("/submit", "operator")
    parts = sources.shapefile(tmp_path, sources.table(sources.squares(4)), kind="Polygon")
    paths = [tmp_path / f"wells{Path(name).suffix}" for name in parts]
    for path, content in zip(paths, parts.values(), strict=True):
        path.write_bytes(content)
    choose(page, *paths)
    expect(page.locator(".files li")).to_have_count(1)
    expect(page.locator(".files li")).to_contain_text("wells.zip")
    expect(page.get_by_text("EPSG:4326").first).to_be_visible(timeout=SOON)
    assert submit(page, "wells", "wells")["file_name"].endswith("/wells.zip")


def test_a_picture_and_its_world_file_become_one_submission(open_page: OpenPage, tmp_path: Path) -> None:
    page = open_page("/submit", "operator")
    scan, world = tmp_path / "scan.png", tmp_path / "scan.pgw"
    Image.new("L", (40, 20), 128).save(scan)
    world.write_text("0.01\n0\n0\n-0.01\n116.005\n-8.005\n")
    choose(page, scan, world)
    expect(page.locator(".files li")).to_have_count(1)
    expect(page.locator(".files li")).to_contain_text("with scan.pgw")
    expect(page.get_by_text("no_crs")).to_be_visible(timeout=SOON)
    page.keyboard.press("1")
    page.keyboard.type("EPSG:4326")
    page.keyboard.press("Enter")
    expect(page.get_by_text("chosen by you")).to_be_visible(timeout=SOON)
    assert submit(page, "scans", "scan")["file_name"].endswith("/scan.png")


def test_rasters_that_came_together_become_a_collection_when_asked(
    open_page: OpenPage, platform: SharedPlatform, tmp_path: Path
) -> None:
    page = open_page("/submit", "operator")
    choose(page, *(raster(tmp_path, f"day{number}.tif") for number in (1, 2, 3)))
    expect(page.locator(".files li")).to_have_count(3)
    expect(page.get_by_text("3 rasters were dropped together. Each becomes an asset of its own")).to_be_visible()
    page.get_by_role("button", name="Make one collection").click()
    expect(page.locator(".files li")).to_have_count(1)
    collection = page.get_by_role("region", name="Collection")
    expect(collection).to_contain_text("One asset of 3 rasters")
    expect(collection.get_by_text("ready")).to_have_count(3, timeout=SOON)
    assert serious(page) == []
    picture(page, "submit-collection")
    body = submit(page, "days", "rain")
    assert body["workflow_id"] == "process_raster_collection"
    assert [name.rpartition("/")[2] for name in body["file_name"]] == ["day1.tif", "day2.tif", "day3.tif"]
    with platform.client as client:
        (asset,) = client.get("/api/assets", params={"refs": '{"dataset_id": "days"}'}).json()["assets"]
        scenes = client.get(f"/viewer/{asset['asset_id']}/scenes").json()
    assert len(scenes["features"]) == 3


def test_a_shapefile_that_lacks_a_part_is_refused_in_words(open_page: OpenPage, tmp_path: Path) -> None:
    page = open_page("/submit", "operator", phone=True)
    part = tmp_path / "roads.shp"
    part.write_bytes(b"x")
    choose(page, part, squares(tmp_path, "squares.gpkg", ["a", "b"]))
    expect(page.get_by_text("drop roads.shx and roads.dbf together with the rest")).to_be_visible()
    expect(page.locator(".files li")).to_have_count(1)
    expect(page.get_by_text("EPSG:4326").first).to_be_visible(timeout=SOON)
    assert page.evaluate("document.documentElement.scrollWidth") <= 375
    assert serious(page) == []
    picture(page, "submit-phone")
