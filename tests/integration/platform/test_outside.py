"""The external zone holds what was decided last, no matter which orders ran, failed or were overtaken in between."""

from __future__ import annotations

import asyncio

import pytest

from geomill.domain.objectname import ObjectName, Zone
from geomill.domain.states import ClearanceState
from geomill.engine import control
from geomill.errors import AssetState, ConflictError, RevisionChanged
from geomill.platform import review
from tests.integration.platform.conftest import ADA, BOB, TIFF

OUO, PUBLIC = ClearanceState.OUO, ClearanceState.PUBLIC


@pytest.fixture
async def running(office, monkeypatch):
    monkeypatch.setattr("geomill.store.jobs.QUIET_SECONDS", 1.0)
    office.engine.orchestrator()
    office.engine.worker()
    return office


async def published(office, **changes):
    return await office.published(workflow_id="publish_file", **changes)


async def outside(office) -> list[str]:
    return sorted([info.name.path async for info in office.storage.list(Zone.EXTERNAL, "public")])


async def broken_export(office):
    """A public asset whose export has failed."""
    asset = await published(office)
    await office.storage.put_bytes(ObjectName.parse(f"silver/{asset.blob_path}"), b"somebody else's")
    outcome = await office.decide(review.approve, asset.asset_id, PUBLIC, BOB, None)
    assert (await office.ended(outcome.export_job_id)).status.value == "failed"
    return await office.asset(asset.asset_id)


class CopyGate:
    """Holds up copies to the outside, as a large file does."""

    def __init__(self, storage, monkeypatch) -> None:
        self.reached, self.open = asyncio.Event(), asyncio.Event()
        self._copy = storage.copy
        monkeypatch.setattr(storage, "copy", self._gated)

    async def _gated(self, source, target, **more):
        if target.zone is Zone.EXTERNAL:
            self.reached.set()
            await asyncio.shield(self.open.wait())
        return await asyncio.shield(asyncio.ensure_future(self._copy(source, target, **more)))


async def test_a_retry_exports_the_public_revision_and_nothing_that_nobody_has_approved(running):
    asset = await broken_export(running)
    await running.storage.put_bytes(ObjectName.parse(f"silver/{asset.blob_path}"), TIFF)
    await published(running, overwrite=True)
    retried = await running.decide(review.retry_export, asset.asset_id, ADA)
    assert (await running.ended(retried.export_job_id)).status.value == "completed"
    stem = asset.blob_stem
    assert await outside(running) == [f"{stem}/_manifest.json", f"{stem}/_r1/a.tif"]
    assert (await running.asset(asset.asset_id)).external_revision == 1


async def test_what_is_not_public_is_not_exported_by_a_retry(running):
    asset = await broken_export(running)
    await published(running, overwrite=True)
    await running.decide(review.approve, asset.asset_id, OUO, BOB, 2)
    await running.decide(review.unpublish, asset.asset_id, BOB)
    assert await outside(running) == []
    with pytest.raises(AssetState):
        await running.decide(review.retry_export, asset.asset_id, ADA)


async def test_a_retried_export_is_of_the_revision_that_was_seen(running):
    asset = await broken_export(running)
    with pytest.raises(RevisionChanged):
        await running.decide(review.retry_export, asset.asset_id, ADA, 7)


async def test_an_export_that_was_overtaken_is_withdrawn_all_the_same(running, monkeypatch):
    """The asset was overwritten while the export ran. At that time nothing of it was outside yet."""
    gate = CopyGate(running.storage, monkeypatch)
    asset = await published(running)
    exported = await running.decide(review.approve, asset.asset_id, PUBLIC, BOB, None)
    await gate.reached.wait()
    await published(running, overwrite=True)
    outcome = await running.decide(review.approve, asset.asset_id, OUO, BOB, 2)
    assert outcome.export_job_id, "a withdrawal"
    gate.open.set()
    assert (await running.ended(exported.export_job_id)).status.value == "cancelled"
    assert (await running.ended(outcome.export_job_id)).status.value == "completed"
    assert await outside(running) == []


