"""Decisions: what each makes of an asset, what it starts, and what it leaves in the audit."""

from __future__ import annotations

import asyncio

import pytest

from geomill.domain.objectname import ObjectName, Zone
from geomill.domain.states import ClearanceState
from geomill.errors import AssetState, NotFoundError, RevisionChanged
from geomill.platform import review
from geomill.store import reports
from geomill.store.reports import ReportName
from tests.integration.platform.conftest import ADA, BOB, TIFF

OUO, PUBLIC = ClearanceState.OUO, ClearanceState.PUBLIC


@pytest.fixture
async def running(office):
    office.engine.orchestrator()
    office.engine.worker()
    return office


async def published(office, **changes):
    return await office.published(workflow_id="publish_file", **changes)


async def unexported(office) -> list[tuple[str, str, str]]:
    """Return assets, purposes and jobs of exports that failed and were not repeated."""
    async with office.engine.pool.connection() as conn:
        rows = await reports.read(conn, ReportName.EXPORTS)
    return [(row["asset_id"], row["purpose"], row["job_id"]) for row in rows]


async def outside(office) -> list[str]:
    return sorted([info.name.path async for info in office.storage.list(Zone.EXTERNAL, "public")])


async def states(office, asset_id) -> tuple[int, str, str, bool]:
    asset = await office.asset(asset_id)
    return asset.revision, asset.approval_state.value, asset.clearance_state.value, asset.active


async def test_a_whole_life(running):
    office = running
    asset = await published(office)
    assert (asset.processing_status.value, asset.blob_path) == (
        "completed",
        "published/idnlulc/jakarta2024/v10/_r1/a.tif",
    )

    await office.decide(review.approve, asset.asset_id, OUO, BOB, 1)
    assert await states(office, asset.asset_id) == (1, "approved", "ouo", True)
    assert await outside(office) == []

    outcome = await office.decide(review.approve, asset.asset_id, PUBLIC, BOB, 1)
    assert (await office.ended(outcome.export_job_id)).status.value == "completed"
    public = await office.asset(asset.asset_id)
    assert (public.adf_run_id, public.external_revision, public.made_public_by) == (outcome.export_job_id, 1, "bob")
    stem = asset.blob_stem
    assert await outside(office) == [f"{stem}/_manifest.json", f"{stem}/_r1/a.tif"]
    copy = await office.storage.read(ObjectName(Zone.EXTERNAL, "public", f"{stem}/_r1/a.tif"))
    assert copy == TIFF

    await office.storage.put_bytes(ObjectName(Zone.BRONZE, "uploads", "a.tif"), TIFF + b"2")
    second = await published(office, overwrite=True)
    assert await states(office, asset.asset_id) == (2, "pending_review", "uncleared", True)
    assert second.external_revision == 1
    assert await outside(office) == [f"{stem}/_manifest.json", f"{stem}/_r1/a.tif"], "the old copy stays"

    outcome = await office.decide(review.approve, asset.asset_id, PUBLIC, BOB, 2)
    await office.ended(outcome.export_job_id)
    assert await outside(office) == [f"{stem}/_manifest.json", f"{stem}/_r2/a.tif"]

    rolled = await office.decide(review.rollback, asset.asset_id, 1, BOB, reason="clouds")
    assert await states(office, asset.asset_id) == (3, "pending_review", "uncleared", True)
    assert (rolled.asset.blob_path, rolled.asset.served_revision) == (asset.blob_path, 3)
    assert rolled.asset.content_hash == asset.content_hash != second.content_hash
    outcome = await office.decide(review.approve, asset.asset_id, PUBLIC, BOB, 3)
    await office.ended(outcome.export_job_id)
    assert await outside(office) == [f"{stem}/_manifest.json", f"{stem}/_r3/a.tif"]
    assert await office.storage.read(ObjectName(Zone.EXTERNAL, "public", f"{stem}/_r3/a.tif")) == TIFF

    outcome = await office.decide(review.unpublish, asset.asset_id, BOB, delete_data=True)
    await office.ended(outcome.export_job_id)
    await office.ended(outcome.delete_job_id)
    gone = await office.asset(asset.asset_id)
    assert (gone.active, gone.external_revision, gone.data_deleted_through) == (False, None, 3)
    assert await outside(office) == []
    assert [info async for info in office.storage.list(Zone.SILVER, "published")] == []

    back = await published(office)
    assert (back.revision, back.approval_state.value, back.active) == (4, "pending_review", True)
    decisions = await office.rows("SELECT decision, actor FROM app.asset_audit ORDER BY audit_id")
    assert [row["decision"] for row in decisions] == [
        "submitted",
        "approved",
        "clearance_changed",
        "overwritten",
        "approved",
        "rolled_back",
        "approved",
        "unpublished",
        "reactivated",
    ]
    revisions = await office.rows("SELECT revision FROM app.asset_revisions ORDER BY revision")
    assert [row["revision"] for row in revisions] == [1, 2, 3]


