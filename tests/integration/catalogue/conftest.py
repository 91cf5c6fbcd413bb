from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from geomill.catalogue.external import ExternalDatabase
from geomill.domain.assets.asset import DataType
from geomill.domain.objectname import ObjectName, Zone
from geomill.platform.desk import Desk
from geomill.platform.export import WorkflowExporter
from geomill.storage import Storage, StorageRecipe
from geomill.store.pool import Pool, open_pool
from geomill.workflows.registry import WorkflowRegistry
from tests.integration.engine.platform import EnginePlatform, handlers_of, library, registry_of
from tests.integration.platform.conftest import TIFF, Office

PUBLISH = """
    workflow_id: catalogued
    name: Publish a file with an entry of the catalogue
    inputs:
      container_name: {type: string}
      file_name: {type: string}
      blob_prefix: {type: string}
      item: {type: object}
      collection: {type: object, required: false}
      scenes: {type: array, required: false}
      fails: {type: boolean, default: false}
    nodes:
      START: {type: start, next: choose}
      choose:
        type: conditional
        condition_field: "{{ inputs.fails }}"
        branches:
          - {name: bad, condition: "== true", next: bad}
          - {name: good, default: true, next: good}
      bad: {type: task, handler: fail, params: {error_message: "no luck", retryable: false}, next: END}
      good:
        type: task
        handler: blob.publish_file
        params:
          container_name: "{{ inputs.container_name }}"
          file_name: "{{ inputs.file_name }}"
          blob_prefix: "{{ inputs.blob_prefix }}"
        next: scenes
      scenes: {type: task, handler: echo, params: {scenes: "{{ inputs.scenes }}"}, next: END}
      END: {type: end}
    outputs:
      blob_path: "{{ nodes.good.output.blob_path | default(none) }}"
      files: "{{ nodes.good.output.files | default([]) }}"
      stac_item: "{{ inputs.item }}"
      stac_items: "{{ nodes.scenes.output.echoed_params.scenes | default(none) }}"
      stac_collection: "{{ inputs.collection }}"
"""


def an_item(west: float = 10.0, south: float = 50.0, *, when: str = "2024-04-17T00:00:00Z", **more: Any) -> Any:
    """As a job makes it: one degree in size, with a file beside it."""
    east, north = west + 1, south + 1
    ring = [[west, south], [east, south], [east, north], [west, north], [west, south]]
    return {
        "type": "Feature",
        "stac_version": "1.1.0",
        "stac_extensions": [],
        "id": "whatever",
        "geometry": {"type": "Polygon", "coordinates": [ring]},
        "bbox": [west, south, east, north],
        "properties": {"datetime": when, **more},
        "links": [],
        "assets": {"data": {"href": "./a.tif", "type": "image/tiff", "roles": ["data"]}},
    }


def refs(resource: str, dataset: str = "floods") -> dict[str, Any]:
    return {"dataset_id": dataset, "resource_id": resource, "version_id": "v1"}


@pytest.fixture
async def office(database: str, external_database: str, pool: Pool, tmp_path: Path) -> AsyncIterator[Office]:
    registry = handlers_of()
    carried = library()
    workflow_registry = WorkflowRegistry([*registry_of(registry, PUBLISH).all(), *carried.all()])
    storage = Storage(StorageRecipe.in_folder(tmp_path))
    await storage.prepare()
    await storage.put_bytes(ObjectName(Zone.BRONZE, "uploads", "a.tif"), TIFF)
    async with open_pool(external_database, size=2, idle=True) as outside:
        engine = EnginePlatform(
            database, pool, workflow_registry, registry, storage=storage, external=ExternalDatabase(pool, outside)
        )
        exporter = WorkflowExporter(workflow_registry, "dag-jobs")
        desk = Desk(workflow_registry, "dag-jobs", exporter, dict.fromkeys(DataType, "catalogued"), storage)
        yield Office(engine, desk, storage)
        await engine.shutdown()
