"""An asset of several items: from the handler that makes them to the file that one of them names."""

from __future__ import annotations

from typing import Any

import httpx
import pytest
from rasterio.transform import from_origin

from geomill.datasets.times import Times
from geomill.domain.access.principal import Role
from geomill.domain.access.visibility import Sight
from geomill.domain.assets.asset import Asset, DataType
from geomill.domain.assets.lifecycle import Actor
from geomill.domain.engine.message import TASK_QUEUES
from geomill.domain.engine.starting import Starter
from geomill.domain.states import JobStatus
from geomill.handlers.raster.stac_build_items import stac_build_items
from geomill.handlers.raster.stac_build_scenes import common_times, scene_names
from geomill.platform.desk import Desk
from geomill.platform.export import WorkflowExporter
from geomill.platform.submit import submit
from geomill.sdk import ObjectName, Storage, Zone
from geomill.sdk.registry import load_handlers
from geomill.sdk.testing import run_handler
from geomill.serve.stac import create_stac_app
from geomill.store import assets
from geomill.store.pool import Pool
from geomill.workflows.registry import WorkflowRegistry
from tests.integration.engine.platform import EnginePlatform, registry_of
from tests.integration.raster import sources
from tests.integration.raster.checks import check_stac, sizes
from tests.integration.raster.steps import cog, validated
from tests.integration.serve.stac.conftest import parent_of, served
from tests.integration.serve.zone import House

PARTS = """stac_collection_id: "{{ inputs.stac_collection_id }}",
    source: "{{ nodes.validate.output.source }}", facts: "{{ nodes.validate.output.facts }}",
    times: "{{ nodes.validate.output.times }}", plan: "{{ nodes.cog.output.plan }}",
    geometry: "{{ nodes.preview.output.geometry }}", bbox: "{{ nodes.preview.output.bbox }}",
    statistics: "{{ nodes.cog.output.statistics }}\""""
SCENES = """
    workflow_id: scenes
    name: A raster with items of its scenes
    inputs:
      container_name: {type: string}
      file_name: {type: string}
      blob_prefix: {type: string}
      stac_item_id: {type: string}
      stac_collection_id: {type: string}
    nodes:
      START: {type: start, next: validate}
      validate:
        type: task
        handler: raster.validate
        params: {container_name: "{{ inputs.container_name }}", file_name: "{{ inputs.file_name }}"}
        next: cog
      cog:
        type: task
        handler: raster.create_cog
        params:
          source: "{{ nodes.validate.output.source }}"
          facts: "{{ nodes.validate.output.facts }}"
          blob_prefix: "{{ inputs.blob_prefix ~ '/north' }}"
        next: preview
      preview:
        type: task
        handler: raster.create_preview
        params:
          plan: "{{ nodes.cog.output.plan }}"
          parts: "{{ nodes.cog.output.parts }}"
          blob_prefix: "{{ inputs.blob_prefix }}"
        next: item
      item:
        type: task
        handler: raster.stac_build_item
        params: {stac_item_id: "{{ inputs.stac_item_id }}", files: "{{ nodes.preview.output.files }}",
                 blob_prefix: "{{ inputs.blob_prefix }}", PARTS}
        next: scenes
      scenes:
        type: task
        handler: raster.stac_build_items
        params:
          blob_prefix: "{{ inputs.blob_prefix }}"
          items:
            - {stac_item_id: north, files: "{{ nodes.cog.output.files }}",
               blob_prefix: "{{ inputs.blob_prefix ~ '/north' }}", PARTS}
            - {stac_item_id: south, files: [], blob_prefix: "{{ inputs.blob_prefix ~ '/south' }}", PARTS}
        next: END
      END: {type: end}
    outputs:
      blob_path: "{{ nodes.cog.output.blob_path }}"
      files: >-
        {{ nodes.cog.output.files + nodes.preview.output.files + nodes.item.output.files + nodes.scenes.output.files }}
      stac_item: "{{ nodes.item.output.stac_item }}"
      stac_items: "{{ nodes.scenes.output.stac_items }}"
"""


