"""Jobs that export, withdraw or delete touch what belongs to their asset, and only while they are its current order."""

from __future__ import annotations

from typing import Any

import pytest

from geomill.domain.assets.asset import DataType
from geomill.domain.engine.job import JobPurpose
from geomill.domain.objectname import ObjectName, Zone
from geomill.domain.states import ClearanceState
from geomill.errors import AssetState
from geomill.platform import review
from geomill.sdk.result import HandlerError
from geomill.store.orders import Orders
from geomill.workflows.registry import WorkflowRegistry
from tests.integration.engine.platform import registry_of
from tests.integration.platform.conftest import BOB, REFS, TIFF

PUBLIC = ClearanceState.PUBLIC
HANDLERS = {
    "blob.delete_data": {},
    "blob.withdraw": {},
    "blob.write_manifest": {},
    "blob.export_file": {"first": 0, "count": 1},
    "assets.plan_export": {},
    "assets.publish_outside": {},
    "assets.withdraw_outside": {},
    "assets.drop_tables": {},
}


def misuse(handler: str, more: dict[str, Any]) -> str:
    """A workflow of an operator who names somebody's asset."""
    params = "".join(f", {name}: {value}" for name, value in more.items())
    return f"""
    workflow_id: misuse
    name: Misuse
    inputs: {{asset_id: {{type: string}}}}
    nodes:
      START: {{type: start, next: act}}
      act: {{type: task, handler: {handler}, params: {{asset_id: "{{{{ inputs.asset_id }}}}"{params}}}, next: END}}
      END: {{type: end}}
    """


async def everything(office: Any) -> dict[str, bytes]:
    """Names and contents in silver and outside."""
    places = ((Zone.SILVER, "published"), (Zone.EXTERNAL, "public"))
    names = [info.name for zone, container in places async for info in office.storage.list(zone, container)]
    return {str(name): await office.storage.read(name) for name in names}


@pytest.fixture
async def running(office: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr("geomill.store.jobs.QUIET_SECONDS", 1.0)
    office.engine.orchestrator()
    office.engine.worker()
    return office


async def exported(office: Any) -> Any:
    asset = await office.published(workflow_id="publish_file")
    outcome = await office.decide(review.approve, asset.asset_id, PUBLIC, BOB, None)
    assert (await office.ended(outcome.export_job_id)).status.value == "completed"
    return await office.asset(asset.asset_id)


@pytest.mark.parametrize("handler", HANDLERS)
async def test_a_job_without_an_order_touches_nothing(office: Any, handler: str) -> None:
    engine = office.engine
    text = misuse(handler, HANDLERS[handler])
    engine.workflow_registry = WorkflowRegistry(
        [*engine.workflow_registry.all(), *registry_of(engine.registry, text).all()]
    )
    engine.orchestrator()
    engine.worker()
    asset = await exported(office)
    before = await everything(office)
    job = await engine.run("misuse", {"asset_id": asset.asset_id})
    assert job.status.value == "failed"
    assert "another decision was made since" in job.error_message
    assert await everything(office) == before


async def test_an_order_counts_until_the_next_decision(running: Any) -> None:
    asset = await exported(running)
    orders = Orders(running.engine.pool)
    order = await orders.current(asset.asset_id, asset.adf_run_id, JobPurpose.EXPORT)
    assert (order.revision, order.blob_stem) == (1, asset.blob_stem)
    for purpose in (JobPurpose.DELETE, JobPurpose.PROCESS):
        with pytest.raises(HandlerError, match="another decision was made since"):
            await orders.current(asset.asset_id, asset.adf_run_id, purpose)
    outcome = await running.decide(review.approve, asset.asset_id, ClearanceState.OUO, BOB, None)
    with pytest.raises(HandlerError, match=f"may not export the asset {asset.asset_id}"):
        await orders.current(asset.asset_id, asset.adf_run_id, JobPurpose.EXPORT)
    assert (await running.ended(outcome.export_job_id)).status.value == "completed"


async def test_a_copy_that_fails_leaves_the_target_as_it_was_and_nothing_beside_it(running: Any) -> None:
    asset = await running.published(workflow_id="publish_file")
    target = ObjectName(Zone.EXTERNAL, "public", f"{asset.blob_stem}/_r1/a.tif")
    await running.storage.put_bytes(target, b"what was there")
    await running.storage.put_bytes(ObjectName.parse(f"silver/{asset.blob_path}"), b"other bytes")
    outcome = await running.decide(review.approve, asset.asset_id, PUBLIC, BOB, None)
    job = await running.ended(outcome.export_job_id)
    assert (job.status.value, "differs from the published file" in job.error_message) == ("failed", True)
    outside = [info.name async for info in running.storage.list(Zone.EXTERNAL, "public")]
    assert outside == [target]
    assert await running.storage.read(target) == b"what was there"


@pytest.mark.parametrize(
    "file",
    [
        {"zone": "silver", "container": "published", "path": "somebody/else/_r1/a.tif"},
        {"zone": "bronze", "container": "uploads", "path": "a.tif"},
        {"zone": "silver", "container": "published", "path": "idnlulc/jakarta2024/v10"},
    ],
)
async def test_an_inventory_that_names_the_files_of_others_is_not_exported(running: Any, file: dict[str, Any]) -> None:
    asset = await running.published(processing_options={"files": [{**file, "sha256": "0" * 64, "size": 1}]})
    with pytest.raises(AssetState, match="does not belong to the asset"):
        await running.decide(review.approve, asset.asset_id, PUBLIC, BOB, None)
    assert (await running.asset(asset.asset_id)).public_revision is None


async def test_deleting_takes_the_tables_and_folders_of_the_asset_and_no_others(running: Any) -> None:
    source = b'{"type": "FeatureCollection", "features": []}'
    await running.storage.put_bytes(ObjectName(Zone.BRONZE, "uploads", "a.geojson"), source)
    vector = {"data_type": DataType.VECTOR, "file_names": ["a.geojson"]}
    asset = await running.published(workflow_id="publish_file", **vector)
    stem = asset.table_stem
    own_tables = [f"{stem}_r1", f"{stem}_r1_points"]
    others = [f"{stem}_r2", f"{stem}_r1_r1", f"{stem}_too_r1", f"{stem}_r1_points_r1"]
    async with running.engine.pool.connection() as conn:
        await conn.execute("CREATE SCHEMA IF NOT EXISTS geo")
        for name in (*own_tables, *others):
            await conn.execute(f'CREATE TABLE geo."{name}" (a integer)')
    neighbour = ObjectName(Zone.SILVER, "published", f"{asset.blob_stem}2/_r1/a.tif")
    await running.storage.put_bytes(neighbour, TIFF)
    outcome = await running.decide(review.unpublish, asset.asset_id, BOB, delete_data=True)
    job = await running.ended(outcome.delete_job_id)
    assert (job.status.value, job.result_data["dropped"], job.result_data["removed"]) == ("completed", own_tables, 1)
    tables = await running.rows("SELECT tablename FROM pg_tables WHERE schemaname = 'geo' ORDER BY 1")
    assert [row["tablename"] for row in tables] == sorted(others)
    assert list(await everything(running)) == [str(neighbour)]


async def test_refs_stay_a_partners_own(running: Any) -> None:
    """Names follow from the identifiers, which cannot be chosen so that they become another asset's."""
    first = await running.published(workflow_id="publish_file")
    second = await running.published(
        workflow_id="publish_file", platform_refs={**REFS, "version_id": f"{REFS['version_id']}/_r1"}
    )
    assert not second.blob_stem.startswith(f"{first.blob_stem}/")
