"""Assets: the list with its map, and the screen of one with style, values, features, revisions and links."""

from __future__ import annotations

import io
import json
import re
from datetime import UTC, datetime, time, timedelta
from pathlib import Path
from urllib.parse import quote
from zoneinfo import ZoneInfo

import httpx
import pytest
from PIL import Image
from playwright.sync_api import Page, Route, expect

from tests.acceptance.running import eventually
from tests.console.conftest import OpenPage, picture, serious
from tests.console.platform import SharedPlatform
from tests.console.published import publish, write_fields, write_heights, write_quadrants

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def heights(platform: SharedPlatform, tmp_path_factory: pytest.TempPathFactory) -> str:
    return publish(platform, write_heights(tmp_path_factory.mktemp("raster") / "heights.tif"), "raster", "v1")


@pytest.fixture(scope="module")
def fields(platform: SharedPlatform, tmp_path_factory: pytest.TempPathFactory) -> str:
    return publish(platform, write_fields(tmp_path_factory.mktemp("vector") / "fields.geojson"), "vector", "v1")


def colours(page: Page) -> set[tuple[int, int, int]]:
    """The colours in the middle of the map."""
    box = page.locator(".map .canvas").bounding_box()
    assert box is not None
    clip = {"x": box["x"] + box["width"] / 2 - 60, "y": box["y"] + box["height"] / 2 - 60, "width": 50, "height": 50}
    picture = Image.open(io.BytesIO(page.screenshot(clip=clip)))  # type: ignore[arg-type]
    return {colour for _, colour in picture.convert("RGB").getcolors(2500)}  # type: ignore[union-attr, misc]


def test_the_style_of_a_raster_is_tried_saved_and_seen(
    open_page: OpenPage, platform: SharedPlatform, heights: str
) -> None:
    page = open_page(f"/assets/{heights}")
    expect(page.get_by_role("heading", name="Test of heights v1")).to_be_visible()
    expect(page.locator(".legend")).to_be_visible()
    before = eventually(lambda: len(colours(page)) > 10 and colours(page), "the tiles")
    page.get_by_role("radiogroup", name="Colour map").get_by_role("radio", name="magma").click()
    expect(page.get_by_text("changed, not saved")).to_be_visible()
    expect(page).to_have_url(re.compile("draw=.*magma"))
    eventually(
        lambda: len(colours(page)) > 10 and not colours(page) & before, "tiles with the colours that were chosen"
    )
    page.get_by_role("slider", name="To", exact=True).press("PageDown")
    expect(page.get_by_label("Preset of the stretch")).to_have_value("")
    page.get_by_role("button", name="Save as style of the asset").click()
    expect(page.get_by_text("Everybody who may see the asset now sees it so.")).to_be_visible()
    with platform.client as client:
        styles = client.get(f"/api/assets/{heights}/styles").json()
    assert styles["default"] == "console"
    assert next(style for style in styles["styles"] if style["default"])["style"]["colormap_name"] == "magma"
    page.get_by_role("tab", name="Audit").click()
    expect(page.get_by_role("cell", name="Style changed")).to_be_visible()
    assert serious(page) == []
    picture(page, "asset")


COLOURS = {1: (255, 0, 0), 2: (0, 255, 0), 3: (0, 0, 255), 4: (255, 255, 0)}
ZOOM = 8
QUARTER_PIXELS = round(0.25 * 512 * 2**ZOOM / 360)
"""A quarter of a degree of longitude on the map; near the equator one of latitude is as long."""


def style_of_quadrants(opacity: float) -> str:
    classes = [{"value": value, "color": "#{:02x}{:02x}{:02x}".format(*colour)} for value, colour in COLOURS.items()]
    return json.dumps({"kind": "raster", "bidx": [1], "classes": classes, "opacity": opacity})