@pytest.mark.slow
async def test_a_downgrade_warns_and_withdraws(running):
    asset = await published(running)
    exported = await running.decide(review.approve, asset.asset_id, PUBLIC, BOB, None)
    outcome = await running.decide(review.approve, asset.asset_id, OUO, BOB, None)
    assert "hidden" in outcome.warnings[0]
    export = await running.ended(exported.export_job_id)
    overtaken = "another decision" in (export.error_message or "")
    assert overtaken or export.status.value in ("cancelled", "completed")
    assert (await running.ended(outcome.export_job_id)).status.value == "completed"
    assert await outside(running) == []
    after = await running.asset(asset.asset_id)
    assert (after.clearance_state, after.external_revision, after.adf_run_id) == (OUO, None, outcome.export_job_id)


async def test_a_revoked_asset_leaves_every_service(running):
    asset = await published(running)
    exported = await running.decide(review.approve, asset.asset_id, PUBLIC, BOB, None)
    await running.ended(exported.export_job_id)
    outcome = await running.decide(review.revoke, asset.asset_id, "wrong data", BOB, None)
    await running.ended(outcome.export_job_id)
    assert await states(running, asset.asset_id) == (1, "rejected", "uncleared", False)
    assert await outside(running) == []


async def test_rejected_data_needs_an_overwrite(running):
    asset = await published(running)
    await running.decide(review.reject, asset.asset_id, "holes", BOB, None)
    with pytest.raises(AssetState, match="overwrite=true"):
        await running.decide(review.approve, asset.asset_id, OUO, BOB, None)
    again = await published(running, overwrite=True)
    assert (again.approval_state.value, again.rejection_reason) == ("pending_review", None)


async def test_nothing_is_approved_before_it_is_complete(office):
    accepted = await office.submit()
    with pytest.raises(AssetState, match="cannot be approved"):
        await office.decide(review.approve, accepted.asset.asset_id, OUO, BOB, None)


async def test_nobody_approves_what_they_did_not_see(running):
    asset = await published(running)
    await published(running, overwrite=True)
    with pytest.raises(RevisionChanged, match="revision 2, not at 1"):
        await running.decide(review.approve, asset.asset_id, OUO, BOB, 1)


async def test_an_id_of_an_earlier_revision_approves_nothing(running):
    """A reviewer of the first request has not seen the data of the second."""
    first = await published(running)
    await published(running, overwrite=True)
    for identifier in (first.last_request_id, first.current_job_id):
        for decide in (
            running.decide(review.approve, identifier, OUO, BOB, None),
            running.decide(review.reject, identifier, "no", BOB, None),
        ):
            with pytest.raises(RevisionChanged, match="earlier revision"):
                await decide
    assert await states(running, first.asset_id) == (2, "pending_review", "uncleared", True)


