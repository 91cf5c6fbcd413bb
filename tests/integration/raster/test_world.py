"""Rasters of the whole world, of the poles and over the antimeridian. Values are computed by NumPy from the place of
each pixel, independently of the code under test."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import rasterio
from affine import Affine
from numpy.typing import NDArray
from shapely.geometry import shape

from geomill.handlers.raster.create_preview import create_preview
from geomill.sdk import ObjectName, Storage
from geomill.sdk.testing import run_handler
from tests.corpus.rasters import FIJI, LINES, PLACES, WORLD, degrees, globe, value_at
from tests.integration.raster import sources, steps
from tests.integration.raster.checks import check_cog
from tests.integration.raster.sources import SyntheticRaster


def published(storage: Storage, raster: SyntheticRaster, **options: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """The outputs of the COG and of its preview."""
    sources.put(storage, raster)
    cog = steps.cog(storage, **{"target_crs": "auto", **options})
    params = {"plan": cog["plan"], "parts": cog["parts"], "blob_prefix": "one"}
    preview = steps.ok(run_handler(create_preview, params, storage=storage))
    footprint = shape(preview["geometry"])
    assert footprint.is_valid
    assert footprint.bounds[0] >= -180
    assert footprint.bounds[2] <= 180
    assert len(preview["files"]) == 2
    return cog, preview


def check_values(storage: Storage, cog: dict[str, Any], tolerance: float) -> NDArray[np.bool_]:
    """Compare each valid pixel with the value of its place. Returns where pixels are valid."""
    name = ObjectName.parse("silver/" + cog["blob_path"])
    check_cog(storage, name)
    with rasterio.open(storage.gdal_path(name)) as dataset:
        data = dataset.read(1)
        valid = dataset.dataset_mask() > 0
        expected = value_at(*degrees(dataset.crs, dataset.transform, dataset.height, dataset.width))
    difference = np.abs(data - expected)[valid & np.isfinite(expected)]
    assert difference.max() < tolerance, difference.max()
    assert np.percentile(difference, 95) < tolerance / 8
    return valid


@pytest.mark.parametrize("place", PLACES)
def test_analysis_keeps_system_grid_and_every_value(storage: Storage, place: str) -> None:
    raster = globe(*PLACES[place])
    cog, preview = published(storage, raster)
    assert cog["warnings"] == []
    assert tuple(cog["plan"]["grid"]["transform"]) == tuple(raster.transform)[:6]
    with rasterio.open(storage.gdal_path(ObjectName.parse("silver/" + cog["blob_path"]))) as dataset:
        np.testing.assert_array_equal(dataset.read(), raster.data)
    assert preview["bbox"][0] <= 180


@pytest.mark.parametrize(
    ("place", "target", "least"),
    [
        ("world", "EPSG:3857", 180 * 180),
        ("world from 0 to 360", "EPSG:3857", 180 * 180),
        ("world at the centres of pixels", "EPSG:3857", 179 * 179),
        ("world", "ESRI:54009", 150 * 75),
        ("world from 0 to 360", "EPSG:8857", 150 * 75),
        ("beyond 180 east", "EPSG:32701", 50 * 50),
        ("beyond 180 west", "EPSG:4269", 100 * 100),
        ("Alaska", "EPSG:4326", 93 * 50),
        ("Arctic", "EPSG:3995", 100 * 100),
        ("Arctic", "EPSG:3857", 80 * 80),
        ("Antarctica", "EPSG:3857", 80 * 80),
        ("Equal Earth", "EPSG:4326", 230 * 112),
        ("Equal Earth", "EPSG:3857", 230 * 230),
        ("Mollweide", "EPSG:4326", 230 * 112),
    ],
)
def test_a_warp_keeps_the_pixels_and_their_values(storage: Storage, place: str, target: str, least: int) -> None:
    cog, _ = published(storage, globe(*PLACES[place]), target_crs=target)
    grid = cog["plan"]["grid"]
    assert grid["width"] * grid["height"] >= least
    assert "was resampled from" in " ".join(cog["warnings"])
    valid = check_values(storage, cog, 70)  # pixels are large, most of all at the poles of Equal Earth
    assert valid.mean() > 0.45


def test_the_world_is_whole_on_both_sides_of_greenwich(storage: Storage) -> None:
    """Columns of a raster from 0 to 360 arrive at their longitudes, each once."""
    columns = np.tile(np.arange(360, dtype="float32"), (180, 1))
    raster = SyntheticRaster(columns[None], crs="EPSG:4326", transform=Affine(1, 0, 0, 0, -1, 90))
    cog, _ = published(storage, raster, target_crs="EPSG:3857", resampling="nearest")
    with rasterio.open(storage.gdal_path(ObjectName.parse("silver/" + cog["blob_path"]))) as dataset:
        assert (dataset.width, dataset.height) == (360, 360)
        np.testing.assert_array_equal(dataset.read(1)[180], np.roll(np.arange(360), 180))
    assert cog["warnings"][0] == "data beyond 85.05° of latitude was cut off"


@pytest.mark.parametrize("place", ["beyond 180 east", "Alaska", "Antarctica"])
def test_a_picture_that_web_mercator_cannot_hold_is_published_in_its_own_system(storage: Storage, place: str) -> None:
    crs, box, pixel = PLACES[place]
    raster = globe(crs, box, pixel)
    raster.data, raster.nodata = np.repeat(raster.data / 8, 3, axis=0).clip(1, 255).astype("uint8"), None
    cog, _ = published(storage, raster, output_tier="visualization")
    assert cog["plan"]["grid"]["crs"] == crs


def test_a_picture_that_web_mercator_holds_is_warped_to_it_and_that_is_told(storage: Storage) -> None:
    cog, _ = published(storage, sources.rgb(100), output_tier="visualization")
    assert cog["plan"]["grid"]["crs"] == "EPSG:3857"
    assert "from 140 by 100 pixels in EPSG:32633" in cog["warnings"][0]


def test_a_target_that_tears_the_raster_apart_is_refused(storage: Storage) -> None:
    """Mollweide has the two sides of Fiji at its two ends."""
    sources.put(storage, globe("EPSG:4326", FIJI, 0.01))
    validation = steps.validated(storage)
    params = {"source": validation["source"], "facts": validation["facts"], "blob_prefix": "x"}
    run = run_handler(steps.create_cog, {**params, "target_crs": "ESRI:54009"}, storage=storage)
    assert run.ended.error_code == "target_unfit", run.error
    assert "500 by 500 pixels would become" in run.error


def test_rows_from_south_to_north_are_copied_in_reverse(storage: Storage) -> None:
    raster = globe(*PLACES["world"])
    raster.data, raster.transform = raster.data[:, ::-1], Affine(2, 0, -180, 0, 2, -90)
    cog, _ = published(storage, raster)
    assert cog["plan"]["grid"]["transform"] == [2, 0, -180, 0, -2, 90]
    check_values(storage, cog, 1e-3)


@pytest.mark.parametrize("target", ["auto", "EPSG:3857"])
@pytest.mark.parametrize("line", ["column", "row", "pixel", pytest.param("70,000 by 3", marks=pytest.mark.slow)])
def test_a_line_of_pixels_is_a_raster(storage: Storage, line: str, target: str) -> None:
    cog, preview = published(storage, LINES[line](), target_crs=target, resampling="nearest")
    check_values(storage, cog, 20)
    assert preview["bbox"][0] == pytest.approx(15, abs=0.3)


def test_a_large_raster_from_0_to_360_loses_no_tile(storage: Storage) -> None:
    sources.put(storage, globe("EPSG:4326", (0, -90, 360, 90), 0.5))
    plan, names = steps.tiles(storage, size=512, target_crs="EPSG:3857")
    assert (plan["grid"]["width"], plan["grid"]["height"]) == (720, 720)
    assert len(names) == 4
    for name in names:
        check_values(storage, {"blob_path": f"{name.container}/{name.path}"}, 10)


def test_an_image_that_cannot_be_drawn_does_not_fail_the_data(
    storage: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    from geomill.raster import preview as module

    def fail(*_arguments: Any) -> bytes:
        raise rasterio.errors.RasterioIOError("WebP refuses it")

    sources.put(storage, sources.rgb(64))
    cog = steps.cog(storage)
    monkeypatch.setattr(module, "encoded", fail)
    params = {"plan": cog["plan"], "parts": cog["parts"], "blob_prefix": "one"}
    output = steps.ok(run_handler(create_preview, params, storage=storage))
    assert output["files"] == []
    assert output["warnings"] == ["no preview could be drawn; the data is complete"]
    assert shape(output["geometry"]).is_valid


@pytest.mark.slow
def test_the_world_at_a_tenth_of_a_degree(storage: Storage) -> None:
    cog, preview = published(storage, globe("EPSG:4326", WORLD, 0.1), target_crs="EPSG:3857")
    assert cog["plan"]["grid"]["width"] >= 3590
    check_values(storage, cog, 2)
    assert preview["bbox"] == pytest.approx([-180, -85.05, 180, 85.05], abs=0.1)