def quadrants(page: Page) -> dict[int, tuple[int, ...]]:
    """The colours in the middle of each quadrant of the raster, which lies around the middle of the map."""
    box = page.locator(".map .canvas").bounding_box()
    assert box is not None
    shot = Image.open(io.BytesIO(page.screenshot())).convert("RGB")
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    offsets = {1: (-1, -1), 2: (1, -1), 3: (-1, 1), 4: (1, 1)}
    return {
        value: shot.getpixel((round(x + across * QUARTER_PIXELS), round(y + down * QUARTER_PIXELS)))  # type: ignore[misc]
        for value, (across, down) in offsets.items()
    }


def test_each_pixel_of_the_map_has_the_colour_of_its_value_at_its_place(
    open_page: OpenPage, platform: SharedPlatform, tmp_path: Path
) -> None:
    asset = publish(platform, write_quadrants(tmp_path / "quadrants.tif"), "raster", "v1")
    path = f"/console/assets/{asset}?at=116.5,-8.5,{ZOOM}&draw="
    page = open_page("/assets", "reader")
    page.goto(path + quote(style_of_quadrants(1)))
    eventually(lambda: quadrants(page) == COLOURS, f"the four colours, not {quadrants(page)}", patience=20)
    page.goto(path + quote(style_of_quadrants(0)))
    expect(page.get_by_role("slider", name="Opacity")).to_have_value("0")
    page.wait_for_timeout(1500)
    ground = quadrants(page)
    assert not set(ground.values()) & set(COLOURS.values())
    page.goto(path + quote(style_of_quadrants(0.5)))

    def half() -> bool:
        mixed = quadrants(page)
        return all(
            abs(part - (above + below) / 2) <= 3
            for value, colour in mixed.items()
            for part, above, below in zip(colour, COLOURS[value], ground[value], strict=True)
        )

    eventually(half, "colours mixed with the ground", patience=20)


def test_an_opacity_is_saved_with_the_style_and_in_the_tiles(open_page: OpenPage, platform: SharedPlatform) -> None:
    with platform.client as client:
        (asset,) = client.get("/api/assets", params={"text": "quadrants"}).json()["assets"]
    page = open_page(f"/assets/{asset['asset_id']}", "reviewer")
    slider = page.get_by_role("slider", name="Opacity")
    expect(slider).to_have_value("1")
    slider.fill("0.4")
    expect(page.get_by_text("changed, not saved")).to_be_visible()
    page.get_by_role("button", name="Save as style of the asset").click()
    expect(page.get_by_text("Everybody who may see the asset now sees it so.")).to_be_visible()
    page.reload()
    expect(page.get_by_role("slider", name="Opacity")).to_have_value("0.4")
    preview = f"/raster/assets/{asset['asset_id']}/preview.png"

    def alpha() -> int:
        shown = Image.open(io.BytesIO(page.request.get(preview).body())).convert("RGBA")
        return int(shown.getchannel("A").getextrema()[1])  # type: ignore[arg-type]

    eventually(lambda: alpha() == 102, "a preview with the opacity", patience=10)


def test_a_click_tells_the_value_and_its_link_shows_it_again(open_page: OpenPage, heights: str) -> None:
    page = open_page(f"/assets/{heights}?click=116.5,-8.5", "reader")
    probe = page.get_by_role("region", name="At this place")
    expect(probe).to_contain_text(re.compile(r"9\d\d"))
    expect(page.get_by_role("button", name="Save as style of the asset")).to_have_count(0)
    page.keyboard.press("Escape")
    expect(probe).to_have_count(0)


