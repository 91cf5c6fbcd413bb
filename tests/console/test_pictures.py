"""The pictures of README and docs, with data that looks like some.

`CONSOLE_DOCUMENTS=yes script/test tests/console/test_pictures.py` writes them to `docs/pictures`.
"""

from __future__ import annotations

import io
import os
from pathlib import Path

import numpy as np
import pytest
import rasterio
from numpy.typing import NDArray
from PIL import Image
from playwright.sync_api import Page, expect
from rasterio.transform import from_bounds

from tests.acceptance.running import eventually
from tests.console.conftest import PICTURES, ROOT, OpenPage
from tests.console.platform import SharedPlatform
from tests.console.published import publish, write_fields
from tests.console.submissions import shapefile_without_crs

pytestmark = pytest.mark.slow

SOON = 60_000
FOLDER = ROOT / "docs/pictures" if os.environ.get("CONSOLE_DOCUMENTS") == "yes" else PICTURES
LARGEST = 60_000
"""Bytes of a picture, as tests/unit/test_docs.py demands."""
SIDE = 900
MANY = 200
"""Colours of a map with its data."""


def _octave(rng: np.random.Generator, cells: int) -> NDArray[np.float64]:
    """Noise of a size, smooth between the corners of its cells."""
    corners = rng.normal(size=(cells + 1, cells + 1))
    steps = np.linspace(0, cells, SIDE, endpoint=False)
    cell, share = steps.astype(int), steps % 1
    share = share * share * (3 - 2 * share)
    rows = corners[cell] * (1 - share)[:, None] + corners[cell + 1] * share[:, None]
    mixed: NDArray[np.float64] = rows[:, cell] * (1 - share) + rows[:, cell + 1] * share
    return mixed


def write_island(path: Path, seed: int, change: float = 0.0) -> Path:
    """An island in the sea. `change` moves its coast."""
    rng = np.random.default_rng(seed)
    land = sum((_octave(rng, 2**size) / 2**size for size in range(1, 8)), start=np.zeros((SIDE, SIDE)))
    steps = np.linspace(-1, 1, SIDE)
    land += 0.8 + change - 1.7 * np.hypot(*np.meshgrid(steps, steps)) ** 2
    heights = np.where(land > 0, land * 1400, -9999).astype("float32")
    transform = from_bounds(116.0, -9.0, 117.0, -8.0, SIDE, SIDE)
    profile = {"driver": "GTiff", "width": SIDE, "height": SIDE, "count": 1, "dtype": "float32", "nodata": -9999}
    with rasterio.open(path, "w", crs="EPSG:4326", transform=transform, **profile) as file:
        file.write(heights, 1)
    return path


@pytest.fixture(scope="module")
def island(platform: SharedPlatform, tmp_path_factory: pytest.TempPathFactory) -> str:
    """An asset whose second revision waits, beside others."""
    folder = tmp_path_factory.mktemp("pictures")
    asset = publish(platform, write_island(folder / "elevation.tif", 4), "raster", "2026", "Elevation of the island")
    with platform.client as client:
        body = {"asset_id": asset, "clearance_level": "public"}
        assert client.post("/api/platform/approve", json=body).status_code == 200
    publish(platform, write_fields(folder / "parcels.geojson", 14), "vector", "2026", "Parcels")
    publish(platform, write_island(folder / "elevation.tif", 4, 0.08), "raster", "2026", "Elevation of the island")
    return asset


def colours(page: Page) -> int:
    """How many colours the middle of the page has. A map without its data has few."""
    width, height = 600, 400
    clip = {"x": 350, "y": 180, "width": width, "height": height}
    shot = Image.open(io.BytesIO(page.screenshot(clip=clip))).convert("RGB")  # type: ignore[arg-type]
    return len(shot.getcolors(width * height) or ())


def keep(page: Page, name: str) -> None:
    """Write a picture for the docs, as small as it can be read."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    page.wait_for_timeout(1500)
    shot = Image.open(io.BytesIO(page.screenshot()))
    path = FOLDER / f"console-{name}.webp"
    for quality in (72, 60, 50, 40, 30):
        shot.convert("RGB").save(path, quality=quality, method=6)
        if path.stat().st_size < LARGEST:
            return
    raise AssertionError(f"{path.name} has {path.stat().st_size} bytes")


def test_review_and_asset(open_page: OpenPage, island: str) -> None:
    page = open_page(f"/review/{island}", "reviewer")
    expect(page.get_by_role("slider")).to_be_visible(timeout=SOON)
    eventually(lambda: colours(page) > MANY, "the tiles of the map")
    keep(page, "review")
    page = open_page(f"/assets/{island}?click=116.3,-8.45&tab=revisions", "operator")
    expect(page.get_by_role("region", name="At this place")).to_be_visible(timeout=SOON)
    eventually(lambda: colours(page) > MANY, "the tiles of the map")
    keep(page, "asset")


def test_submit(open_page: OpenPage, tmp_path: Path) -> None:
    page = open_page("/submit", "operator")
    page.set_input_files("input[type=file]", [str(shapefile_without_crs(tmp_path, "villages_2026.zip"))])
    expect(page.get_by_text("no_crs")).to_be_visible(timeout=SOON)
    page.keyboard.press("1")
    page.keyboard.type("EPSG:4326")
    page.keyboard.press("Enter")
    expect(page.get_by_text("chosen by you")).to_be_visible(timeout=SOON)
    expect(page.locator(".where canvas")).to_be_visible()
    page.get_by_label("dataset_id").fill("census")
    expect(page.get_by_text("are new: revision 1")).to_be_visible(timeout=SOON)
    page.get_by_label("Title").fill("Villages, 2026")
    page.get_by_label("When the data was taken").fill("2026-06-30")
    expect(page.get_by_text("Starts at once")).to_be_visible(timeout=SOON)
    keep(page, "submit")


def test_job_and_overview(open_page: OpenPage, platform: SharedPlatform, island: str) -> None:
    for workflow, count in (("hello_world", 5), ("fails", 2), ("divides", 1)):
        for _ in range(count):
            platform.run(workflow)
    order = {"workflow_id": "tiles", "input_params": {"tiles": 3000, "damaged": [7, 24, 310], "seconds": 0.02}}
    with platform.client as client:
        job = client.post("/api/v1/jobs", json=order).json()["job_id"]
        page = open_page(f"/jobs/{job}?node=tiles", "operator")
        expect(page.get_by_role("cell", name="unreadable").first).to_be_visible(timeout=SOON)
        keep(page, "job")
        page = open_page("/overview")
        expect(page.get_by_role("row").filter(has_text="divides")).to_be_visible(timeout=SOON)
        keep(page, "overview")
        client.post(f"/api/v1/jobs/{job}/cancel")
