"""An asset of several items: from the handler that makes them to the file that one of them names."""

from __future__ import annotations

from typing import Any

import httpx

from geomill.domain.asset import DataType
from geomill.domain.lifecycle import Actor
from geomill.domain.message import TASK_QUEUES
from geomill.domain.states import JobStatus
from geomill.domain.visibility import Sight
from geomill.handlers.raster.stac_register_items import stac_register_items
from geomill.platform.desk import Desk
from geomill.platform.export import WorkflowExporter
from geomill.platform.submit import Submission, submit
from geomill.sdk import ObjectName, Storage, Zone
from geomill.sdk.registry import load_handlers
from geomill.sdk.testing import run_handler
from geomill.serve.stac import create_stac_app
from geomill.store import assets
from geomill.store.pool import Pool
from geomill.workflows.catalogue import WorkflowCatalogue
from tests.integration.engine.platform import Platform, catalogue_of
from tests.integration.raster import sources
from tests.integration.raster.checks import check_stac
from tests.integration.raster.steps import cog, validated
from tests.integration.serve.stac.conftest import parent_of, served

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
        handler: raster.stac_register_item
        params: {stac_item_id: "{{ inputs.stac_item_id }}", files: "{{ nodes.preview.output.files }}",
                 blob_prefix: "{{ inputs.blob_prefix }}", PARTS}
        next: scenes
      scenes:
        type: task
        handler: raster.stac_register_items
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


async def test_an_asset_of_several_items_has_them_in_the_catalogue(database: str, pool: Pool, storage: Storage) -> None:
    sources.put(storage, sources.rgb(200))
    registry = load_handlers()
    carried = WorkflowCatalogue.load([], handlers=registry.info, queues=TASK_QUEUES)
    catalogue = WorkflowCatalogue([*catalogue_of(registry, SCENES.replace("PARTS", PARTS)).all(), *carried.all()])
    platform = Platform(database, pool, catalogue, registry, storage)
    platform.orchestrator()
    platform.worker(concurrency=2)
    desk = Desk(catalogue, "dag-jobs", WorkflowExporter(catalogue, "dag-jobs"), {DataType.RASTER: "scenes"}, storage)
    refs = {"dataset_id": "floods", "resource_id": "jakarta", "version_id": "v1"}
    async with pool.connection() as conn:
        order = Submission("ddh", refs, DataType.RASTER, sources.CONTAINER, ["a.tif"])
        accepted = await submit(conn, desk, order, Actor("ada"))
    assert accepted.message is not None
    job = await platform.ended(accepted.message.job_id)
    await platform.shutdown()
    assert job.status is JobStatus.COMPLETED, job.error_message
    async with pool.connection() as conn:
        asset = await assets.get(conn, accepted.asset.asset_id)
    app = parent_of(create_stac_app(database_url=database, storage=storage))
    headers = {"sight": Sight(everything=True).model_dump_json()}
    async with served(app) as url, httpx.AsyncClient(base_url=url, headers=headers) as client:
        found = (await client.get("/stac/search?sortby=id")).json()["features"]
        assert [item["id"] for item in found] == [asset.stac_item_id + end for end in ("", ".north", ".south")]
        address = found[1]["assets"]["data"]["href"]
        assert address == f"{url}/stac/files/{asset.asset_id}/1/north/a.tif"
        assert (await client.get(address, headers={"Range": "bytes=0-1"})).content in (b"II", b"MM")


def test_items_name_their_files_from_their_own_folder_and_for_the_catalogue_from_the_assets(storage: Storage) -> None:
    sources.put(storage, sources.rgb(200))
    seen, made = validated(storage), cog(storage, "a/_r1/north")
    square = {"type": "Polygon", "coordinates": [[[0, 0], [1, 0], [1, 1], [0, 0]]]}
    item: dict[str, Any] = {
        "stac_item_id": "north", "stac_collection_id": "c", "source": seen["source"], "facts": seen["facts"],
        "times": seen["times"], "plan": made["plan"], "geometry": square, "bbox": [0, 0, 1, 1],
        "statistics": made["statistics"], "files": made["files"], "blob_prefix": "a/_r1/north",
    }  # fmt: skip
    run = run_handler(stac_register_items, {"items": [item], "blob_prefix": "a/_r1"}, storage=storage)
    assert run.success, run.error
    (for_the_catalogue,) = run.output["stac_items"]
    assert for_the_catalogue["assets"]["data"]["href"] == "./north/a.tif"
    document = check_stac(storage, ObjectName(Zone.SILVER, "cogs", "a/_r1/north/item.json"))
    assert document["assets"]["data"]["href"] == "./a.tif"
    for wrong, reason in (
        ({"items": [item, item]}, "several items have the stac_item_id 'north'"),
        ({"items": [item], "blob_prefix": "a/_r1/no"}, "the blob_prefix 'a/_r1/north' of 'north' is not inside"),
    ):
        run = run_handler(stac_register_items, wrong, storage=storage)
        assert not run.success
        assert reason in str(run.error)
