"""A workflow in the words of the earlier system runs as it is."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from geomill.domain.engine.message import TASK_QUEUES
from geomill.domain.states import JobStatus
from geomill.sdk import ObjectName, Storage
from geomill.store.pool import Pool
from geomill.workflows.loader import load_text
from geomill.workflows.registry import WorkflowRegistry
from tests.integration.engine.platform import EnginePlatform, handlers_of
from tests.integration.raster import sources
from tests.integration.raster.checks import check_cog

WORKFLOW = """
workflow_id: earlier_raster
name: Names of the earlier system
version: 1

inputs:
  container_name:
    type: string
    required: true
  blob_name:
    type: string
    required: true
  target_crs:
    type: string
    default: "EPSG:3857"

nodes:
  START:
    type: start
    next: validate

  validate:
    type: task
    handler: raster_validate
    queue: functionapp-tasks
    params:
      container_name: "{{ inputs.container_name }}"
      blob_name: "{{ inputs.blob_name }}"
    next: route_by_size

  route_by_size:
    type: conditional
    condition_field: "{{ nodes.validate.output.file_size_mb }}"
    branches:
      - condition: "< 100"
        next: process_light
      - default: true
        next: process_docker

  process_light:
    type: task
    handler: raster_cog
    params:
      source_url: "{{ nodes.validate.output.blob_url }}"
      target_crs: "{{ inputs.target_crs }}"
    next: END

  process_docker:
    type: task
    handler: raster_cog_docker
    queue: container-tasks
    timeout_seconds: 7200
    retry:
      max_attempts: 3
      backoff: exponential
      initial_delay_seconds: 5
      max_delay_seconds: 300
    params:
      source_url: "{{ nodes.validate.output.blob_url }}"
    next: END

  END:
    type: end
"""


@pytest.fixture
async def platform(database: str, pool: Pool, storage: Storage) -> AsyncIterator[EnginePlatform]:
    registry = handlers_of()
    workflow = load_text(WORKFLOW, file="earlier.yaml", handlers=registry.info, queues=TASK_QUEUES)
    new_platform = EnginePlatform(database, pool, WorkflowRegistry([workflow]), registry, storage)
    new_platform.orchestrator()
    new_platform.worker(concurrency=2)
    yield new_platform
    await new_platform.shutdown()


async def test_the_yaml_of_the_documents_runs(platform: EnginePlatform, storage: Storage) -> None:
    sources.put(storage, sources.dem(), "data/dem.tif")
    inputs = {"container_name": sources.CONTAINER, "blob_name": "data/dem.tif"}
    job = await platform.run("earlier_raster", inputs)
    assert job.status is JobStatus.COMPLETED, job.error_message
    (node,) = await platform.rows("SELECT output FROM dagapp.dag_node_states WHERE node_id = 'process_light'")
    cog = ObjectName.parse(node["output"]["blob_url"])
    assert cog.path == f"jobs/{job.job_id}/dem.tif"
    check_cog(storage, cog)
