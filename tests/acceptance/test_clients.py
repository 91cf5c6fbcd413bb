"""The programs that people have, against a real server: GDAL's drivers, OWSLib, cogeo-mosaic, and a browser."""

from __future__ import annotations

import asyncio
import json
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pyproj
import pytest
import rasterio
import uvicorn
from cogeo_mosaic.backends import MosaicBackend
from owslib.ogcapi.features import Features
from owslib.util import ServiceException
from owslib.wms import WebMapService
from owslib.wmts import WebMapTileService
from rasterio.io import MemoryFile
from rasterio.transform import from_origin

from geomill.catalogue.following import follow_decision
from geomill.cli.gateway import listen
from geomill.domain.access.principal import Role
from geomill.domain.access.signed_link import PARAMETER
from geomill.domain.objectname import ObjectName, Zone
from geomill.handlers.raster.stac_build_item import stac_build_item
from geomill.sdk.testing import folder_storage, run_handler
from geomill.serve.app import create_serving_app
from geomill.serve.services import Services
from geomill.settings import AccessSettings
from geomill.storage import Storage
from geomill.store.pool import open_pool
from tests.integration.api.conftest import make_key
from tests.integration.raster import sources, steps
from tests.integration.serve.test_vectors import make_table
from tests.integration.serve.zone import KEY, House

pytestmark = pytest.mark.filterwarnings(
    "ignore::rasterio.errors.NotGeoreferencedWarning", "ignore::ResourceWarning", "ignore::DeprecationWarning"
)
CHROMIUM = shutil.which("chromium")
GREEN, BLUE = (34, 139, 34), (30, 60, 200)
COMPLETE = "UPDATE app.geospatial_assets SET revision = 2, served_revision = 2, outputs = %s WHERE asset_id = %s"
"""Completes the second revision. The catalogue follows."""


@dataclass
class FilledServer:
    url: str
    storage: Storage
    reader: str
    """The key of a reader."""
    raster: str
    hidden: str
    mosaic: str
    vector: str
    secret_vector: str
    laea_vector: str
    series: str