@pytest.mark.parametrize("verb", ["stac_build", pytest.param("stac_register", id="deprecated names")])
async def test_an_asset_of_several_items_has_them_in_the_catalogue(
    verb: str, database: str, pool: Pool, storage: Storage
) -> None:
    sources.put(storage, sources.rgb(200))
    registry = load_handlers()
    carried = WorkflowRegistry.load([], handlers=registry.info, queues=TASK_QUEUES)
    text = SCENES.replace("PARTS", PARTS).replace("stac_build", verb)
    workflow_registry = WorkflowRegistry([*registry_of(registry, text).all(), *carried.all()])
    platform = EnginePlatform(database, pool, workflow_registry, registry, storage)
    platform.orchestrator()
    platform.worker(concurrency=2)
    desk = Desk(
        workflow_registry,
        "dag-jobs",
        WorkflowExporter(workflow_registry, "dag-jobs"),
        {DataType.RASTER: "scenes"},
        storage,
    )
    refs = {"dataset_id": "floods", "resource_id": "jakarta", "version_id": "v1"}
    async with pool.connection() as conn:
        order = sources.submission(refs, ["a.tif"])
        accepted = await submit(conn, desk, order, Actor("ada", starter=Starter.OPERATORS))
    assert accepted.message is not None
    job = await platform.ended(accepted.message.job_id)
    await platform.catalogued()
    await platform.shutdown()
    assert job.status is JobStatus.COMPLETED, job.error_message
    async with pool.connection() as conn:
        asset = await assets.get(conn, accepted.asset.asset_id)
    app = parent_of(create_stac_app(database_url=database, storage=storage))
    headers = {"sight": Sight(everything=True).model_dump_json()}
    async with served(app) as url, httpx.AsyncClient(base_url=url, headers=headers) as client:
        items = (await client.get("/stac/search?sortby=id")).json()["features"]
        assert [item["id"] for item in items] == [asset.stac_item_id + end for end in ("", ".north", ".south")]
        address = items[1]["assets"]["data"]["href"]
        assert address == f"{url}/stac/files/{asset.asset_id}/1/north/a.tif"
        assert (await client.get(address, headers={"Range": "bytes=0-1"})).content in (b"II", b"MM")


def test_items_name_their_files_from_their_own_folder_and_for_the_catalogue_from_the_assets(storage: Storage) -> None:
    sources.put(storage, sources.rgb(200))
    validation, cog_output = validated(storage), cog(storage, "a/_r1/north")
    square = {"type": "Polygon", "coordinates": [[[0, 0], [1, 0], [1, 1], [0, 0]]]}
    item: dict[str, Any] = {
        "stac_item_id": "north", "stac_collection_id": "c", "source": validation["source"],
        "facts": validation["facts"], "times": validation["times"], "plan": cog_output["plan"], "geometry": square,
        "bbox": [0, 0, 1, 1],
        "statistics": cog_output["statistics"], "files": cog_output["files"], "blob_prefix": "a/_r1/north",
    }  # fmt: skip
    run = run_handler(stac_build_items, {"items": [item], "blob_prefix": "a/_r1"}, storage=storage)
    assert run.success, run.error
    (for_the_catalogue,) = run.output["stac_items"]
    assert for_the_catalogue["assets"]["data"]["href"] == "./north/a.tif"
    document = check_stac(storage, ObjectName(Zone.SILVER, "cogs", "a/_r1/north/item.json"))
    assert document["assets"]["data"]["href"] == "./a.tif"
    for wrong, reason in (
        ({"items": [item, item]}, "several items have the stac_item_id 'north'"),
        ({"items": [item], "blob_prefix": "a/_r1/no"}, "the blob_prefix 'a/_r1/north' of 'north' is not inside"),
    ):
        run = run_handler(stac_build_items, wrong, storage=storage)
        assert not run.success
        assert reason in str(run.error)


