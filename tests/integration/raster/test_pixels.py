"""The mosaic of tiles against one warp of the whole raster by GDAL, on the same grid: pixel by pixel."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import rasterio
from affine import Affine
from numpy.typing import NDArray
from rasterio.crs import CRS
from rasterio.enums import ColorInterp, MaskFlags, Resampling
from rasterio.vrt import WarpedVRT

from geomill.sdk import ObjectName, Storage
from tests.integration.raster import sources
from tests.integration.raster.checks import check_cog
from tests.integration.raster.sources import SyntheticRaster
from tests.integration.raster.steps import cog, tiles, validated

BIG = 700
"""Enough for several tiles of 512."""

KINDS: dict[str, Any] = {
    "rgb": lambda: sources.rgb(BIG),
    "rgba": lambda: sources.rgba(BIG),
    "masked": lambda: sources.masked(BIG),
    "eight bands": lambda: sources.eight_bands(BIG),
    "dem": lambda: sources.dem(BIG),
    "int16": lambda: sources.int16(BIG),
    "categorical": lambda: sources.categorical(704),
    "bits": lambda: sources.bits(704),
}
LAYOUTS = {
    "striped": {},
    "compressed": {"tiled": True, "blockxsize": 256, "blockysize": 256, "compress": "deflate"},
    "planar": {"interleave": "band", "compress": "lzw"},
}
PLACES: dict[str, tuple[Any, Affine, str]] = {
    "degrees": ("EPSG:4326", sources.DEGREES, "EPSG:3857"),
    "polar": ("EPSG:3413", sources.POLAR, "EPSG:4326"),
    "custom": (sources.LAEA, Affine(100, 0, 5_000, 0, -100, 9_000), "EPSG:4326"),
    "antimeridian": ("EPSG:32660", sources.ANTIMERIDIAN, "EPSG:4326"),
    "south-up": (sources.UTM, Affine(10, 0, 500_000, 0, 10, 5_000_000), "EPSG:4326"),
    "rotated": (sources.UTM, sources.UTM_PLACE @ Affine.rotation(30), "EPSG:4326"),
}


def whole(storage: Storage, plan: dict[str, Any], name: ObjectName) -> tuple[NDArray[Any], NDArray[np.uint8]]:
    """By GDAL, at once, as exactly as it can: data and mask."""
    grid = plan["grid"]
    with rasterio.open(storage.gdal_path(name)) as source:
        floats = source.dtypes[0].startswith("float")
        masked = source.nodata is None and ColorInterp.alpha not in source.colorinterp
        with WarpedVRT(
            source,
            crs=CRS.from_user_input(grid["crs"]),
            transform=Affine(*grid["transform"]),
            width=grid["width"],
            height=grid["height"],
            resampling=Resampling[plan["resampling"]],
            tolerance=1e-9,  # 0 would be none, which rasterio cannot pass on
            warp_mem_limit=1024,
            add_alpha=masked and not floats,
        ) as warped:
            data = warped.read()
            return (data[:-1], data[-1]) if masked and not floats else (data, warped.dataset_mask())


def pasted(storage: Storage, plan: dict[str, Any], names: list[ObjectName]) -> tuple[NDArray[Any], NDArray[np.uint8]]:
    """The tiles in their places, which are exact."""
    grid = plan["grid"]
    affine = Affine(*grid["transform"])
    data: NDArray[Any] | None = None
    mask = np.zeros((grid["height"], grid["width"]), np.uint8)
    for name in names:
        with rasterio.open(storage.gdal_path(name)) as tile:
            column, row = ~affine @ (tile.transform.c, tile.transform.f)
            assert abs(column - round(column)) < 1e-6
            assert abs(row - round(row)) < 1e-6
            assert (tile.transform.a, tile.transform.e) == (affine.a, affine.e)
            if data is None:
                data = np.full((tile.count, *mask.shape), 0 if tile.nodata is None else tile.nodata, tile.dtypes[0])
            place = slice(round(row), round(row) + tile.height), slice(round(column), round(column) + tile.width)
            data[:, *place] = tile.read()
            mask[place] = tile.dataset_mask()
    assert data is not None
    return data, mask


def compare(storage: Storage, name: ObjectName, **options: Any) -> None:
    plan, names = tiles(storage, **options)
    expected, expected_mask = whole(storage, plan, name)
    pixels, pixel_mask = pasted(storage, plan, names)
    assert ((expected_mask > 0) != (pixel_mask > 0)).mean() < 2e-4
    both = (expected_mask > 0) & (pixel_mask > 0)
    assert both.mean() > 0.2
    difference = np.abs(expected.astype(float) - pixels)[:, both]
    if plan["resampling"] == "nearest":
        assert difference.max() == 0
    elif pixels.dtype.kind == "f":
        spread = float(np.ptp(pixels[:, both]))
        assert difference.max() < 0.01 * spread
    else:
        steep = 1 if pixels.dtype == np.uint8 else 0.002 * np.iinfo(pixels.dtype).max
        assert difference.max() <= max(1, steep)
        assert (difference > 1).mean() < 2e-4 or pixels.dtype != np.uint8


@pytest.mark.parametrize("resampling", ["nearest", "bilinear", "cubic"])
@pytest.mark.parametrize("kind", KINDS)
def test_tiles_equal_the_whole(storage: Storage, kind: str, resampling: str) -> None:
    if kind in ("categorical", "bits") and resampling != "nearest":
        pytest.skip("classes are always nearest")
    compare(storage, sources.put(storage, KINDS[kind]()), resampling=resampling)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_in_every_layout(storage: Storage, layout: str) -> None:
    compare(storage, sources.put(storage, sources.rgb(BIG, options=LAYOUTS[layout])))


def test_overviews_of_the_source_are_not_taken_for_its_pixels(storage: Storage) -> None:
    compare(storage, sources.put(storage, sources.rgb(BIG, overviews=(2, 4))))


@pytest.mark.parametrize("place", PLACES)
def test_everywhere(storage: Storage, place: str) -> None:
    crs, transform, target = PLACES[place]
    raster = SyntheticRaster(sources.noise((1, BIG, BIG), "int16", 10, 3_000), crs=crs, transform=transform, nodata=-1)
    name = sources.put(storage, raster)
    compare(storage, name, target_crs=target, resampling="nearest")


def test_two_ways_of_cutting_give_the_same_pixels(storage: Storage) -> None:
    sources.put(storage, SyntheticRaster(sources.noise((3, 1100, 1100), rough=0.04)))
    plan, small = tiles(storage, "small", 512)
    _, large = tiles(storage, "large", 2048)
    first, _ = pasted(storage, plan, small)
    second, _ = pasted(storage, plan, large)
    assert (first == second).all()


def test_nodata_does_not_bleed(storage: Storage) -> None:
    sources.put(storage, sources.dem(BIG))
    plan, names = tiles(storage, resampling="cubic")
    pixels, mask = pasted(storage, plan, names)
    assert pixels[0][mask > 0].min() > -300  # cubic may overshoot a little; -9999 in the mix would be far below


def test_classes_are_not_mixed_at_any_scale(storage: Storage) -> None:
    sources.put(storage, sources.categorical(704))
    _, names = tiles(storage, resampling="bilinear")
    for name in names:
        with rasterio.open(storage.gdal_path(name)) as tile:
            for factor in (1, 2, 4):
                shape = max(1, tile.height // factor), max(1, tile.width // factor)
                assert set(np.unique(tile.read(1, out_shape=shape))) <= {0, 1, 5, 9}
            assert tile.colormap(1)[5] == (0, 200, 0, 255)


def test_the_same_crs_keeps_every_pixel(storage: Storage) -> None:
    raster = sources.eight_bands(600)
    sources.put(storage, raster)
    plan, names = tiles(storage, target_crs="source")
    pixels, _ = pasted(storage, plan, names)
    assert tuple(plan["grid"]["transform"]) == tuple(raster.transform)[:6]
    np.testing.assert_array_equal(pixels, raster.data)


def test_what_a_source_has_its_cog_has(storage: Storage) -> None:
    raster = sources.eight_bands()
    raster.tags = {"TIFFTAG_IMAGEDESCRIPTION": "from the air", "mine": "1"}
    sources.put(storage, raster)
    output = cog(storage, target_crs="source")
    with rasterio.open(storage.gdal_path(_name(output))) as dataset:
        assert dataset.descriptions == tuple("abcdefgh")
        assert dataset.tags()["mine"] == "1"
        assert dataset.nodata == 0
        assert dataset.block_shapes[0] == (512, 512)
        assert float(dataset.tags(1)["STATISTICS_MAXIMUM"]) == dataset.read(1).max()


def _name(output: dict[str, Any]) -> ObjectName:
    return ObjectName.parse("silver/" + output["blob_path"])


@pytest.mark.parametrize(
    ("kind", "tier", "codec"),
    [
        ("rgb", "visualization", "jpeg"),
        ("rgba", "visualization", "jpeg"),
        ("rgb", "archive", "zstd"),
        ("dem", "archive", "lerc_zstd"),
        ("dem", "analysis", "deflate"),
        ("bits", "analysis", "deflate"),
        ("masked", "visualization", "jpeg"),
        ("categorical", "archive", "zstd"),
        ("eight bands", "analysis", "deflate"),
    ],
)
def test_each_tier_is_a_valid_cog(storage: Storage, kind: str, tier: str, codec: str) -> None:
    sources.put(storage, KINDS[kind]())
    output = cog(storage, output_tier=tier)
    check_cog(storage, _name(output))
    with rasterio.open(storage.gdal_path(_name(output))) as dataset:
        assert dataset.tags(ns="IMAGE_STRUCTURE")["COMPRESSION"].lower().replace("ycbcr ", "") == codec
        assert dataset.overviews(1)
        if tier == "visualization":
            assert dataset.count == 3
            assert MaskFlags.per_dataset in dataset.mask_flag_enums[0]


def test_archive_loses_nothing(storage: Storage) -> None:
    raster = sources.dem()
    sources.put(storage, raster)
    with rasterio.open(storage.gdal_path(_name(cog(storage, output_tier="archive", target_crs="source")))) as dataset:
        np.testing.assert_array_equal(dataset.read(), raster.data)


def test_a_raster_too_large_for_memory_gives_the_same_file(storage: Storage, monkeypatch: pytest.MonkeyPatch) -> None:
    from geomill.raster import cog as module

    sources.put(storage, sources.masked(BIG))
    in_memory = cog(storage, "one")
    monkeypatch.setattr(module, "LARGEST_IN_MEMORY", 1000)
    monkeypatch.setattr(module, "PIECE", 512)
    by_pieces = cog(storage, "two")
    check_cog(storage, _name(by_pieces))
    with (
        rasterio.open(storage.gdal_path(_name(in_memory))) as memory_cog,
        rasterio.open(storage.gdal_path(_name(by_pieces))) as pieces_cog,
    ):
        assert (memory_cog.dataset_mask() == pieces_cog.dataset_mask()).all()
        assert (memory_cog.read() == pieces_cog.read()).all()
        assert memory_cog.profile == pieces_cog.profile


def test_empty_tiles_are_not_written(storage: Storage) -> None:
    raster = sources.dem(1200)
    raster.data[:, :, 500:] = -9999
    sources.put(storage, raster)
    _, names = tiles(storage, target_crs="source")
    assert {name.name for name in names} == {f"tile_x0_y{y}.tif" for y in range(3)}


def test_nan_is_nothing(storage: Storage) -> None:
    raster = sources.dem(400)
    raster.nodata = None
    raster.data[raster.data == -9999] = math.nan
    sources.put(storage, raster)
    assert validated(storage)["facts"]["nodata"] == "nan"
    with rasterio.open(storage.gdal_path(_name(cog(storage)))) as dataset:
        assert math.isnan(dataset.nodata)
        assert np.isfinite(dataset.read(1)[dataset.dataset_mask() > 0]).all()