@pytest.fixture(scope="module")
def served(module_database: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[FilledServer]:
    """A server on a port, in a thread, with a raster, a mosaic and a vector layer."""
    storage = folder_storage(tmp_path_factory.mktemp("zones"))
    url = module_database
    asset_ids = asyncio.run(_fill(url, storage))
    with listen("127.0.0.1", 0) as listener:
        port = listener.getsockname()[1]
        app = create_serving_app(Services(Zone.SILVER, url, storage, KEY), url, AccessSettings(), hosts=("127.0.0.1",))
        running = uvicorn.Server(uvicorn.Config(app, log_config=None, lifespan="on"))
        thread = threading.Thread(target=lambda: asyncio.run(running.serve([listener])))
        thread.start()
        while not running.started:
            time.sleep(0.02)
        yield FilledServer(f"http://127.0.0.1:{port}", storage, **asset_ids)
        running.should_exit = True
        thread.join()


async def _fill(url: str, storage: Storage) -> dict[str, str]:
    green = np.empty((3, 600, 600), "uint8")
    green[:] = np.array(GREEN, "uint8")[:, None, None]
    async with open_pool(url, size=2) as pool:
        house = House(url, storage, pool, None, None)  # type: ignore[arg-type]
        await House.prepare(pool)
        sources.put(storage, sources.SyntheticRaster(green))
        cog_output = steps.cog(storage, "green", target_crs="EPSG:3857")
        outputs = {"raster_type": "rgb", "statistics": cog_output["statistics"], "bbox": [15.0, 45.1, 15.076, 45.154]}
        raster = await house.publish("green", blob_path=cog_output["blob_path"], outputs=outputs)
        hidden = await house.publish(
            "hidden", blob_path=cog_output["blob_path"], outputs=outputs, clearance_state="ouo"
        )
        await _catalogue(house)
        many = _mosaic(storage)
        outputs = {"raster_type": "rgb", "statistics": many["statistics"], "bbox": outputs["bbox"]}
        outputs["files"] = many["files"]
        mosaic = await house.publish("mosaic", blob_path=many["blob_path"], outputs=outputs)
        await make_table(house, "squares")
        box = {"bbox": [15.0, 45.0, 15.095, 45.095]}
        vector = await house.publish("squares", "vector", table_name="squares", outputs=box)
        secret = await house.publish("secrets", "vector", table_name="squares", outputs=box, clearance_state="ouo")
        await make_table(house, "europe", srid=3035)
        laea = await house.publish("europe", "vector", table_name="europe", outputs=box)
        series = await _series(house)
    key = (await make_key(url, Role.READER)).reveal()
    return {
        "reader": key,
        "raster": raster,
        "hidden": hidden,
        "mosaic": mosaic,
        "vector": vector,
        "secret_vector": secret,
        "laea_vector": laea,
        "series": series,
    }


async def _catalogue(house: House) -> None:
    """Three rasters side by side in the catalogue, one of them not for everybody."""
    kinds = (("left", 500_000, "public"), ("middle", 506_000, "public"), ("right", 512_000, "ouo"))
    for name, west, clearance in kinds:
        sources.put(
            house.storage,
            sources.SyntheticRaster(np.full((1, 600, 600), 7, "uint8"), transform=from_origin(west, 5_000_000, 10, 10)),
        )
        validation, cog_output = (
            steps.validated(house.storage),
            steps.cog(house.storage, f"{name}/_r2", target_crs="EPSG:32633"),
        )
        geometry = {"type": "Point", "coordinates": [15.0, 45.1]}
        params = {
            "stac_item_id": name, "stac_collection_id": "tests", "source": validation["source"],
            "facts": validation["facts"], "times": validation["times"], "plan": cog_output["plan"],
            "geometry": geometry, "bbox": [15.0, 45.1, 15.0, 45.1],
            "statistics": cog_output["statistics"], "files": cog_output["files"], "blob_prefix": f"{name}/_r2",
        }  # fmt: skip
        built = steps.ok(run_handler(stac_build_item, params, storage=house.storage))
        outputs = {
            "stac_item": built["stac_item"],
            "files": cog_output["files"],
            "statistics": cog_output["statistics"],
        }
        asset_id = await house.publish(name, blob_path=cog_output["blob_path"], clearance_state=clearance)
        await house.execute(COMPLETE, json.dumps(outputs), asset_id)
        async with house.pool.connection() as conn, conn.transaction():
            await follow_decision(conn, asset_id)


async def _series(house: House) -> str:
    """Two rasters side by side."""
    from geomill.handlers.raster.create_overview import create_overview
    from geomill.handlers.raster.create_scene import create_scene

    validations, scene_outputs = [], []
    for name, color, west in (("one", GREEN, 500_000), ("two", BLUE, 503_000)):
        data = np.empty((3, 300, 300), "uint8")
        data[:] = np.array(color, "uint8")[:, None, None]
        sources.put(house.storage, sources.SyntheticRaster(data, transform=from_origin(west, 5_000_000, 10, 10)))
        validations.append(steps.validated(house.storage))
        params = {"validated": validations[-1], "blob_prefix": f"series/{name}"}
        scene_outputs.append(steps.ok(run_handler(create_scene, params, storage=house.storage)))
    params = {"validated": validations, "scenes": scene_outputs, "blob_prefix": "series"}
    whole = steps.ok(run_handler(create_overview, params, storage=house.storage))
    scenes = {
        name: {
            "blob_path": scene_output["cog"]["blob_path"], "raster_type": "rgb",
            "statistics": scene_output["cog"]["statistics"], "bbox": scene_output["preview"]["bbox"],
            "zoom": whole["zooms"][number], "rank": whole["order"].index(number),
        }
        for number, (name, scene_output) in enumerate(zip(("one", "two"), scene_outputs, strict=True))
    }  # fmt: skip
    outputs = {"raster_type": "rgba", "scenes": scenes, "bbox": [15.0, 45.126, 15.077, 45.154]}
    return await house.publish("series", blob_path=whole["blob_path"], outputs=outputs)


def _mosaic(storage: Storage) -> dict[str, Any]:
    from geomill.handlers.raster.create_mosaic import create_mosaic
    from geomill.handlers.raster.process_tile_batch import process_tile_batch

    sources.put(storage, sources.SyntheticRaster(sources.noise((3, 1100, 1100))))
    validation, scheme = steps.tiling(storage, "many", 512, target_crs="EPSG:3857")
    common = {"plan": scheme["plan"], "blob_prefix": "many"}
    results = [
        steps.ok(
            run_handler(process_tile_batch, {**common, "source": validation["source"], "tiles": batch}, storage=storage)
        )
        for batch in scheme["batches"]
    ]
    return steps.ok(run_handler(create_mosaic, {**common, "results": results, "name": "many"}, storage=storage))


def run(*command: str, **environment: str) -> str:
    environment = {"PATH": "/usr/bin:/bin", "GDAL_ENABLE_WMS_CACHE": "NO", **environment}
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, env=environment)
    assert done.returncode == 0, done.stderr
    return done.stdout