async def test_a_rollback_supersedes_what_runs(running):
    first = await published(running)
    second = await running.submit(overwrite=True, processing_options={"pause": 30})
    await running.engine.until(second.request.job_id, lambda job: job is not None)
    await running.decide(review.rollback, first.asset_id, 1, BOB)
    await running.ended(second.request.job_id)
    statuses = await running.rows("SELECT status FROM app.platform_requests ORDER BY revision")
    assert [row["status"] for row in statuses] == ["completed", "superseded"]
    outcome = await running.decide(review.approve, first.last_request_id, OUO, BOB, 3)
    assert outcome.asset.approval_state.value == "approved", "the old request is the current one again"


async def test_of_two_reviewers_at_once_the_second_sees_the_first(running):
    asset = await published(running)
    approve = running.decide(review.approve, asset.asset_id, OUO, BOB, 1)
    reject = running.decide(review.reject, asset.asset_id, "no", ADA, 1)
    answers = await asyncio.gather(approve, reject, return_exceptions=True)
    refused = [answer for answer in answers if isinstance(answer, Exception)]
    assert len(refused) == 1
    assert isinstance(refused[0], AssetState)
    assert len(await running.rows("SELECT FROM app.asset_audit")) == 2


async def test_any_of_the_three_ids_will_do(running):
    asset = await published(running)
    for identifier in (asset.current_job_id, asset.last_request_id, asset.asset_id):
        outcome = await running.decide(review.approve, identifier, OUO, BOB, None)
        assert outcome.asset.asset_id == asset.asset_id
    with pytest.raises(NotFoundError):
        await running.decide(review.approve, "nobody", OUO, BOB, None)


async def test_a_dry_run_of_unpublish_changes_nothing(running):
    asset = await published(running)
    outcome = await running.decide(review.unpublish, asset.asset_id, BOB, delete_data=True, dry_run=True)
    assert not outcome.asset.active
    assert outcome.would == {"outside": None, "cancels": [], "deletes_revisions": 1}
    assert (outcome.export_job_id, outcome.delete_job_id) == (None, None)
    assert await states(running, asset.asset_id) == (1, "pending_review", "uncleared", True)
    assert await running.rows("SELECT FROM dagapp.dag_queue") == []


async def test_unpublishing_stops_the_work(running):
    accepted = await running.submit(processing_options={"pause": 30})
    await running.engine.until(accepted.request.job_id, lambda job: job is not None)
    await running.decide(review.unpublish, accepted.asset.asset_id, BOB)
    assert (await running.ended(accepted.request.job_id)).status.value == "cancelled"


@pytest.mark.parametrize(("revision", "says"), [(1, "is the current one"), (7, "no revision 7")])
async def test_a_rollback_needs_an_earlier_revision(running, revision, says):
    asset = await published(running)
    with pytest.raises(AssetState, match=says):
        await running.decide(review.rollback, asset.asset_id, revision, BOB)


async def test_a_rollback_to_what_never_completed_is_refused(running):
    first = await running.published(processing_options={"fails": True})
    await published(running, overwrite=True)
    with pytest.raises(AssetState, match="never completed"):
        await running.decide(review.rollback, first.asset_id, 1, BOB)


async def test_a_failed_export_is_visible_and_is_started_again(running, monkeypatch):
    monkeypatch.setattr("geomill.store.jobs.QUIET_SECONDS", 0.0)
    asset = await published(running)
    name = ObjectName.parse(f"silver/{asset.blob_path}")
    await running.storage.put_bytes(name, b"somebody else's")
    outcome = await running.decide(review.approve, asset.asset_id, PUBLIC, BOB, None)
    job = await running.ended(outcome.export_job_id)
    assert job.status.value == "failed"
    assert "differs from the published file" in job.error_message
    assert await outside(running) == [], "other bytes never stay outside"
    assert await unexported(running) == [(asset.asset_id, "export", outcome.export_job_id)]
    assert (await running.asset(asset.asset_id)).external_revision is None
    await running.storage.put_bytes(name, TIFF)
    again = await running.decide(review.retry_export, asset.asset_id, ADA)
    assert (await running.ended(again.export_job_id)).status.value == "completed"
    assert (await running.asset(asset.asset_id)).external_revision == 1
    assert await unexported(running) == []