def test_features_are_listed_filtered_chosen_and_coloured(open_page: OpenPage, fields: str) -> None:
    page = open_page(f"/assets/{fields}")
    table = page.get_by_role("region", name="Features")
    expect(table.get_by_role("row")).not_to_have_count(0)
    expect(page.get_by_text("100 features")).to_be_visible()
    page.get_by_label("Filter of features, as CQL2").fill("use = 'forest' AND area > 14")
    page.get_by_role("button", name="Filter").click()
    expect(page.get_by_text(re.compile(r"^\d+ match$"))).to_be_visible()
    table.get_by_role("cell", name="forest").first.click()
    expect(page).to_have_url(re.compile("feature=\\d+"))
    page.get_by_label("Column that gives the colour").select_option("use")
    expect(page.locator(".legend")).to_contain_text("meadow")
    page.get_by_label("Filter of features, as CQL2").fill("nonsense ===")
    page.get_by_role("button", name="Filter").click()
    expect(page.get_by_role("alert")).to_be_visible()
    assert serious(page) == []


def test_a_download_too_large_for_an_answer_is_ordered_and_begins_by_itself(
    open_page: OpenPage, fields: str, tmp_path: Path
) -> None:
    """The page is told of two million rows. All else is real: the order, the job, the file."""
    page = open_page("/assets")

    def with_many_rows(route: Route) -> None:
        answer = route.fetch()
        document = answer.json()
        document["outputs"]["stac_item"]["properties"]["table:row_count"] = 2_000_000
        route.fulfill(response=answer, json=document)

    page.route(f"**/api/assets/{fields}", with_many_rows)
    page.goto(page.url.replace("/assets", f"/assets/{fields}"))
    page.get_by_role("button", name="Download").first.click()
    with page.expect_download(timeout=60_000) as download:
        page.get_by_role("button", name="CSV").click()
        page.get_by_text("a job writes it").wait_for()
    download.value.save_as(tmp_path / "a.csv")
    assert len((tmp_path / "a.csv").read_text().splitlines()) == 1 + 100


def test_going_back_makes_a_revision_that_waits_for_review(
    open_page: OpenPage, platform: SharedPlatform, tmp_path: Path
) -> None:
    asset_id = publish(platform, write_fields(tmp_path / "plots.geojson", rows=3), "vector", "v1")
    publish(platform, write_fields(tmp_path / "plots.geojson", rows=4), "vector", "v1")
    page = open_page(f"/assets/{asset_id}?tab=revisions")
    page.get_by_role("button", name="Go back to r1").click()
    page.get_by_role("button", name="Make r3 of r1").click()
    expect(page.get_by_text("r3 has the outputs of r1, and waits for review.")).to_be_visible()
    expect(page.get_by_role("tabpanel").get_by_role("row", name=re.compile("^r3"))).to_contain_text("pending review")


def test_an_approved_asset_is_made_public_and_taken_back(
    open_page: OpenPage, platform: SharedPlatform, tmp_path: Path
) -> None:
    asset_id = publish(platform, write_fields(tmp_path / "withdrawn.geojson", rows=3), "vector", "v1")
    with platform.client as client:
        body = {"asset_id": asset_id, "clearance_level": "ouo"}
        assert client.post("/api/platform/approve", json=body).status_code == 200
    address = f"{platform.url}/vector/collections/{asset_id}/items"
    page = open_page(f"/assets/{asset_id}", "reviewer")
    page.get_by_role("button", name="More").click()
    page.get_by_role("button", name="Make public").click()
    dialog = page.get_by_role("dialog", name="Make public")
    expect(dialog).to_contain_text("Everybody will see r1")
    assert serious(page) == []
    dialog.get_by_role("button", name="Make public").click()
    expect(page.get_by_role("link", name="Its job")).to_be_visible()
    eventually(lambda: httpx.get(address).status_code == 200, "the public asset")
    page.get_by_role("button", name="More").click()
    page.get_by_role("button", name="Revoke the approval").click()
    dialog = page.get_by_role("dialog", name="Revoke the approval")
    expect(dialog.get_by_role("button", name="Revoke the approval")).to_be_disabled()
    dialog.get_by_label("Reason").fill("the owner has not agreed")
    picture(page, "asset-revoke")
    dialog.get_by_role("button", name="Revoke the approval").click()
    expect(page.get_by_text("The asset is unpublished")).to_be_visible()
    eventually(lambda: httpx.get(address).status_code in (401, 404), "the revoked asset")


