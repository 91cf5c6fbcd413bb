"""Rasters through HTTP: their pixels are those of the source, their colours those of the house."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
import rasterio
from httpx import Response
from morecantile import Tile
from morecantile import tms as grids
from numpy.typing import NDArray
from rasterio.crs import CRS
from rasterio.enums import ColorInterp
from rasterio.io import MemoryFile
from rasterio.transform import from_bounds
from rasterio.vrt import WarpedVRT

from geomill.handlers.raster.create_mosaic import create_mosaic
from geomill.raster.facts import RasterType
from geomill.raster.rendering import RAMPS, class_color
from geomill.sdk import ObjectName, Storage, Zone
from geomill.sdk.testing import run_handler
from tests.integration.listener import CallRecorder
from tests.integration.raster import sources, steps
from tests.integration.serve.zone import House, id_of

pytestmark = [
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.filterwarnings("ignore::rasterio.errors.NotGeoreferencedWarning"),
]

WEB = grids.get("WebMercatorQuad")
MIDDLE = (15.05, 45.12)


def image(answer: Response) -> NDArray[Any]:
    assert answer.status_code == 200, answer.text
    with MemoryFile(answer.content) as memory, memory.open() as dataset:
        pixels: NDArray[Any] = dataset.read()
    return pixels


def tile_at(zoom: int) -> Tile:
    return WEB.tile(*MIDDLE, zoom)


def warped(path: str, tile: Tile, size: int = 256) -> NDArray[Any]:
    """Return the expected pixels of a tile, computed by GDAL without TiTiler."""
    bounds = WEB.xy_bounds(tile)
    options = {"crs": CRS.from_epsg(3857), "width": size, "height": size, "transform": from_bounds(*bounds, size, size)}
    with (
        rasterio.open(path) as dataset,
        WarpedVRT(dataset, resampling=rasterio.enums.Resampling.nearest, **options) as vrt,
    ):
        pixels: NDArray[Any] = vrt.read()
    return pixels


def put_raster(shelf: Storage, raster: sources.SyntheticRaster, prefix: str, **options: Any) -> dict[str, Any]:
    sources.put(shelf, raster)
    return steps.cog(shelf, prefix, **options)


@pytest.fixture(scope="module")
def heights(shelf: Storage) -> dict[str, Any]:
    data = sources.noise((1, 700, 900), "float32", 0, 1000)
    data[0, :200, :200] = -9999
    return put_raster(shelf, sources.SyntheticRaster(data, nodata=-9999), "dem", target_crs="EPSG:3857")


async def published(house: House, name: str, cog_output: dict[str, Any], kind: str, **columns: Any) -> str:
    outputs = {"raster_type": kind, "statistics": cog_output["statistics"], "bbox": [14.9, 45.0, 15.2, 45.2]}
    asset_id = await house.publish(name, blob_path=cog_output["blob_path"], outputs=outputs, **columns)
    return f"/raster/assets/{asset_id}"


def file_of(shelf: Storage, cog_output: dict[str, Any]) -> str:
    container, _, path = cog_output["blob_path"].partition("/")
    return shelf.gdal_path(ObjectName(Zone.SILVER, container, path))


@pytest.mark.parametrize("zoom", [11, 12, 13, 14])
async def test_values_of_a_tile_are_those_of_the_file(
    house: House, shelf: Storage, heights: dict[str, Any], zoom: int
) -> None:
    start = await published(house, f"values{zoom}", heights, "dem")
    tile = tile_at(zoom)
    pixels = image(await house.client.get(f"{start}/tiles/WebMercatorQuad/{zoom}/{tile.x}/{tile.y}.tif"))
    expected = warped(file_of(shelf, heights), tile)
    assert pixels.shape == (2, 256, 256)
    valid, expected_valid = pixels[1] > 0, expected[0] != -9999
    both = valid & expected_valid
    if zoom >= 13:
        assert np.array_equal(valid, expected_valid)
        assert np.mean(pixels[0][both] == expected[0][both]) > 0.999
    else:  # from overviews, whose pixels are larger
        assert np.mean(valid == expected_valid) > 0.99
        assert np.corrcoef(pixels[0][both], expected[0][both])[0, 1] > 0.9


async def test_heights_have_the_colours_of_the_house_and_nodata_is_transparent(
    house: House, heights: dict[str, Any]
) -> None:
    start = await published(house, "colours", heights, "dem")
    picture = image(await house.client.get(f"{start}/preview.png"))
    values = image(await house.client.get(f"{start}/preview.tif"))
    assert picture.shape[0] == 4
    assert np.array_equal(picture[3] > 0, values[1] > 0)
    assert 0 < np.mean(picture[3] == 0) < 0.2
    lowest, highest = values[0] < 60, values[0] > 940
    for where, color in ((lowest & (values[1] > 0), RAMPS[RasterType.DEM][0]), (highest, RAMPS[RasterType.DEM][-1])):
        assert np.abs(np.median(picture[:3, where], axis=1) - color).max() <= 3


async def test_what_the_caller_says_wins(house: House, heights: dict[str, Any]) -> None:
    start = await published(house, "wins", heights, "dem")
    house_colours, stretched, mapped, coded = [
        image(await house.client.get(f"{start}/preview.png", params={"max_size": 64, **options}))
        for options in ({}, {"rescale": "0,10000"}, {"colormap_name": "viridis"}, {"algorithm": "terrarium"})
    ]
    valid = house_colours[3] > 0
    assert np.abs(np.median(stretched[:3, valid], axis=1) - RAMPS[RasterType.DEM][0]).max() < 25
    assert not np.array_equal(mapped, house_colours)
    heights_again = (coded[0] * 256.0 + coded[1] + coded[2] / 256) - 32768
    assert 450 < heights_again[valid].mean() < 550


async def test_three_bands_are_a_picture_as_they_are(house: House, shelf: Storage) -> None:
    data = sources.noise((3, 300, 300))
    cog_output = put_raster(shelf, sources.SyntheticRaster(data), "rgb", target_crs="source")
    start = await published(house, "rgb", cog_output, "rgb")
    assert np.array_equal(image(await house.client.get(f"{start}/preview.png"))[:3], data)


async def test_many_bands_are_stretched_into_natural_colours(house: House, shelf: Storage) -> None:
    data = sources.noise((5, 200, 200), "uint16", 100, 9000)
    cog_output = put_raster(shelf, sources.SyntheticRaster(data), "many", target_crs="source")
    start = await published(house, "many", cog_output, "multispectral")
    picture = image(await house.client.get(f"{start}/preview.png"))
    for shown, band in zip(picture[:3], data[[2, 1, 0]], strict=True):
        low, high = np.percentile(band, (2, 98))
        expected = np.clip((band - low) / (high - low), 0, 1) * 255
        assert np.abs(shown - expected).mean() < 3
    fourth_band = image(await house.client.get(f"{start}/preview.tif", params={"bidx": 4}))
    assert np.array_equal(fourth_band[0], data[3])


async def test_classes_keep_their_palette_or_get_colours_of_their_own(house: House, shelf: Storage) -> None:
    data = (sources.noise((1, 200, 200)) // 60).astype("uint8")
    palette = {value: (value * 50, 10, 255 - value * 50, 255) for value in range(6)}
    colors = (ColorInterp.palette,)
    cog_output = put_raster(
        shelf, sources.SyntheticRaster(data, colormap=palette, colors=colors), "palette", target_crs="source"
    )
    start = await published(house, "palette", cog_output, "categorical")
    picture = image(await house.client.get(f"{start}/preview.png"))
    for value in np.unique(data):
        assert (palette[value][:3] == picture[:3, data[0] == value].T).all()

    cog_output = put_raster(shelf, sources.SyntheticRaster(data), "classes", target_crs="source")
    start = await published(house, "classes", cog_output, "categorical")
    picture = image(await house.client.get(f"{start}/preview.png"))
    for value in np.unique(data):
        assert (class_color(int(value)) == picture[:3, data[0] == value].T).all()


@pytest.fixture(scope="module")
def twice(shelf: Storage) -> tuple[dict[str, Any], dict[str, Any]]:
    """The same raster as one file and as a mosaic of many, some of which are empty."""
    data = sources.noise((2, 1500, 1700), "int16", 0, 5000)
    data[:, 400:1100, 300:1200] = -1
    sources.put(shelf, sources.SyntheticRaster(data, nodata=-1, names=("first", "second")))
    single = steps.cog(shelf, "twice-one", target_crs="EPSG:4326")
    validation, scheme = steps.tiling(shelf, "twice-many", 512, target_crs="EPSG:4326")
    results = []
    for batch in scheme["batches"]:
        from geomill.handlers.raster.process_tile_batch import process_tile_batch

        params = {"source": validation["source"], "plan": scheme["plan"], "tiles": batch, "blob_prefix": "twice-many"}
        results.append(steps.ok(run_handler(process_tile_batch, params, storage=shelf)))
    params = {"plan": scheme["plan"], "results": results, "name": "twice", "blob_prefix": "twice-many"}
    return single, steps.ok(run_handler(create_mosaic, params, storage=shelf))


async def test_a_mosaic_is_as_one_raster(house: House, twice: tuple[dict[str, Any], dict[str, Any]]) -> None:
    single = await published(house, "one", twice[0], "continuous")
    many = await published(house, "mosaic", twice[1], "continuous")
    for zoom in (10, 11, 12, 13, 14):
        tile = WEB.tile(15.08, 45.09, zoom)
        path = f"/tiles/WebMercatorQuad/{zoom}/{tile.x}/{tile.y}.tif?resampling=bilinear&reproject=bilinear"
        a, b = image(await house.client.get(single + path)), image(await house.client.get(many + path))
        assert np.mean((a[2] > 0) == (b[2] > 0)) > 0.995, zoom
        if zoom >= 13:
            assert np.abs(a.astype(int) - b).max() <= 1  # across the edges of its files, too
            assert np.mean(a == b) > 0.999
        else:  # from overviews, which small files do not have
            both = (a[2] > 0) & (b[2] > 0)
            assert np.corrcoef(a[0][both], b[0][both])[0, 1] > 0.9, zoom
    for path in ("/preview.tif?max_size=256", "/bbox/15.02,45.05,15.12,45.12.tif?max_size=300", "/point/15.03,45.13"):
        first, second = await house.client.get(single + path), await house.client.get(many + path)
        assert first.status_code == second.status_code == 200, second.text
        if "point" in path:
            assert first.json()["values"] == second.json()["values"]
        else:
            a, b = image(first), image(second)
            both = (a[-1] > 0) & (b[-1] > 0)
            assert np.mean((a[-1] > 0) == (b[-1] > 0)) > 0.99
            assert np.corrcoef(a[0][both], b[0][both])[0, 1] > 0.9
    described = (await house.client.get(f"{many}/info")).json()
    assert described["nodata_value"] == -1
    assert [name for _, name in described["band_descriptions"]] == ["first", "second"]
    tilejsons = [(await house.client.get(f"{start}/WebMercatorQuad/tilejson.json")).json() for start in (single, many)]
    assert tilejsons[0]["bounds"] == pytest.approx(tilejsons[1]["bounds"])
    assert [tilejsons[0][name] for name in ("minzoom", "maxzoom")] == [
        tilejsons[1][name] for name in ("minzoom", "maxzoom")
    ]


async def test_a_mosaic_opens_only_so_many_files(
    house: House, twice: tuple[dict[str, Any], dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("geomill.serve.raster.mosaics.MOST_TILES", 3)
    start = await published(house, "bounded", twice[1], "continuous")
    refused = await house.client.get(f"{start}/preview.png")
    assert (refused.status_code, refused.json()["code"]) == (422, "invalid_input")
    assert "files of the mosaic" in refused.json()["detail"]
    tile = WEB.tile(15.05, 45.12, 15)
    assert (await house.client.get(f"{start}/tiles/WebMercatorQuad/15/{tile.x}/{tile.y}.png")).status_code == 200


async def test_crops_values_and_statistics(house: House, heights: dict[str, Any], shelf: Storage) -> None:
    start = await published(house, "crops", heights, "dem")
    ring = [[15.03, 45.10], [15.09, 45.10], [15.09, 45.14], [15.03, 45.10]]
    feature = {"type": "Feature", "properties": {}, "geometry": {"type": "Polygon", "coordinates": [ring]}}
    crop = image(await house.client.post(f"{start}/feature.png?max_size=200", json=feature))
    assert max(crop.shape[1:]) == 200
    assert 0.3 < np.mean(crop[3] == 0) < 0.7  # half of the box is beyond the triangle
    measured = (await house.client.post(f"{start}/statistics", json=feature)).json()
    assert 300 < measured["properties"]["statistics"]["b1"]["mean"] < 700
    whole = (await house.client.get(f"{start}/statistics")).json()["b1"]
    assert whole["mean"] == pytest.approx(heights["statistics"][0]["mean"], rel=0.01)
    with rasterio.open(file_of(shelf, heights)) as dataset:
        from rasterio.warp import transform

        (x,), (y,) = transform("EPSG:4326", dataset.crs, [MIDDLE[0]], [MIDDLE[1]])
        expected = next(dataset.sample([(x, y)]))[0]
    assert (await house.client.get(f"{start}/point/{MIDDLE[0]},{MIDDLE[1]}")).json()["values"] == [expected]


async def test_what_is_outside_is_not_found(house: House, heights: dict[str, Any]) -> None:
    start = await published(house, "beyond", heights, "dem")
    for path in ("tiles/WebMercatorQuad/12/0/0", "point/100,10"):
        answer = await house.client.get(f"{start}/{path}")
        assert (answer.status_code, answer.json()["code"]) == (404, "outside")


@pytest.mark.parametrize(
    "path",
    [
        "preview.png?max_size=100000",
        "preview/9000x9000.png",
        "bbox/15.0,45.1,15.1,45.2/20000x10.png",
        "tiles/WebMercatorQuad/12/2219/1470?tilesize=60000",
        "tiles/WebMercatorQuad/12/2219/1470?buffer=5000",
        "preview.png?" + "&".join(["bidx=1"] * 40),
        "preview.png?expression=" + "b1;" * 40,
        "preview.png?expression=" + "b1%2B" * 400 + "b1",
        "statistics?histogram_bins=100000000",
    ],
)
async def test_a_request_cannot_ask_for_more_than_memory_has(house: House, heights: dict[str, Any], path: str) -> None:
    start = await published(house, f"limit-{id_of(path)[:8]}", heights, "dem")
    answer = await house.client.get(f"{start}/{path}")
    assert (answer.status_code, answer.json()["code"]) == (422, "invalid_input"), answer.text


async def test_a_part_without_a_size_is_bounded(house: House, heights: dict[str, Any]) -> None:
    start = await published(house, "sized", heights, "dem")
    assert max(image(await house.client.get(f"{start}/bbox/15.0,45.09,15.11,45.15.png")).shape[1:]) <= 1024


async def test_too_many_features_are_refused(house: House, heights: dict[str, Any]) -> None:
    start = await published(house, "features", heights, "dem")
    ring = [[15.03, 45.10], [15.031, 45.10], [15.031, 45.101], [15.03, 45.10]]
    feature = {"type": "Feature", "properties": {}, "geometry": {"type": "Polygon", "coordinates": [ring]}}
    answer = await house.client.post(
        f"{start}/statistics", json={"type": "FeatureCollection", "features": [feature] * 101}
    )
    assert (answer.status_code, answer.json()["code"]) == (422, "invalid_input")


async def test_who_has_it_already_is_told_so_without_a_look_at_pixels(
    house: House, shelf: Storage, heights: dict[str, Any]
) -> None:
    start = await published(house, "kept", heights, "dem", revision=3, served_revision=3)
    first = await house.client.get(f"{start}/preview.png?max_size=32")
    assert first.headers["cache-control"] == "public, max-age=60"
    again = {"If-None-Match": first.headers["etag"]}
    asset_id = start.rpartition("/")[2]
    await house.execute("UPDATE app.geospatial_assets SET blob_path = blob_path WHERE asset_id = %s", asset_id)
    second = await house.client.get(f"{start}/preview.png?max_size=32", headers=again)
    assert (second.status_code, second.content) == (304, b"")
    assert second.headers["etag"] == first.headers["etag"]
    other = await house.client.get(f"{start}/preview.png?max_size=33", headers=again)
    assert other.status_code == 200
    assert other.headers["etag"] != first.headers["etag"]


async def test_a_file_that_only_claims_to_be_a_raster_is_not_read(house: House, shelf: Storage) -> None:
    """Published as it came: a virtual format that would read another file."""
    vrt = '<VRTDataset rasterXSize="1" rasterYSize="1"><VRTRasterBand dataType="Byte" band="1"><SimpleSource>'
    vrt += "<SourceFilename>/etc/passwd</SourceFilename></SimpleSource></VRTRasterBand></VRTDataset>"
    await shelf.put_bytes(ObjectName(Zone.SILVER, "cogs", "claims/a.tif"), vrt.encode())
    asset_id = await house.publish("claims", blob_path="cogs/claims/a.tif")
    answer = await house.client.get(f"/raster/assets/{asset_id}/preview.png")
    assert (answer.status_code, answer.json()["code"]) == (409, "conflict")


async def test_a_raster_without_overviews_is_not_read_whole(house: House, shelf: Storage) -> None:
    with MemoryFile() as memory:
        profile = {"driver": "GTiff", "width": 5000, "height": 10, "count": 1, "dtype": "uint8", "crs": "EPSG:3857"}
        with memory.open(**profile, transform=from_bounds(0, 0, 5000, 10, 5000, 10)) as target:
            target.write(np.ones((1, 10, 5000), "uint8"))
        await shelf.put_bytes(ObjectName(Zone.SILVER, "cogs", "flat/a.tif"), bytes(memory.read()))
    asset_id = await house.publish("flat", blob_path="cogs/flat/a.tif")
    answer = await house.client.get(f"/raster/assets/{asset_id}/preview.png")
    assert (answer.status_code, answer.json()["code"]) == (409, "conflict")


async def test_an_arbitrary_url_leads_nowhere(house: House, heights: dict[str, Any]) -> None:
    start = await published(house, "nowhere", heights, "dem")
    with_url = await house.client.get(f"{start}/info", params={"url": "/etc/passwd"})
    assert with_url.json()["driver"] == "GTiff"
    for path in (
        "/raster/info?url=/etc/passwd",
        "/raster/assets/../../etc/info",
        "/raster/assets/%2Fetc%2Fpasswd/info",
    ):
        assert (await house.client.get(path)).status_code == 404


async def test_documents_for_people_load_nothing_from_elsewhere(house: House, heights: dict[str, Any]) -> None:
    start = await published(house, "<b>people", heights, "dem")
    page = await house.client.get(f"{start}/tiles", headers={"Accept": "text/html"})
    assert page.headers["content-type"].startswith("text/html")
    assert "default-src 'none'" in page.headers["content-security-policy"]
    assert "cdn" not in page.text
    assert json.loads((await house.client.get(f"{start}/tiles?f=json")).text)["tilesets"]


@pytest.mark.parametrize("name", ["coord_crs", "coord-crs", "dst_crs", "dst-crs", "crs"])
@pytest.mark.parametrize(
    "path", ["bbox/14.9,45,15.2,45.2.png", "point/15.05,45.12", "statistics", "preview.png", "info"]
)
async def test_a_system_that_is_an_address_calls_nobody(
    house: House, heights: dict[str, Any], path: str, name: str
) -> None:
    """TiTiler gives these names to GDAL, which fetches what looks like an address."""
    base = await published(house, f"systems-{path[:4]}-{name}", heights, "dem", clearance_state="public")
    with CallRecorder() as listener:
        answer = await house.client.get(f"{base}/{path}", params={name: listener.url})
        assert listener.calls == []
    assert answer.status_code == 422, answer.text
    assert name in answer.text
