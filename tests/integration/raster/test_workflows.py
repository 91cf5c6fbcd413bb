"""Both workflows from submission to completion, with a real orchestrator, worker and child processes."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import rasterio
from cogeo_mosaic.mosaic import MosaicJSON
from rasterio.merge import merge

from geomill.domain.assets.asset import DataType
from geomill.domain.assets.lifecycle import Actor
from geomill.domain.engine.large import LargeOutput
from geomill.domain.engine.starting import Starter
from geomill.domain.states import JobStatus
from geomill.handlers.raster.create_mosaic import create_mosaic
from geomill.handlers.raster.process_tile_batch import process_tile_batch
from geomill.platform.desk import Desk
from geomill.platform.export import WorkflowExporter
from geomill.platform.submit import submit
from geomill.sdk import ObjectName, Storage, Zone
from geomill.sdk.testing import run_handler
from geomill.store import assets
from tests.integration.engine.platform import EnginePlatform
from tests.integration.raster import sources, steps
from tests.integration.raster.checks import check_cog, check_stac, read, sizes
from tests.integration.raster.sources import SyntheticRaster

INPUTS = {"container_name": sources.CONTAINER, "file_name": "a.tif"}


def names(files: list[dict[str, Any]], role: str) -> list[ObjectName]:
    return [ObjectName(Zone(f["zone"]), f["container"], f["path"]) for f in files if f["role"] == role]


def check_inventory(storage: Storage, files: list[dict[str, Any]], prefix: str) -> None:
    """The inventory names exactly the files that exist."""
    assert {f["path"]: f["size"] for f in files} == sizes(storage, "cogs", prefix)


async def test_a_small_raster(platform: EnginePlatform, storage: Storage) -> None:
    sources.put(storage, sources.dem())
    platform.worker(concurrency=2)
    job = await platform.run("raster_processing", {**INPUTS, "blob_prefix": "d/r/r1", "stac_item_id": "d-r"})
    assert job.status is JobStatus.COMPLETED, job.error_message
    result = job.result_data or {}
    assert result["raster_type"] == "dem"
    assert result["route"] == "cog_light"
    assert result["blob_path"] == "cogs/d/r/r1/a.tif"
    assert len(result["source_file_hash"]) == 64
    check_inventory(storage, result["files"], "d/r/r1")
    check_cog(storage, names(result["files"], "data")[0])
    item = check_stac(storage, names(result["files"], "stac_item")[0])
    check_stac(storage, names(result["files"], "stac_collection")[0])
    assert item["id"] == "d-r"
    assert item["properties"]["proj:code"] == sources.UTM
    assert item["properties"]["proj:transform"][:6] == list(sources.UTM_PLACE)[:6]
    assert {"data", "thumbnail", "overview"} <= item["assets"].keys()


async def test_a_system_without_a_code_is_written_as_wkt_of_the_second_version(
    platform: EnginePlatform, storage: Storage
) -> None:
    heights = sources.SyntheticRaster(sources.noise((1, 60, 60), "float64"), crs="EPSG:32633+5773")
    sources.put(storage, heights)
    platform.worker(concurrency=2)
    job = await platform.run("raster_processing", {**INPUTS, "blob_prefix": "d/r/r1"})
    assert job.status is JobStatus.COMPLETED, job.error_message
    files = (job.result_data or {})["files"]
    place = check_stac(storage, names(files, "stac_item")[0])["properties"]
    assert place["proj:code"] is None
    assert place["proj:wkt2"].startswith("COMPOUNDCRS[")
    with rasterio.open(storage.gdal_path(names(files, "data")[0])) as dataset:
        assert dataset.crs == rasterio.crs.CRS.from_user_input("EPSG:32633+5773")


async def test_a_large_raster(platform: EnginePlatform, storage: Storage) -> None:
    sources.put(storage, sources.rgb(1200))
    platform.worker(concurrency=2)
    job = await platform.run("process_large_raster", {**INPUTS, "tile_size": 512, "datetime": "2024-04-17"})
    assert job.status is JobStatus.COMPLETED, job.error_message
    result = job.result_data or {}
    prefix = f"jobs/{job.job_id}"
    assert result["strategy"] == "one_pass"
    assert result["tile_count"] == len(names(result["files"], "tile")) == 9
    check_inventory(storage, result["files"], prefix)
    for name in names(result["files"], "tile"):
        check_cog(storage, name)
    mosaic = MosaicJSON.model_validate_json(read(storage, names(result["files"], "mosaic")[0]))
    assert {path for paths in mosaic.tiles.values() for path in paths} == {
        name.path.removeprefix(prefix + "/") for name in names(result["files"], "tile")
    }
    item = check_stac(storage, names(result["files"], "stac_item")[0])
    assert item["properties"]["datetime"] == "2024-04-17T00:00:00Z"
    scheme = json.loads(read(storage, names(result["files"], "tiling_scheme")[0]))
    assert len(scheme["features"]) == result["tile_count"] + result["empty_tiles"]
    _check_statistics(storage, result)


def _check_statistics(storage: Storage, result: dict[str, Any]) -> None:
    """Compare the statistics with all pixels of all tiles."""
    opened = [rasterio.open(storage.gdal_path(name)) for name in names(result["files"], "tile")]
    data, _ = merge(opened, masked=True)
    for dataset in opened:
        dataset.close()
    for index, band in enumerate(result["statistics"]):
        assert band["minimum"] == data[index].min()
        assert band["maximum"] == data[index].max()
        np.testing.assert_allclose([band["mean"], band["stddev"]], [data[index].mean(), data[index].std()], rtol=1e-6)
        assert sum(band["histogram"]["buckets"]) == data[index].count()


async def test_a_raster_that_must_be_cut_first_has_the_same_pixels(platform: EnginePlatform, storage: Storage) -> None:
    raster = SyntheticRaster(sources.noise((3, 1700, 1700), rough=0.05))
    sources.put(storage, raster)
    raster.options = {"compress": "deflate", "blockysize": 1700}
    sources.put(storage, raster, "strip.tif")
    platform.worker(concurrency=2)
    tiled = await platform.run("process_large_raster", {**INPUTS, "tile_size": 1024})
    striped = await platform.run("process_large_raster", {**INPUTS, "tile_size": 1024, "file_name": "strip.tif"})
    assert striped.status is JobStatus.COMPLETED, striped.error_message
    assert (striped.result_data or {})["strategy"] == "two_pass"
    for first, second in zip(
        names((tiled.result_data or {})["files"], "tile"),
        names((striped.result_data or {})["files"], "tile"),
        strict=True,
    ):
        with rasterio.open(storage.gdal_path(first)) as a, rasterio.open(storage.gdal_path(second)) as b:
            difference = np.abs(a.read().astype(int) - b.read())
            assert difference.max() <= 1
            assert (difference > 0).mean() < 0.001
            assert a.transform == b.transform
    left = await platform.run("cleanup_intermediates", {"older_than_hours": 0})
    assert (left.result_data or {})["cleanup"]["deleted_objects"] == (striped.result_data or {})["tile_count"]
    assert sizes(storage, "intermediates") == {}


async def test_an_asset_takes_what_the_job_has_made(platform: EnginePlatform, storage: Storage) -> None:
    sources.put(storage, sources.rgb(200))
    platform.worker(concurrency=2)
    exporter = WorkflowExporter(platform.workflow_registry, "dag-jobs")
    desk = Desk(
        platform.workflow_registry, "dag-jobs", exporter, {DataType.RASTER: "raster_processing"}, platform.storage
    )
    refs = {"dataset_id": "floods", "resource_id": "jakarta", "version_id": "v1"}
    order = sources.submission(refs, ["a.tif"])
    async with platform.pool.connection() as conn:
        accepted = await submit(conn, desk, order, Actor("ada", starter=Starter.OPERATORS))
    assert accepted.message is not None
    job = await platform.ended(accepted.message.job_id)
    await platform.catalogued()
    assert job.status is JobStatus.COMPLETED, job.error_message
    async with platform.pool.connection() as conn:
        asset = await assets.get(conn, accepted.asset.asset_id)
    assert asset.blob_path == "cogs/floods/jakarta/v1/_r1/a.tif"
    assert asset.warnings  # the date is unknown
    assert asset.source_file_hash
    assert asset.outputs is not None
    check_inventory(storage, asset.outputs["files"], "floods/jakarta/v1/_r1")
    item = check_stac(storage, names(asset.outputs["files"], "stac_item")[0])
    assert (item["id"], item["collection"]) == (asset.stac_item_id, asset.stac_collection_id)
    (row,) = await platform.rows("SELECT id, content FROM pgstac.items")
    catalogued = row["content"]
    assert row["id"] == asset.stac_item_id
    assert catalogued["assets"].keys() == item["assets"].keys()
    assert catalogued["assets"]["data"]["href"] == f"files/{asset.asset_id}/1/a.tif"
    assert catalogued["properties"]["processing:version"] == "raster_processing 1"
    assert catalogued["properties"]["geomill:job_id"] == job.job_id
    assert catalogued["properties"]["datetime"] is None  # nobody knows it, and nobody invents it
    (counted,) = await platform.rows("SELECT items, public_items FROM catalogue.collections")
    assert counted == {"items": 1, "public_items": 0}


async def test_an_attribute_table_beside_the_raster(platform: EnginePlatform, storage: Storage) -> None:
    raster = sources.categorical()
    raster.colormap = None
    name = sources.put(storage, raster)
    columns = "".join(f"<FieldDefn><Name>c{use}</Name><Usage>{use}</Usage></FieldDefn>" for use in (5, 2, 6, 7, 8))
    rows = "<Row><F>1</F><F>open water</F><F>0</F><F>0</F><F>255</F></Row><Row><F>5</F><F>forest</F></Row>"
    table = f"<GDALRasterAttributeTable>{columns}{rows}</GDALRasterAttributeTable>"
    text = f"<PAMDataset><PAMRasterBand band='1'>{table}</PAMRasterBand></PAMDataset>"
    beside = ObjectName(name.zone, name.container, f"{name.path}.aux.xml")
    await storage.put_bytes(beside, text.encode())
    platform.worker(concurrency=2)
    job = await platform.ended(await platform.submit("raster_processing", {**INPUTS, "blob_prefix": "classes"}))
    assert job.status is JobStatus.COMPLETED, job.error_message
    assert job.result_data["raster_type"] == "categorical"
    item = job.result_data["stac_item"]
    assert item["assets"]["data"]["bands"][0]["classification:classes"] == [
        {"value": 1, "name": "open_water_1", "title": "open water", "color_hint": "0000FF"},
        {"value": 5, "name": "forest_5", "title": "forest"},
    ]


def test_results_of_tiles_that_lie_aside(storage: Storage) -> None:
    """Results of a raster with hundreds of bands are too large for a row. The mosaic reads them from the store."""
    sources.put(storage, sources.rgb(1_300))
    validation, scheme = steps.tiling(storage, target_crs="source")
    common = {"plan": scheme["plan"], "blob_prefix": "many"}
    results = [
        steps.ok(
            run_handler(process_tile_batch, {**common, "source": validation["source"], "tiles": batch}, storage=storage)
        )
        for batch in scheme["batches"]
    ]
    content = json.dumps(results[0]).encode()
    aside = LargeOutput.of("job", "tiles.0", 1, content)
    storage.sync.put_bytes(aside.name, content)
    there, apart = (
        steps.ok(run_handler(create_mosaic, {**common, "results": tile_results, "name": "many"}, storage=storage))
        for tile_results in (results, [aside.output(), *results[1:]])
    )
    assert there["tile_count"] > len(results[0]["parts"]) > 0
    assert apart == there