async def test_several_rasters_are_one_asset(database: str, pool: Pool, storage: Storage) -> None:
    """The workflow of the library leads from the order to tiles of each raster."""
    far = from_origin(520_000, 5_000_000, 10, 10)
    sources.put(storage, sources.rgb(200), "2020/a.tif")
    sources.put(
        storage, sources.dem(200, transform=far, tags={"TIFFTAG_DATETIME": "2021:06:01 10:00:00"}), "2021/a.tif"
    )
    registry = load_handlers()
    workflow_registry = WorkflowRegistry.load([], handlers=registry.info, queues=TASK_QUEUES)
    platform = EnginePlatform(database, pool, workflow_registry, registry, storage)
    platform.orchestrator()
    platform.worker(concurrency=2)
    exporter = WorkflowExporter(workflow_registry, "dag-jobs")
    desk = Desk(workflow_registry, "dag-jobs", exporter, {DataType.RASTER: "process_raster_collection"}, storage)
    options = {"datetimes": {"2020/a.tif": "2020-03-01"}, "datetime": "2021-06-01T10:00:00Z"}

    async def ordered(version: str, files: list[str]) -> tuple[Any, Asset]:
        refs = {"dataset_id": "floods", "resource_id": "jakarta", "version_id": version}
        order = sources.submission(refs, files, processing_options=options)
        async with pool.connection() as conn:
            accepted = await submit(conn, desk, order, Actor("ada", starter=Starter.OPERATORS))
        assert accepted.message is not None
        job = await platform.ended(accepted.message.job_id)
        async with pool.connection() as conn:
            return job, await assets.get(conn, accepted.asset.asset_id)

    job, asset = await ordered("v1", ["2020/a.tif", "2021/a.tif"])
    sources.put(storage, b"II*\x00 and no more", "broken.tif")
    failed, other = await ordered("v2", ["2020/a.tif", "broken.tif"])
    await platform.catalogued()
    await platform.shutdown()
    assert job.status is JobStatus.COMPLETED, job.error_message
    output = job.result_data or {}
    assert {file["path"]: file["size"] for file in output["files"]} == sizes(storage, "cogs", f"{asset.blob_stem}/")
    assert (failed.status, other.processing_status) == (JobStatus.FAILED, "failed")
    assert not [path for path in sizes(storage, "cogs") if path.startswith(f"{other.blob_stem}/")]  # not one of them
    check_stac(storage, ObjectName(Zone.SILVER, "cogs", f"{asset.blob_stem}/_r1/item.json"))
    async with House.open(database, storage) as house:
        reader = await house.key(Role.READER)
        items = (await house.client.get("/stac/search?sortby=id", headers=reader)).json()["features"]
        whole, *scenes = items
        assert [item["id"] for item in items] == [asset.stac_item_id + end for end in ("", ".a", ".a-2")]
        assert [item["properties"]["datetime"] for item in items] == [None, *(
            f"{day}Z" for day in ("2020-03-01T00:00:00", "2021-06-01T10:00:00")
        )]  # fmt: skip
        assert (whole["properties"]["start_datetime"], whole["properties"]["geomill:scenes"]) == (
            "2020-03-01T00:00:00Z",
            2,
        )
        assert whole["bbox"][2] == pytest.approx(max(item["bbox"][2] for item in scenes))
        for item, bands in zip(scenes, (3, 1), strict=True):
            (tiles,) = [link["href"] for link in item["links"] if link["rel"] == "tilejson"]
            tilejson = (await house.client.get(tiles, headers=reader)).json()
            assert tilejson["bounds"] == pytest.approx(item["bbox"], abs=0.01)
            assert (await house.client.get(tiles)).status_code == 404  # nobody has approved it
            base = f"/raster/assets/{asset.asset_id}.{item['id'].rpartition('.')[2]}"
            assert len((await house.client.get(f"{base}/info", headers=reader)).json()["band_metadata"]) == bands
            assert (await house.client.get(f"{base}/preview.png", headers=reader)).status_code == 200
            assert base in (await house.client.get(f"/viewer/{base.rpartition('/')[2]}", headers=reader)).text
        answer = await house.client.get(f"/raster/assets/{asset.asset_id}.nobody/info", headers=reader)
        assert answer.status_code == 404
        assert "scene" in answer.json()["detail"]


def test_scenes_are_called_like_their_files() -> None:
    assert scene_names(["x/a.tif", "y/a.tif", "a-2.tif", "y/ä b.tif"]) == ["a", "a-2", "a-2-2", "b"]
    dated = [Times(datetime="2020-01-01T00:00:00Z", known_from="input")]
    assert common_times(dated * 2) == dated[0]
    received = Times(start_datetime="2021-01-01T00:00:00Z", end_datetime="2021-01-01T00:00:00Z")
    both = common_times([*dated, received])
    assert (both.start_datetime, both.end_datetime) == ("2020-01-01T00:00:00Z", "2021-01-01T00:00:00Z")
    assert (both.datetime, both.known_from) == (None, "received")