def image(data: bytes) -> Any:
    with MemoryFile(data) as memory, memory.open() as dataset:
        return dataset.read()


def test_gdal_reads_a_raster_through_wmts(served: FilledServer, tmp_path: Path) -> None:
    for asset_id in (served.raster, served.mosaic):
        document = f"{served.url}/raster/assets/{asset_id}/WMTSCapabilities.xml"
        source = f"WMTS:{document},layer={asset_id},tilematrixset=WebMercatorQuad"
        info = json.loads(run("gdalinfo", "-json", source))
        assert 'ID["EPSG",3857]' in info["coordinateSystem"]["wkt"]
        corner = info["wgs84Extent"]["coordinates"][0][0]
        assert corner == pytest.approx([15.0, 45.154], abs=0.05)
        run("gdal_translate", "-q", "-outsize", "200", "0", source, str(tmp_path / "picture.png"))
        with rasterio.open(tmp_path / "picture.png") as picture:
            middle = picture.read()[:3, picture.height // 2, picture.width // 2]
        if asset_id == served.raster:
            assert tuple(middle) == GREEN


def test_gdal_reads_features_by_key(served: FilledServer) -> None:
    header = f"Authorization: Bearer {served.reader}"
    listed = run("ogrinfo", f"OAPIF:{served.url}/vector")
    assert served.vector in listed
    assert served.secret_vector not in listed
    assert served.secret_vector in run("ogrinfo", f"OAPIF:{served.url}/vector", GDAL_HTTP_HEADERS=header)
    info = run("ogrinfo", "-so", f"OAPIF:{served.url}/vector", served.vector)
    assert "Feature Count: 100" in info
    assert "select: String" in info
    some = run(
        "ogrinfo", "-q", "-spat", "15.001", "45.001", "15.012", "45.002", f"OAPIF:{served.url}/vector", served.vector
    )
    assert some.count("OGRFeature(") == 2


READ = """
import json, sys
import pyogrio, shapely
options = {"CRS": sys.argv[3]} if len(sys.argv) > 3 else {}
meta, _, geometries, _ = pyogrio.raw.read(sys.argv[1], layer=sys.argv[2], **options)
print(json.dumps([meta["crs"], shapely.get_coordinates(shapely.from_wkb(geometries)).tolist()]))
"""
"""Read in a process of its own: in this one GDAL would wait for a server that waits for GDAL."""


@pytest.mark.slow
def test_gdal_reads_features_in_the_system_that_it_asks_for(served: FilledServer) -> None:
    """OGC API Features, part 2. In EPSG:3035 north is first, which GDAL turns; it complains where an answer is in
    another system than it asked for."""
    crs, degrees = json.loads(_read(served, served.laea_vector, "OGC:CRS84"))
    points = np.array(degrees)
    assert (len(points), points.min(axis=0).tolist()) == (500, pytest.approx([15, 45], abs=1e-6))
    for system in ("EPSG:3857", "EPSG:3035"):
        crs, coordinates = json.loads(_read(served, served.laea_vector, system))
        assert pyproj.CRS(crs) == pyproj.CRS(system)
        expected = pyproj.Transformer.from_crs("OGC:CRS84", system, always_xy=True).transform(*points.T)
        assert np.abs(np.array(coordinates).T - expected).max() < 0.05
    crs, coordinates = json.loads(_read(served, served.laea_vector))
    assert crs == "EPSG:3035"  # in which the table is: nothing is transformed
    crs, coordinates = json.loads(_read(served, served.vector))
    assert np.array(coordinates).min(axis=0) == pytest.approx([15, 45], abs=1e-9)
    with pytest.raises(AssertionError, match="EPSG:2154 not found in list of CRS valid for"):
        _read(served, served.laea_vector, "EPSG:2154")


def _read(served: FilledServer, layer: str, *system: str) -> str:
    command = [sys.executable, "-W", "error", "-c", READ, f"OAPIF:{served.url}/vector", layer, *system]
    return run(*command, CPL_LOG="/dev/stderr")


def test_gdal_mosaics_what_a_search_finds(served: FilledServer) -> None:
    """STACIT: the search is the dataset. GDAL before 3.10.2 reads items of STAC 1.0 only (OSGeo/gdal issue 11753), so
    this is rasterio's GDAL. It sends the header of a key only where the address begins with /vsicurl/."""
    search = f"{served.url}/stac/search?collections=tests"
    with rasterio.open(f'STACIT:"{search}&limit=1":asset=data') as dataset:  # two pages
        assert (dataset.driver, dataset.crs.to_string(), dataset.shape) == ("STACIT", "EPSG:32633", (600, 1200))
        assert np.unique(dataset.read(1)).tolist() == [7]
    with (
        rasterio.Env(GDAL_HTTP_HEADERS=f"X-API-Key: {served.reader}"),
        rasterio.open(f'STACIT:"/vsicurl/{search}&limit=10":asset=data') as dataset,
    ):
        assert dataset.shape == (600, 1800)
        assert np.unique(dataset.read(1)).tolist() == [7]


def test_owslib_finds_and_fetches_tiles(served: FilledServer) -> None:
    client = WebMapTileService(f"{served.url}/raster/assets/{served.raster}/WMTSCapabilities.xml")
    layer = client.contents[served.raster]
    assert layer.boundingBoxWGS84 == pytest.approx((15.0, 45.1, 15.077, 45.154), abs=0.01)
    limits = layer.tilematrixsetlinks["WebMercatorQuad"].tilematrixlimits
    zoom = max(limits, key=int)
    place = limits[zoom]
    tile = client.gettile(
        layer=served.raster,
        tilematrixset="WebMercatorQuad",
        tilematrix=zoom,
        row=(place.mintilerow + place.maxtilerow) // 2,
        column=(place.mintilecol + place.maxtilecol) // 2,
        format="image/png",
    )
    pixels = image(tile.read())
    assert (pixels[:3, 128, 128] == GREEN).all()


def test_gdal_and_owslib_read_maps_through_wms(served: FilledServer, tmp_path: Path) -> None:
    """As QGIS asks: EPSG:4326 in version 1.3.0 has latitude first."""
    client = WebMapService(f"{served.url}/wms/", version="1.3.0")
    west, south, east, north = client.contents[served.raster].boundingBoxWGS84
    picture = client.getmap(
        layers=[served.raster, served.vector], styles=["", ""], srs="EPSG:4326", bbox=(west, south, east, north),
        size=(60, 40), format="image/png", transparent=True,
    )  # fmt: skip
    assert image(picture.read()).shape == (4, 40, 60)
    info = client.getfeatureinfo(
        layers=[served.raster], query_layers=[served.raster], srs="EPSG:4326", bbox=(west, south, east, north),
        size=(60, 40), xy=(30, 20), format="image/png", info_format="application/json",
    )  # fmt: skip
    assert len(json.loads(info.read())["features"]) == 1
    with pytest.raises(ServiceException, match="no layer"):
        client.getmap(layers=["nobody"], srs="EPSG:4326", bbox=(0, 0, 1, 1), size=(9, 9), format="image/png")
    query = f"SERVICE=WMS&VERSION=1.3.0&REQUEST=GetMap&LAYERS={served.raster}&STYLES=&CRS=EPSG:4326"
    source = f"WMS:{served.url}/wms/?{query}&BBOX={south},{west},{north},{east}&FORMAT=image/png"
    run("gdal_translate", "-q", "-outsize", "60", "40", source, str(tmp_path / "map.png"))
    with rasterio.open(tmp_path / "map.png") as drawn:
        assert tuple(drawn.read()[:3, 20, 30]) == GREEN


def test_gdal_reads_a_raster_through_the_wmts_of_all(served: FilledServer, tmp_path: Path) -> None:
    source = f"WMTS:{served.url}/raster/WMTSCapabilities.xml,layer={served.raster},tilematrixset=WebMercatorQuad"
    box = ("-projwin", "1671000", "5642000", "1673000", "5640000")
    run("gdal_translate", "-q", *box, "-outsize", "50", "50", source, str(tmp_path / "picture.png"))
    with rasterio.open(tmp_path / "picture.png") as picture:
        assert tuple(picture.read()[:3, 25, 25]) == GREEN


def test_cogeo_mosaic_opens_a_mosaic(served: FilledServer) -> None:
    with MosaicBackend(f"{served.url}/raster/assets/{served.mosaic}/mosaic.json") as mosaic:
        west, south, east, north = mosaic.bounds
        files = mosaic.assets_for_point((west + east) / 2, (south + north) / 2)
    assert files
    assert all(file.startswith(f"{served.url}/stac/files/{served.mosaic}/1/") for file in files)


READ_A_TILE = """
import json, sys
import numpy as np
from cogeo_mosaic.backends import MosaicBackend
with MosaicBackend(sys.argv[1]) as mosaic:
    tile = mosaic.tms.tile(15.05, 45.12, 14)
    image, used = mosaic.tile(tile.x, tile.y, tile.z)
np.savez(sys.argv[2], data=image.data, mask=image.mask)
print(json.dumps({"tile": list(tile), "used": used}))
"""
"""A process of its own, as a client has: GDAL's threads and those of the server do not share one."""


def test_cogeo_mosaic_reads_the_pixels_of_a_served_mosaic(served: FilledServer, tmp_path: Path) -> None:
    """It opens the address that we serve, and reads the files that the mosaic names over HTTP."""
    address, file = f"{served.url}/raster/assets/{served.mosaic}/mosaic.json", tmp_path / "tile.npz"
    command = [sys.executable, "-c", READ_A_TILE, address, str(file)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    answer_of_theirs, theirs = json.loads(done.stdout), np.load(file)
    x, y, z = answer_of_theirs["tile"]
    assert all(name.startswith(f"{served.url}/stac/files/") for name in answer_of_theirs["used"])
    answer = httpx.get(f"{served.url}/raster/assets/{served.mosaic}/tiles/WebMercatorQuad/{z}/{x}/{y}.tif")
    ours = image(answer.content)
    valid, data = theirs["mask"] == 255, theirs["data"]
    assert valid.mean() > 0.9
    assert np.unique(data).size > 100  # noise, so equal pixels are no accident
    assert np.mean((ours[:3] == data)[:, valid]) > 0.99  # they do not read across the edges of files


def test_owslib_reads_features(served: FilledServer) -> None:
    client = Features(f"{served.url}/vector/")
    assert served.vector in client.feature_collections()
    page = client.collection_items(served.vector, limit=5, bbox=[15.001, 45.001, 15.012, 45.002])
    assert [feature["id"] for feature in page["features"]] == [0, 1]
    assert client.collection_queryables(served.vector)["properties"]["select"]["type"] == "string"


def test_cogeo_mosaic_reads_what_was_published(served: FilledServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """The paths of a mosaic are relative to its own file."""
    path = Path(served.storage.gdal_path(ObjectName(Zone.SILVER, "cogs", "many/mosaic.json")))
    monkeypatch.chdir(path.parent)
    with MosaicBackend(str(path)) as mosaic:
        tile = mosaic.tms.tile(15.05, 45.12, 14)
        theirs, used = mosaic.tile(tile.x, tile.y, tile.z)
    answer = httpx.get(f"{served.url}/raster/assets/{served.mosaic}/tiles/WebMercatorQuad/14/{tile.x}/{tile.y}.tif")
    assert used
    assert np.mean(image(answer.content)[:3] == theirs.data) > 0.99  # they do not read across the edges of files


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    from playwright.sync_api import sync_playwright

    assert CHROMIUM, "chromium is missing: run script/setup --tests"
    with sync_playwright() as playwright:
        options = ["--no-sandbox", "--use-gl=angle", "--use-angle=swiftshader", "--enable-unsafe-swiftshader"]
        chromium = playwright.chromium.launch(executable_path=CHROMIUM, args=options)
        yield chromium
        chromium.close()


def drawn(browser: Any, url: str) -> tuple[Any, list[str]]:
    """Return the picture of a page once its map is drawn, and the errors of the page."""
    page = browser.new_page(viewport={"width": 900, "height": 600})
    wrong: list[str] = []
    page.on("console", lambda message: wrong.append(message.text) if message.type == "error" else None)
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on("response", lambda answer: wrong.append(f"{answer.status} {answer.url}") if answer.status >= 500 else None)
    page.goto(url)
    page.wait_for_selector("body[data-drawn=yes]", timeout=60_000)
    pixels = image(page.screenshot())
    page.close()
    return pixels, [message for message in wrong if "404" not in message]


def share(picture: Any, color: tuple[int, ...], tolerance: int = 6) -> float:
    return float(np.mean(np.abs(picture[:3].astype(int) - np.array(color)[:, None, None]).max(axis=0) <= tolerance))


@pytest.mark.slow
def test_a_browser_draws_a_raster(served: FilledServer, browser: Any) -> None:
    picture, wrong = drawn(browser, f"{served.url}/viewer/{served.raster}")
    assert not wrong
    assert share(picture, GREEN) > 0.4


@pytest.mark.slow
def test_a_browser_draws_a_series_and_leads_to_its_scenes(served: FilledServer, browser: Any) -> None:
    picture, wrong = drawn(browser, f"{served.url}/viewer/{served.series}")
    assert not wrong
    assert share(picture, GREEN) > 0.15
    assert share(picture, BLUE) > 0.15
    page = browser.new_page(viewport={"width": 900, "height": 600})
    page.goto(f"{served.url}/viewer/{served.series}")
    page.wait_for_selector("body[data-drawn=yes]", timeout=60_000)
    assert sorted(page.locator("#scenes a").all_text_contents()) == ["one", "two"]
    page.mouse.click(250, 320)  # on the western one
    page.wait_for_function("document.querySelectorAll('#scenes a').length === 1")
    page.click("#scenes a")
    page.wait_for_selector("body[data-drawn=yes]", timeout=60_000)
    assert page.url == f"{served.url}/viewer/{served.series}.one"
    page.close()


def test_a_browser_draws_features(served: FilledServer, browser: Any) -> None:
    picture, wrong = drawn(browser, f"{served.url}/viewer/{served.vector}")
    assert not wrong
    assert 0.08 < share(picture, (132, 175, 209), 8) < 0.3  # half of each way is a square, half see-through


def test_a_browser_needs_no_more_than_a_signed_link(served: FilledServer, browser: Any) -> None:
    ticket = KEY.ticket(served.hidden, int(time.time()) + 300, 0)
    picture, wrong = drawn(browser, f"{served.url}/viewer/{served.hidden}?{PARAMETER}={ticket}")
    assert not wrong
    assert share(picture, GREEN) > 0.4
