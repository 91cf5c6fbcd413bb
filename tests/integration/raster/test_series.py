"""A series of rasters as a whole: from large results of its steps to one picture, inside and outside."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import rasterio
from httpx import Response
from morecantile import tms as grids
from rasterio.io import MemoryFile
from rasterio.transform import from_origin

from geomill.catalogue.external import ExternalDatabase
from geomill.domain.access.principal import Role
from geomill.domain.assets.asset import Asset, DataType
from geomill.domain.assets.lifecycle import Actor
from geomill.domain.engine.large import large_output
from geomill.domain.engine.message import TASK_QUEUES
from geomill.domain.engine.starting import Starter
from geomill.domain.states import ClearanceState, JobStatus
from geomill.platform import review
from geomill.platform.desk import Desk
from geomill.platform.export import WorkflowExporter
from geomill.platform.submit import submit
from geomill.sdk import ObjectName, Storage, Zone
from geomill.sdk.registry import load_handlers
from geomill.store import assets
from geomill.store.pool import Pool, open_pool
from geomill.worker import aside
from geomill.workflows.registry import WorkflowRegistry
from tests.integration.engine.platform import EnginePlatform
from tests.integration.raster import sources
from tests.integration.raster.checks import check_cog, check_stac, sizes
from tests.integration.serve.zone import KEY, ExternalServer, House

pytestmark = pytest.mark.filterwarnings("ignore::rasterio.errors.NotGeoreferencedWarning")
WEB = grids.get("WebMercatorQuad")
RED, GREEN, BLUE = (200, 30, 30), (30, 160, 30), (30, 30, 220)
MANY = 100
"""So many bands that their histograms and names exceed `TO_PUT_ASIDE`."""
TO_PUT_ASIDE = 50_000
"""The limit of the test, lower than a megabyte so that the raster can be small."""


def plain(color: tuple[int, int, int], west: int, **more: Any) -> sources.SyntheticRaster:
    data = np.empty((3, 300, 300), "uint8")
    data[:] = np.array(color, "uint8")[:, None, None]
    return sources.SyntheticRaster(data, transform=from_origin(west, 5_000_000, 10, 10), **more)


def many_bands() -> sources.SyntheticRaster:
    data = np.random.default_rng(2).integers(0, 256, (MANY, 64, 64)).astype("uint8")
    names = tuple(f"{number} " + "long " * 100 for number in range(MANY))
    return sources.SyntheticRaster(data, transform=from_origin(506_000, 5_000_000, 10, 10), names=names)


@dataclass
class Shop:
    """Everything that takes an order and carries it out."""

    platform: EnginePlatform
    desk: Desk
    pool: Pool

    async def ordered(self, files: dict[str, str], name: str = "jakarta", **options: Any) -> tuple[Any, Asset]:
        refs = {"dataset_id": "floods", "resource_id": name, "version_id": "v1"}
        options = {"datetimes": files, **options}
        order = sources.submission(refs, list(files), processing_options=options)
        async with self.pool.connection() as conn:
            accepted = await submit(conn, self.desk, order, Actor("ada", starter=Starter.OPERATORS))
        assert accepted.message is not None
        job = await self.platform.ended(accepted.message.job_id)
        await self.platform.catalogued()
        async with self.pool.connection() as conn:
            return job, await assets.get(conn, accepted.asset.asset_id)

    async def decide(self, what: Any, *arguments: Any) -> Any:
        async with self.pool.connection() as conn:
            outcome = await what(conn, self.desk, *arguments, Actor("bob"), None)
        return await self.platform.ended(outcome.export_job_id)


def image(answer: Response) -> Any:
    assert answer.status_code == 200, answer.text
    with MemoryFile(answer.content) as memory, memory.open() as dataset:
        return dataset.read()


def share(picture: Any, color: tuple[int, int, int]) -> float:
    """Return the share of a colour in the drawn pixels."""
    near = np.abs(picture[:3].astype(int) - np.array(color)[:, None, None]).max(axis=0) <= 8
    return float(near[picture[3] > 0].mean())


async def tile_at(house: House, start: str, lon: float, lat: float, zoom: int, headers: Any) -> Response:
    tile = WEB.tile(lon, lat, zoom)
    address = f"{start}/tiles/WebMercatorQuad/{zoom}/{tile.x}/{tile.y}.png"
    return await house.client.get(address, headers=headers)


@pytest.fixture
async def shop(database: str, external_database: str, pool: Pool, storage: Storage) -> Any:
    registry = load_handlers()
    workflow_registry = WorkflowRegistry.load([], handlers=registry.info, queues=TASK_QUEUES)
    exporter = WorkflowExporter(workflow_registry, "dag-jobs")
    desk = Desk(workflow_registry, "dag-jobs", exporter, {DataType.RASTER: "process_raster_collection"}, storage)
    async with open_pool(external_database, size=2, idle=True) as outside:
        platform = EnginePlatform(database, pool, workflow_registry, registry, storage, ExternalDatabase(pool, outside))
        platform.orchestrator()
        platform.worker(concurrency=2)
        yield Shop(platform, desk, pool)
        await platform.shutdown()


@pytest.mark.slow
async def test_a_series_is_one_picture_inside_and_outside(
    shop: Shop, database: str, external_database: str, storage: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Red lies beside green. Blue covers half of green, because its date is later. The raster of many bands lies
    elsewhere."""
    monkeypatch.setattr(aside, "LARGE", TO_PUT_ASIDE)
    for name, raster in (
        ("red.tif", plain(RED, 500_000)),
        ("blue.tif", plain(BLUE, 504_500)),
        ("green.tif", plain(GREEN, 503_000)),
        ("many.tif", many_bands()),
    ):
        sources.put(storage, raster, name)
    days = {"red.tif": "2020-01-01", "blue.tif": "2020-03-01", "green.tif": "2020-02-01", "many.tif": "2019-01-01"}
    job, asset = await shop.ordered(days)
    assert job.status is JobStatus.COMPLETED, job.error_message
    rows = await shop.platform.rows(
        "SELECT node_id, output FROM dagapp.dag_task_results WHERE node_id IN ('scene', 'validate') AND item_index >= 0"
        " ORDER BY 1, item_index"
    )
    assert [large_output(row["output"]) is not None for row in rows] == [False, False, False, True] * 2
    output = job.result_data
    assert {file["path"]: file["size"] for file in output["files"]} == sizes(storage, "cogs", f"{asset.blob_stem}/")
    assert [output["scenes"][name]["rank"] for name in ("blue", "green", "red", "many")] == [0, 1, 2, 3]
    assert len(output["scenes"]["many"]["statistics"]) == MANY
    folder = f"{asset.blob_stem}/_r1"
    check_cog(storage, ObjectName(Zone.SILVER, "cogs", f"{folder}/overview.tif"))
    item = check_stac(storage, ObjectName(Zone.SILVER, "cogs", f"{folder}/item.json"))
    assert {"visual", "overview", "thumbnail"} < set(item["assets"])
    async with House.open(database, storage) as house:
        reader = await house.key(Role.READER)
        await whole_is_seen(house, asset, reader)
        ticket = KEY.ticket(asset.asset_id, int(time.time()) + 60, 0)
        page = await house.client.get(f"/viewer/{asset.asset_id}/scenes?geomill_link={ticket}&limit=3")
        assert page.status_code == 200, page.text
        (onwards,) = page.json()["links"]
        (last,) = (await house.client.get(onwards["href"])).json()["features"]
        assert last["properties"]["name"] == "many"
        assert "geomill_link=" in page.json()["features"][0]["properties"]["viewer"]
        for hidden in (f"/viewer/{asset.asset_id}/scenes", f"/raster/assets/{asset.asset_id}/preview.png"):
            assert (await house.client.get(hidden)).status_code == 404  # nobody has approved it
    await outside_too(shop, asset, external_database, storage)


