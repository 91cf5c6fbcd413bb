"""Execution state follows the job, and nothing else can change it."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import psycopg
import pytest

from geomill.domain.assets.asset import BUSINESS_FIELDS, EXECUTION_FIELDS, IDENTITY_FIELDS, Asset
from geomill.domain.states import ClearanceState
from geomill.engine import control
from geomill.engine.maintenance.retention import Retention, RetentionOptions
from geomill.platform import review
from tests.integration.platform.conftest import BOB, REFS


async def until(office, asset_id, true) -> Asset:
    async with asyncio.timeout(15):
        while True:
            asset = await office.asset(asset_id)
            if true(asset):
                return asset
            await asyncio.sleep(0.02)


async def by_trigger(conn, statement: str) -> None:
    """Runs the statement as the triggers do that follow a job."""
    await conn.execute("CREATE TEMPORARY TABLE spring (sprung boolean) ON COMMIT DROP")
    body = f"BEGIN {statement}; RETURN NULL; END"
    await conn.execute(f"CREATE FUNCTION pg_temp.spring() RETURNS trigger LANGUAGE plpgsql AS $${body}$$")
    await conn.execute("CREATE TRIGGER spring AFTER INSERT ON spring FOR EACH ROW EXECUTE FUNCTION pg_temp.spring()")
    await conn.execute("INSERT INTO spring VALUES (true)")


def test_every_field_has_one_owner():
    shared = {"dataset_id", "resource_id", "version_id", "created_at", "updated_at", "revision_opened_at"}
    shared |= {"public_revision"}  # follows from others
    owned = [*EXECUTION_FIELDS, *BUSINESS_FIELDS, *IDENTITY_FIELDS]
    assert len(owned) == len(set(owned))
    assert set(owned) | shared == set(Asset.model_fields)


async def test_a_completed_job_fills_the_asset(office):
    office.engine.orchestrator()
    office.engine.worker()
    asset = await office.published()
    assert asset.processing_status.value == "completed"
    assert (asset.served_revision, asset.job_count, asset.workflow_id) == (1, 1, "publish")
    assert asset.blob_path == "idnlulc/jakarta2024/v10/_r1/out.tif"
    assert (asset.source_file_hash, asset.content_hash) == ("abc123", "abc123")
    assert asset.warnings == ["a little noisy"]
    assert asset.processing_started_at <= asset.processing_completed_at
    [request] = await office.rows("SELECT status, last_error FROM app.platform_requests")
    assert request == {"status": "completed", "last_error": None}


async def test_the_summary_of_nodes_is_that_of_the_end(office):
    """The progress is written once a second. The last state must not wait for a second that never comes."""
    office.engine.orchestrator()
    office.engine.worker()
    asset = await office.published()
    completed = await office.rows("SELECT node_id FROM dagapp.dag_node_states WHERE status = 'completed'")
    assert asset.node_summary["completed"] == len(completed)
    assert (asset.node_summary["fraction"], asset.node_summary["current_node"]) == (1.0, None)


async def test_warnings_of_any_shape_can_be_read_again(office):
    """The workflow's author chooses the outputs. An asset that cannot be read would break every list that it is on."""
    office.engine.orchestrator()
    office.engine.worker()
    asset = await office.published(processing_options={"warnings": ["cloudy", 7, {"band": 3}, None]})
    assert asset.warnings == ["cloudy", "7", '{"band": 3}', "null"]


async def test_a_running_job_tells_how_far_it_is(office, monkeypatch):
    monkeypatch.setattr("geomill.engine.batch.SUMMARY_SECONDS", 0.0)
    office.engine.orchestrator()
    office.engine.worker()
    accepted = await office.submit(processing_options={"pause": 30})
    asset = await until(
        office, accepted.asset.asset_id, lambda current: current.processing_status.value == "processing"
    )
    assert asset.current_job_id == accepted.request.job_id
    asset = await until(office, accepted.asset.asset_id, lambda current: current.node_summary)
    assert asset.node_summary["current_node"] == "wait"
    assert (asset.node_summary["total"], asset.node_summary["failed"]) == (6, 0)
    async with office.engine.pool.connection() as conn:
        await control.cancel(conn, "dag-jobs", accepted.request.job_id, "enough")
    asset = await until(office, accepted.asset.asset_id, lambda current: current.processing_status.value == "failed")
    assert asset.last_error == "enough"


async def test_an_operator_s_retry_of_the_job_shows_on_the_asset(office):
    office.engine.orchestrator()
    office.engine.worker()
    failed = await office.published(processing_options={"fails": True})
    async with office.engine.pool.connection() as conn:
        await control.retry(conn, failed.current_job_id)
    again = await until(
        office, failed.asset_id, lambda current: current.job_count == 2 and current.processing_status.value == "failed"
    )
    assert again.processing_started_at == failed.processing_started_at  # the clock runs from the first attempt
    assert again.node_summary["failed"] == 1


async def test_a_submission_that_cannot_begin_fails_the_asset(office):
    accepted = await office.submit()
    await office.rows(
        "UPDATE dagapp.dag_queue SET body = jsonb_set(body, '{input_params,stranger}', '1') RETURNING sequence"
    )
    office.engine.orchestrator()
    asset = await until(office, accepted.asset.asset_id, lambda current: current.processing_status.value == "failed")
    assert "stranger" in asset.last_error