@pytest.mark.slow
async def test_what_a_broken_export_left_is_withdrawn(running):
    asset = await broken_export(running)
    await running.storage.put_bytes(ObjectName(Zone.EXTERNAL, "public", f"{asset.blob_stem}/_r1/b.tif"), TIFF)
    await published(running, overwrite=True)
    outcome = await running.decide(review.unpublish, asset.asset_id, BOB)
    assert (await running.ended(outcome.export_job_id)).status.value == "completed"
    assert await outside(running) == []


async def test_a_withdrawal_waits_for_the_export_that_is_writing(running, monkeypatch):
    gate = CopyGate(running.storage, monkeypatch)
    asset = await published(running)
    await running.decide(review.approve, asset.asset_id, PUBLIC, BOB, None)
    await gate.reached.wait()
    outcome = await running.decide(review.approve, asset.asset_id, OUO, BOB, None)
    await asyncio.sleep(3)  # more than a cancelled task has
    gate.open.set()
    assert (await running.ended(outcome.export_job_id)).status.value == "completed"
    assert await outside(running) == []


async def test_an_export_that_has_not_begun_is_called_off(office):
    orchestrator = office.engine.orchestrator()
    worker = office.engine.worker()
    asset = await published(office)
    await office.engine.crash(orchestrator)
    await office.engine.crash(worker)
    exported = await office.decide(review.approve, asset.asset_id, PUBLIC, BOB, None)
    await office.decide(review.unpublish, asset.asset_id, BOB)
    assert (await office.ended(exported.export_job_id)).status.value == "cancelled"


async def test_nothing_is_withdrawn_twice(running):
    asset = await published(running)
    first = await running.decide(review.approve, asset.asset_id, PUBLIC, BOB, None)
    await running.ended(first.export_job_id)
    second = await running.decide(review.approve, asset.asset_id, OUO, BOB, None)
    await running.ended(second.export_job_id)
    assert (await running.decide(review.unpublish, asset.asset_id, BOB)).export_job_id is None


async def test_an_old_export_cannot_be_run_again_as_a_job(running):
    asset = await broken_export(running)
    async with running.engine.pool.connection() as conn:
        with pytest.raises(ConflictError, match="retry-export"):
            await control.retry(conn, asset.adf_run_id)


async def test_the_files_of_a_workflow_that_says_nothing_of_them_are_not_exported(running):
    asset = await running.published(processing_options={"files": [{"name": "a.tif"}]})
    with pytest.raises(AssetState, match="does not name the place of each file"):
        await running.decide(review.approve, asset.asset_id, PUBLIC, BOB, None)


async def test_data_that_is_to_be_deleted_cannot_be_gone_back_to(running, monkeypatch):
    """The files are deleted later; the decision counts at once."""
    first = await published(running)
    await published(running, overwrite=True)
    gone = await running.decide(review.unpublish, first.asset_id, BOB, delete_data=True)
    back = await running.submit(workflow_id="publish_file")
    with pytest.raises(AssetState, match="was deleted"):
        await running.decide(review.rollback, first.asset_id, 1, BOB)
    assert (await running.ended(gone.delete_job_id)).status.value == "completed"
    assert (back.asset.served_revision, back.asset.outputs, back.asset.blob_path) == (None, None, None)


async def test_data_is_deleted_after_the_job_that_writes_it(running, monkeypatch):
    await published(running)
    reached, opened = asyncio.Event(), asyncio.Event()
    copy = running.storage.copy

    async def slow(source, target, **more):
        reached.set()
        await asyncio.shield(opened.wait())
        return await asyncio.shield(asyncio.ensure_future(copy(source, target, **more)))

    monkeypatch.setattr(running.storage, "copy", slow)
    accepted = await running.submit(workflow_id="publish_file", overwrite=True)
    await reached.wait()
    outcome = await running.decide(review.unpublish, accepted.asset.asset_id, BOB, delete_data=True)
    await running.ended(accepted.request.job_id)
    opened.set()
    assert (await running.ended(outcome.delete_job_id)).status.value == "completed"
    assert [info async for info in running.storage.list(Zone.SILVER, "published")] == []
    [row] = await running.rows("SELECT job_id, after FROM app.asset_audit WHERE decision = 'unpublished'")
    assert (row["job_id"], row["after"]["data_deleted_through"]) == (outcome.delete_job_id, 2)