async def whole_is_seen(house: House, asset: Asset, headers: Any) -> None:
    start = f"/raster/assets/{asset.asset_id}"
    tilejson = (await house.client.get(f"{start}/WebMercatorQuad/tilejson.json", headers=headers)).json()
    west, south, east, north = tilejson["bounds"]
    assert (west, north) == pytest.approx((15.0, 45.153), abs=0.01)
    assert tilejson["maxzoom"] >= 13
    preview = image(await house.client.get(f"{start}/preview.png", headers=headers))
    for color, part in ((RED, 0.33), (BLUE, 0.33), (GREEN, 0.165)):
        assert share(preview, color) == pytest.approx(part, abs=0.08)
    for zoom in (tilejson["minzoom"], tilejson["maxzoom"], tilejson["maxzoom"] + 2):
        near = await tile_at(house, start, 15.018, 45.14, zoom, headers)
        assert share(image(near), RED) > 0.2
    both = image(await tile_at(house, start, 15.058, 45.14, 15, headers))  # where green ends under blue
    assert share(both, BLUE) + share(both, GREEN) > 0.95
    box = f"{start}/bbox/{west},{south},{east},{north}/600x200.png"
    assert share(image(await house.client.get(box, headers=headers)), RED) > 0.2
    nothing = await tile_at(house, start, 15.018, -45.14, 12, headers)
    assert nothing.status_code == 404
    for values in ("statistics", "preview.tif", "preview.png?bidx=1", "preview.png?expression=b1"):
        refused = await house.client.get(f"{start}/{values}", headers=headers)
        assert (refused.status_code, refused.json()["code"]) == (409, "conflict"), values
    point = (await house.client.get(f"{start}/point/15.018,45.14", headers=headers)).json()
    assert tuple(point["values"]) == RED
    scenes = (await house.client.get(f"/viewer/{asset.asset_id}/scenes", headers=headers)).json()
    assert [feature["properties"]["name"] for feature in scenes["features"]] == ["blue", "green", "red", "many"]
    viewer = await house.client.get(scenes["features"][2]["properties"]["viewer"], headers=headers)
    assert f"/raster/assets/{asset.asset_id}.red/" in viewer.text
    page = (await house.client.get(f"/viewer/{asset.asset_id}", headers=headers)).text
    item = f"/stac/collections/{asset.stac_collection_id}/items/{asset.stac_item_id}"
    assert item in page
    entry = (await house.client.get(item, headers=headers)).json()
    (tiles,) = [link["href"] for link in entry["links"] if link["rel"] == "tilejson"]
    assert (await house.client.get(tiles, headers=headers)).status_code == 200
    thumbnail = await house.client.get(entry["assets"]["thumbnail"]["href"], headers=headers)
    assert image(thumbnail).shape[0] == 4


