"""Tiles and points of rasters that reach beyond 180°, of the poles and of the whole world. Values are those that NumPy
computes for the place of each pixel."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import rasterio
from affine import Affine
from morecantile import Tile
from morecantile import tms as grids
from numpy.typing import NDArray
from rasterio.io import MemoryFile

from geomill.handlers.raster.create_mosaic import create_mosaic
from geomill.sdk import Storage
from geomill.sdk.testing import run_handler
from tests.integration.raster import sources, steps
from tests.integration.raster.test_world import PLACES, degrees, globe, value_at
from tests.integration.serve.zone import House

pytestmark = [
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.filterwarnings("ignore::rasterio.errors.NotGeoreferencedWarning"),
    pytest.mark.filterwarnings("ignore:Adjusting dataset latitudes"),  # as the application does
]
MERCATOR, PLATE = "WebMercatorQuad", "WorldCRS84Quad"
SPOTS: dict[str, tuple[float, float]] = {
    "world": (-100.0, 40.0),
    "world from 0 to 360": (-100.0, 40.0),
    "beyond 180 east": (-178.0, -17.0),
    "beyond 180 west": (177.0, -15.0),
    "Alaska": (-178.0, 52.0),
    "Antarctica": (100.0, -80.0),
    "Arctic": (-170.0, 84.0),
    "Equal Earth": (150.0, -30.0),
    "Mollweide": (-150.0, 60.0),
}


async def published(house: House, shelf: Storage, place: str) -> str:
    sources.put(shelf, globe(*PLACES[place]))
    name = place.replace(" ", "-").lower()
    output = steps.cog(shelf, name, target_crs="auto")
    outputs = {"raster_type": "continuous", "statistics": output["statistics"]}
    asset_id = await house.publish(f"world-{name}", blob_path=output["blob_path"], outputs=outputs)
    return f"/raster/assets/{asset_id}"


async def values(house: House, url: str) -> tuple[NDArray[Any], NDArray[np.bool_], Affine]:
    answer = await house.client.get(url)
    assert answer.status_code == 200, answer.text
    with MemoryFile(answer.content) as memory, memory.open() as dataset:
        data = dataset.read()
        return data[0], data[-1] > 0, dataset.transform


async def check_tile(house: House, start: str, grid: str, spot: tuple[float, float], zoom: int) -> None:
    tms = grids.get(grid)
    tile = tms.tile(*spot, zoom)
    data, valid, _ = await values(house, f"{start}/tiles/{grid}/{zoom}/{tile.x}/{tile.y}.tif")
    box = tms.xy_bounds(tile)
    affine = rasterio.transform.from_bounds(*box, data.shape[1], data.shape[0])
    longitudes, latitudes = degrees(tms.crs.to_wkt(), affine, *data.shape)
    assert valid.any()
    difference = np.abs(data - value_at(longitudes, latitudes))[valid]
    assert np.percentile(difference, 90) < 25, difference.max()
    column, row = ~affine @ tms.xy(*spot)
    assert valid[int(row), int(column)]


@pytest.mark.parametrize("place", SPOTS)
async def test_tiles_and_points_have_the_values_of_their_place(house: House, shelf: Storage, place: str) -> None:
    start, (longitude, latitude) = await published(house, shelf, place), SPOTS[place]
    await check_tile(house, start, PLATE, (longitude, latitude), 3)
    if abs(latitude) < 85:
        await check_tile(house, start, MERCATOR, (longitude, latitude), 3)
        await check_tile(house, start, MERCATOR, (longitude, latitude), 0)
    expected = value_at(np.array(longitude), np.array(latitude))
    for turn in (0, -360 if longitude > 0 else 360):
        answer = await house.client.get(f"{start}/point/{longitude + turn},{latitude}")
        assert answer.status_code == 200, answer.text
        assert answer.json()["values"][0] == pytest.approx(float(expected), abs=25)


@pytest.mark.parametrize(
    ("place", "least", "most"),
    [("world", 0, 0), ("world from 0 to 360", 0, 0), ("beyond 180 east", 4, 4), ("Antarctica", 1, 1), ("Arctic", 1, 1)],
)
async def test_zooms_follow_from_the_size_of_pixels(
    house: House, shelf: Storage, place: str, least: int, most: int
) -> None:
    start = await published(house, shelf, place) if place not in SPOTS else f"/raster/assets/{_id(place)}"
    document = (await house.client.get(f"{start}/{MERCATOR}/tilejson.json")).json()
    assert (document["minzoom"], document["maxzoom"]) == (least, most)
    assert document["bounds"][0] == -180
    assert document["bounds"][2] == 180


def _id(place: str) -> str:
    from tests.integration.serve.zone import id_of

    return id_of(f"world-{place.replace(' ', '-').lower()}")


async def test_an_image_over_the_antimeridian(house: House) -> None:
    start = f"/raster/assets/{_id('beyond 180 east')}"
    data, valid, affine = await values(house, f"{start}/bbox/179,-18,182,-16/30x20.tif")
    longitudes, latitudes = degrees("EPSG:4326", affine, *data.shape)
    assert (affine.c, valid.all()) == (179, True)
    assert np.abs(data - value_at(longitudes, latitudes)).max() < 3
    turned, valid, _ = await values(house, f"{start}/bbox/-181,-18,-178,-16/30x20.tif")
    np.testing.assert_array_equal(turned, data)


async def test_a_mosaic_beyond_180(house: House, shelf: Storage) -> None:
    sources.put(shelf, globe("EPSG:4326", (170, -20, 190, -10), 0.02))
    validation, scheme = steps.tiling(shelf, "world-mosaic", 512, target_crs="auto")
    results = []
    for batch in scheme["batches"]:
        params = {"source": validation["source"], "plan": scheme["plan"], "tiles": batch, "blob_prefix": "world-mosaic"}
        results.append(steps.ok(run_handler(steps.process_tile_batch, params, storage=shelf)))
    params = {"plan": scheme["plan"], "results": results, "name": "m", "blob_prefix": "world-mosaic"}
    mosaic = steps.ok(run_handler(create_mosaic, params, storage=shelf))
    outputs = {"raster_type": "continuous", "statistics": mosaic["statistics"]}
    asset_id = await house.publish("world-mosaic", blob_path=mosaic["blob_path"], outputs=outputs)
    start = f"/raster/assets/{asset_id}"
    for spot in ((-175.0, -15.0), (175.0, -15.0)):
        await check_tile(house, start, MERCATOR, spot, 6)
        await check_tile(house, start, PLATE, spot, 6)
        answer = await house.client.get(f"{start}/point/{spot[0]},{spot[1]}")
        assert answer.json()["values"][0] == pytest.approx(float(value_at(*map(np.array, spot))), abs=3)


async def test_a_tile_where_nothing_lies_is_not_found(house: House) -> None:
    tile: Tile = grids.get(MERCATOR).tile(0, 0, 4)
    start = f"/raster/assets/{_id('beyond 180 east')}"
    assert (await house.client.get(f"{start}/tiles/{MERCATOR}/4/{tile.x}/{tile.y}.png")).status_code == 404
    assert (await house.client.get(f"{start}/point/0,0")).status_code == 404
    assert (await house.client.get(f"{start}/point/400,0")).status_code == 422