def test_an_operator_may_unpublish_and_nothing_else(
    open_page: OpenPage, platform: SharedPlatform, tmp_path: Path
) -> None:
    asset_id = publish(platform, write_fields(tmp_path / "unpublished.geojson", rows=3), "vector", "v1")
    page = open_page(f"/assets/{asset_id}", "operator")
    expect(page.get_by_role("button", name="Share")).to_be_visible()
    page.get_by_role("button", name="More").click()
    expect(page.get_by_role("button", name="Revoke the approval")).to_have_count(0)
    page.get_by_role("button", name="Unpublish").click()
    page.get_by_role("dialog").get_by_role("button", name="Unpublish").click()
    expect(page.get_by_text("The asset is unpublished")).to_be_visible()
    expect(page.get_by_role("button", name="More")).to_have_count(0)


def test_a_shared_link_opens_for_anybody_until_it_ends(open_page: OpenPage, heights: str) -> None:
    page = open_page(f"/assets/{heights}")
    page.get_by_role("button", name="Share").click()
    page.get_by_role("button", name="1 hour").click()
    dialog = page.get_by_role("dialog", name="Share")
    expect(dialog).to_contain_text("Ends")
    link = dialog.get_by_role("link").or_(dialog.locator("code")).first.inner_text()
    assert httpx.get(link).status_code == 200
    assert httpx.get(link.partition("?")[0]).status_code in (401, 404)
    page.get_by_role("button", name="Until a date").click()
    here = datetime.now(ZoneInfo("Asia/Jakarta"))
    page.get_by_label("Last day").fill(str(here.date() - timedelta(days=1)))
    expect(page.get_by_text("is in the past or too far away")).to_be_visible()
    page.get_by_label("Last day").fill(str(here.date() + timedelta(days=3)))
    ends = dialog.locator("time")
    midnight = datetime.combine(here.date() + timedelta(days=4), time(), here.tzinfo).astimezone(UTC)
    shown = datetime.strptime(ends.get_attribute("title") or "", "%Y-%m-%d %H:%M:%S UTC").replace(tzinfo=UTC)
    assert timedelta(0) <= midnight - shown <= timedelta(seconds=2)
    assert serious(page) == []
    until = dialog.get_by_role("link").or_(dialog.locator("code")).first.inner_text()
    assert httpx.get(until).status_code == 200


def test_the_list_finds_an_asset_and_shows_where_it_is(open_page: OpenPage, heights: str, fields: str) -> None:
    page = open_page("/assets")
    page.get_by_label("Search assets").fill("TEST of heights")  # its title; its identifiers lack these words
    expect(page).to_have_url(re.compile("text=TEST"))
    rows = page.get_by_role("region", name="Assets").locator("tbody tr:not(.spacer)")
    expect(rows).to_have_count(1)
    expect(rows.first.locator("img.thumbnail")).to_have_js_property("complete", True)
    assert rows.first.locator("img.thumbnail").evaluate("image => image.naturalWidth") > 0
    expect(page.locator(".map canvas")).to_be_visible()
    assert serious(page) == []
    picture(page, "assets")
    page.get_by_label("Kind").select_option("vector")
    expect(page.get_by_text("No asset matches")).to_be_visible()
    page.get_by_role("button", name="Clear the filters").click()
    page.get_by_role("link", name="Test of fields v1").click()
    expect(page).to_have_url(re.compile(f"/assets/{fields}"))


def test_on_a_phone_nothing_is_cut_off(open_page: OpenPage, heights: str) -> None:
    for path in ("/assets", f"/assets/{heights}"):
        page = open_page(path, phone=True)
        expect(page.locator(".map canvas")).to_be_visible()
        assert page.evaluate("document.documentElement.scrollWidth") <= 375
        assert serious(page) == []
        picture(page, f"asset{'s' if path == '/assets' else ''}-phone")
