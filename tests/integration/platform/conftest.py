from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from geomill.domain.assets.asset import Asset, DataType
from geomill.domain.assets.lifecycle import Actor
from geomill.domain.assets.submission import Submission
from geomill.domain.engine.job import Job
from geomill.domain.engine.starting import Starter
from geomill.domain.objectname import ObjectName, Zone
from geomill.platform import review
from geomill.platform.desk import Desk
from geomill.platform.export import WorkflowExporter
from geomill.platform.submit import Accepted, submit
from geomill.storage import Storage, StorageRecipe
from geomill.store import assets
from geomill.store.pool import Pool
from geomill.workflows.registry import WorkflowRegistry
from tests.integration.engine.platform import EnginePlatform, handlers_of, library, registry_of

PUBLISH = """
    workflow_id: publish
    name: Publish
    started_by: partners
    inputs:
      container_name: {type: string}
      file_name: {type: string}
      blob_prefix: {type: string}
      pause: {type: number, default: 0}
      fails: {type: boolean, default: false}
      files: {type: array, default: []}
      warnings: {type: array, default: ["a little noisy"]}
    nodes:
      START: {type: start, next: wait}
      wait: {type: task, handler: sleep, params: {duration_seconds: "{{ inputs.pause }}"}, next: choose}
      choose:
        type: conditional
        condition_field: "{{ inputs.fails }}"
        branches:
          - {name: bad, condition: "== true", next: bad}
          - {name: good, default: true, next: good}
      bad: {type: task, handler: fail, params: {error_message: "no luck", retryable: false}, next: END}
      good: {type: task, handler: echo, params: {x: 1}, next: END}
      END: {type: end}
    outputs:
      blob_path: "{{ inputs.blob_prefix }}/out.tif"
      source_file_hash: "abc123"
      warnings: "{{ inputs.warnings }}"
      files: "{{ inputs.files }}"
"""
TIFF = b"II*\0" + bytes(range(256))
REFS = {"dataset_id": "IDN_lulc", "resource_id": "jakarta_2024", "version_id": "v1.0"}
ADA, BOB = Actor("ada", "10.0.0.1"), Actor("bob")


def submission_of(**changes: Any) -> Submission:
    fields: dict[str, Any] = {
        "platform_id": "ddh",
        "platform_refs": REFS,
        "data_type": DataType.RASTER,
        "container_name": "uploads",
        "file_names": ["a.tif"],
    }
    return Submission(**{**fields, **changes})


@dataclass
class Office:
    """A front desk with a real engine behind it."""

    engine: EnginePlatform
    desk: Desk
    storage: Storage

    async def submit(
        self, actor: Actor = ADA, *, starter: Starter = Starter.OPERATORS, dry_run: bool = False, **changes: Any
    ) -> Accepted:
        async with self.engine.pool.connection() as conn:
            return await submit(
                conn, self.desk, submission_of(**changes), replace(actor, starter=starter), dry_run=dry_run
            )

    async def published(self, actor: Actor = ADA, **changes: Any) -> Asset:
        """Submit an asset, and wait until its job has ended and the catalogue has followed."""
        accepted = await self.submit(actor, **changes)
        await self.ended(accepted.request.job_id)
        return await self.asset(accepted.asset.asset_id)

    async def ended(self, job_id: str) -> Job:
        job = await self.engine.ended(job_id)
        await self.catalogued()
        return job

    async def catalogued(self) -> None:
        await self.engine.catalogued()

    async def asset(self, asset_id: str) -> Asset:
        async with self.engine.pool.connection() as conn:
            return await assets.get(conn, asset_id)

    async def decide(self, what: Any, *arguments: Any, **named: Any) -> review.ReviewOutcome:
        async with self.engine.pool.connection() as conn:
            return await what(conn, self.desk, *arguments, **named)

    async def rows(self, query: str) -> list[dict[str, Any]]:
        return await self.engine.rows(query)


@pytest.fixture
async def office(database: str, pool: Pool, tmp_path: Path) -> AsyncIterator[Office]:
    registry = handlers_of()
    carried = library()
    workflow_registry = WorkflowRegistry([*registry_of(registry, PUBLISH).all(), *carried.all()])
    storage = Storage(StorageRecipe.in_folder(tmp_path))
    await storage.prepare()
    await storage.put_bytes(ObjectName(Zone.BRONZE, "uploads", "a.tif"), TIFF)
    engine = EnginePlatform(database, pool, workflow_registry, registry, storage=storage)
    desk = Desk(
        workflow_registry,
        "dag-jobs",
        WorkflowExporter(workflow_registry, "dag-jobs"),
        dict.fromkeys(DataType, "publish"),
        storage,
    )
    yield Office(engine, desk, storage)
    await engine.shutdown()