async def test_a_newer_revision_is_never_overwritten_by_an_older_job(office):
    office.engine.orchestrator()
    office.engine.worker()
    old = await office.submit(processing_options={"pause": 0.3})
    await until(office, old.asset.asset_id, lambda current: current.processing_status.value == "processing")
    new = await office.submit(overwrite=True)
    await office.ended(new.request.job_id)
    job = await office.ended(old.request.job_id)
    assert job.status.value in ("cancelled", "completed")
    asset = await office.asset(old.asset.asset_id)
    assert (asset.revision, asset.served_revision, asset.current_job_id) == (2, 2, new.request.job_id)
    assert "/_r2/" in asset.blob_path
    statuses = await office.rows("SELECT status FROM app.platform_requests ORDER BY revision")
    assert [row["status"] for row in statuses] == ["superseded", "completed"]


async def test_the_old_outputs_are_served_until_the_new_ones_are_there(office):
    office.engine.orchestrator()
    worker = office.engine.worker()
    first = await office.published()
    await office.engine.crash(worker)
    await office.submit(overwrite=True)
    waiting = await office.asset(first.asset_id)
    assert (waiting.revision, waiting.served_revision, waiting.blob_path) == (2, 1, first.blob_path)


@pytest.mark.parametrize(
    "change",
    [
        "processing_status = 'completed'",
        "current_job_id = 'x'",
        "content_hash = 'x'",
        "outputs = '{}'",
        "external_revision = 1",
        "job_count = 7",
    ],
)
async def test_the_platform_cannot_touch_execution_state(office, change):
    await office.submit()
    with pytest.raises(psycopg.Error, match="follows the job") as caught:
        await office.rows(f"UPDATE app.geospatial_assets SET {change} RETURNING asset_id")
    assert caught.value.sqlstate == "GM002"


@pytest.mark.parametrize(
    "change",
    ["approval_state = 'rejected', rejection_reason = 'x'", "deleted_by = 'x', deleted_at = now()", "priority = 1"],
)
async def test_a_job_cannot_touch_what_people_decide(office, change):
    await office.submit()
    async with office.engine.pool.connection() as conn, conn.transaction(force_rollback=True):
        with pytest.raises(psycopg.Error, match="what people decide"):
            await by_trigger(conn, f"UPDATE app.geospatial_assets SET {change}")


async def test_a_trigger_may_write_what_a_session_may_not(office):
    """The two guards ask the same question: who writes, a trigger that follows or a statement of a session."""
    await office.submit()
    async with office.engine.pool.connection() as conn, conn.transaction(force_rollback=True):
        await by_trigger(conn, "UPDATE app.geospatial_assets SET job_count = 7")


async def test_no_setting_makes_a_session_the_writer_of_execution_state(office):
    await office.submit()
    async with office.engine.pool.connection() as conn, conn.transaction(force_rollback=True):
        await conn.execute("SET LOCAL geomill.writer = 'orchestrator'")
        with pytest.raises(psycopg.Error, match="follows the job"):
            await conn.execute("UPDATE app.geospatial_assets SET job_count = 7")


@pytest.mark.parametrize(
    ("statement", "says"),
    [
        ("UPDATE app.geospatial_assets SET platform_refs = '{}' RETURNING 1", "identity never changes"),
        ("UPDATE app.geospatial_assets SET revision = 5 RETURNING 1", "one by one"),
        ("DELETE FROM app.geospatial_assets RETURNING 1", "never deleted"),
        ("UPDATE app.asset_revisions SET revision = 9 RETURNING 1", "only added"),
        ("DELETE FROM app.asset_revisions RETURNING 1", "only added"),
        ("UPDATE app.asset_audit SET actor = 'me' RETURNING 1", "only added"),
        ("DELETE FROM app.asset_audit RETURNING 1", "only added"),
        ("TRUNCATE app.asset_audit", "only added"),
        ("TRUNCATE app.asset_revisions", "only added"),
        ("UPDATE app.platform_requests SET processing_options = '{\"a\": 1}' RETURNING 1", "the order of a request"),
    ],
)
async def test_history_and_identity_cannot_be_rewritten(office, statement, says):
    await office.submit()
    await office.submit(overwrite=True)
    with pytest.raises(psycopg.Error, match=says):
        await office.rows(statement)


async def test_a_job_without_an_asset_costs_nothing_here(office):
    office.engine.orchestrator()
    office.engine.worker()
    job = await office.engine.run("publish", {"container_name": "c", "file_name": "f", "blob_prefix": "p"})
    assert job.status.value == "completed"
    assert REFS
    assert await office.rows("SELECT asset_id FROM app.geospatial_assets") == []


async def test_a_scheduled_look_finds_what_is_stuck(office):
    office.engine.orchestrator()
    office.engine.worker()
    accepted = await office.submit(processing_options={"pause": 30})
    await until(office, accepted.asset.asset_id, lambda current: current.processing_status.value == "processing")
    await asyncio.sleep(0.2)
    job = await office.engine.run("report_stuck_assets", {"seconds": 1})
    assert job.result_data["count"] == 0
    async with office.engine.pool.connection() as conn, conn.transaction():
        late = "UPDATE app.geospatial_assets SET processing_started_at = now() - interval '2 hours'"
        await by_trigger(conn, late)
    job = await office.engine.run("report_stuck_assets")
    assert [stuck["asset_id"] for stuck in job.result_data["assets"]] == [accepted.asset.asset_id]


async def test_details_of_the_job_are_kept_while_the_asset_waits_for_review(office):
    office.engine.orchestrator()
    office.engine.worker()
    asset = await office.published()
    await asyncio.sleep(0.01)
    duty = Retention(office.engine.pool, office.storage, RetentionOptions(details=timedelta(milliseconds=1)))
    assert (await duty.run_once()).jobs == 0
    await office.decide(review.approve, asset.asset_id, ClearanceState.OUO, BOB, None)
    assert (await duty.run_once()).jobs == 1
    asset_after = await office.asset(asset.asset_id)
    assert (asset_after.processing_status.value, asset_after.outputs) == ("completed", asset.outputs)