async def outside_too(shop: Shop, asset: Asset, external_database: str, storage: Storage) -> None:
    """A public series is in the external zone with all of its scenes, and nothing else is."""
    sources.put(storage, plain(RED, 500_000), "secret.tif")
    job, secret = await shop.ordered({"secret.tif": "2020-01-01"}, "secret")
    assert job.status is JobStatus.COMPLETED, job.error_message
    exported = await shop.decide(review.approve, asset.asset_id, ClearanceState.PUBLIC)
    assert exported.status is JobStatus.COMPLETED, exported.error_message
    async with ExternalHouse.open(external_database, storage) as outside:
        items = (await outside.client.get("/stac/search?sortby=id&limit=20")).json()["features"]
        ends = ("", ".blue", ".green", ".many", ".red")
        assert [item["id"] for item in items] == [asset.stac_item_id + end for end in ends]
        await whole_is_seen(outside, asset, {})
        for item in items[1:]:
            (tiles,) = [link["href"] for link in item["links"] if link["rel"] == "tilejson"]
            assert (await outside.client.get(tiles)).status_code == 200
            data = await outside.client.get(item["assets"]["data"]["href"], headers={"Range": "bytes=0-1"})
            assert data.content in (b"II", b"MM")
        for name in ("", ".secret"):
            answer = await outside.client.get(f"/raster/assets/{secret.asset_id}{name}/info")
            assert answer.status_code == 404
        place = storage.gdal_path(ObjectName(Zone.EXTERNAL, "public", f"{asset.blob_stem}/_r1/1/red.tif"))
        with rasterio.open(place) as dataset:
            assert dataset.count == 3
        withdrawn = await shop.decide(review.revoke, asset.asset_id, "wrong")
        assert withdrawn.status is JobStatus.COMPLETED, withdrawn.error_message
    async with ExternalHouse.open(external_database, storage) as outside:
        assert (await outside.client.get("/stac/search")).json()["features"] == []
        for name in ("", ".red"):
            assert (await outside.client.get(f"/raster/assets/{asset.asset_id}{name}/info")).status_code == 404


class ExternalHouse(ExternalServer):
    """On a database that an export has filled."""

    @classmethod
    async def prepare(cls, pool: Pool) -> None:
        """Create nothing: the export has created everything."""
