"""One submission, one transaction: asset, request, message, audit."""

from __future__ import annotations

import asyncio

import pytest

from geomill.domain.assets import naming
from geomill.domain.assets.lifecycle import Operation
from geomill.domain.engine.message import JobQueueMessage
from geomill.domain.engine.starting import Starter
from geomill.domain.objectname import ObjectName, Zone
from geomill.errors import (
    AssetExists,
    ConflictError,
    Forbidden,
    InputError,
    InputsError,
    NotFoundError,
    PlatformInactive,
)
from geomill.platform.retrying import retry
from geomill.store import platforms
from tests.integration.platform.conftest import ADA, BOB, REFS

TABLES = ("geospatial_assets", "platform_requests", "asset_audit", "asset_revisions", "asset_collections")


async def counts(office) -> dict[str, int]:
    row_counts = {table: (await office.rows(f"SELECT count(*) FROM app.{table}"))[0]["count"] for table in TABLES}
    return {**row_counts, "messages": (await office.rows("SELECT count(*) FROM dagapp.dag_queue"))[0]["count"]}


async def test_a_new_identity_makes_an_asset_a_request_and_a_message(office):
    accepted = await office.submit()
    assert accepted.operation is Operation.CREATED
    asset = await office.asset(accepted.asset.asset_id)
    assert (asset.revision, asset.processing_status.value, asset.approval_state.value) == (
        1,
        "pending",
        "pending_review",
    )
    assert asset.last_request_id == accepted.request.request_id
    assert asset.dataset_id == "IDN_lulc"
    assert asset.stac_item_id == "idn-lulc-jakarta-2024-v10"
    assert asset.stac_collection_id == "idn_lulc"
    assert await counts(office) == dict(zip((*TABLES, "messages"), (1, 1, 1, 0, 1, 1), strict=True))


async def test_the_work_is_its_platforms_and_normal_is_everybodys_normal(office):
    """An export or an operator's job has the same priority, so that it takes turns with submissions."""
    await office.submit()
    [message] = await office.rows("SELECT tenant, priority, body ->> 'tenant' AS told FROM dagapp.dag_queue")
    assert message == {"tenant": "ddh", "priority": 0, "told": "ddh"}
    assert JobQueueMessage(workflow_id="w").priority == message["priority"]


async def test_above_normal_is_refused_unless_the_caller_may_hurry(office):
    with pytest.raises(Forbidden, match="the priority 4 is above normal"):
        await office.submit(priority=4, starter=Starter.PARTNERS)
    assert (await counts(office))["messages"] == 0


async def test_the_same_identity_again_is_refused_with_the_remedy_and_leaves_nothing(office):
    await office.submit()
    before = await counts(office)
    with pytest.raises(AssetExists, match="overwrite=true"):
        await office.submit()
    assert await counts(office) == before


async def test_an_overwrite_before_any_job_ran_logs_the_revision(office):
    first = await office.submit()
    second = await office.submit(overwrite=True)
    assert (second.operation, second.asset.revision) == (Operation.UPDATED, 2)
    [log] = await office.rows("SELECT revision, job_id, outputs FROM app.asset_revisions")
    assert log == {"revision": 1, "job_id": None, "outputs": None}
    [old] = await office.rows(
        f"SELECT status FROM app.platform_requests WHERE request_id = '{first.request.request_id}'"
    )
    assert old["status"] == "superseded"
    [job] = await office.rows("SELECT job_id, status FROM dagapp.dag_jobs")
    assert job == {"job_id": first.request.job_id, "status": "cancelled"}


async def test_many_at_once_of_one_identity_make_one_asset(office):
    answers = await asyncio.gather(*(office.submit() for _ in range(12)), return_exceptions=True)
    assert sum(not isinstance(answer, Exception) for answer in answers) == 1
    assert all(isinstance(answer, AssetExists) for answer in answers if isinstance(answer, Exception))
    assert (await counts(office))["messages"] == 1


async def test_many_overwrites_at_once_number_their_revisions(office):
    await office.submit()
    answers = await asyncio.gather(*(office.submit(overwrite=True) for _ in range(10)))
    assert sorted(answer.asset.revision for answer in answers) == list(range(2, 12))
    logged = await office.rows("SELECT revision FROM app.asset_revisions ORDER BY revision")
    assert [row["revision"] for row in logged] == list(range(1, 11))
    open_requests = await office.rows("SELECT revision FROM app.platform_requests WHERE status = 'accepted'")
    assert [row["revision"] for row in open_requests] == [11]


async def test_many_identities_at_once_do_not_wait_for_each_other(office):
    refs = [{**REFS, "resource_id": f"r{number}"} for number in range(20)]
    answers = await asyncio.gather(*(office.submit(platform_refs=identity) for identity in refs))
    assert len({answer.asset.asset_id for answer in answers}) == 20
    assert {answer.asset.stac_collection_id for answer in answers} == {"idn_lulc"}


async def test_a_repeated_order_needs_its_source_no_more(office):
    first = await office.submit(idempotency_key="k")
    await office.storage.delete(ObjectName(Zone.BRONZE, "uploads", "a.tif"))
    again = await office.submit(idempotency_key="k")
    assert (again.operation, again.request.request_id) == (None, first.request.request_id)


async def test_one_key_for_many_identities_at_once_is_one_order(office):
    refs = [{**REFS, "resource_id": f"r{number}"} for number in range(6)]
    answers = await asyncio.gather(
        *(office.submit(platform_refs=identity, idempotency_key="k") for identity in refs), return_exceptions=True
    )
    refused = [answer for answer in answers if isinstance(answer, Exception)]
    assert len(refused) == 5
    assert {type(answer) for answer in refused} == {ConflictError}
    assert (await counts(office))["geospatial_assets"] == 1


@pytest.mark.parametrize("value", ['"' * 200, "\\" * 200, "é" * 200, "漢" * 200, "…"])
async def test_any_identifier_that_is_allowed_can_be_stored(office, value):
    accepted = await office.submit(platform_refs=dict.fromkeys(REFS, value))
    assert (await office.asset(accepted.asset.asset_id)).platform_refs == dict.fromkeys(REFS, value)


async def test_nobody_can_take_the_names_of_another(office):
    """The names that an asset falls back to are made of its identity, which anybody can compute."""
    identity = naming.asset_id("ddh", REFS)
    plain = {"dataset_id": "IDN_lulc", "resource_id": "jakarta_2024", "version_id": "v10"}
    await office.submit(platform_refs=plain)
    for suffix in (identity[:8], identity):
        for separator in ("--", "__"):
            await office.submit(platform_refs={**plain, "version_id": f"v10{separator}{suffix}"})
            await office.submit(platform_refs={**plain, "version_id": f"v1.0{separator}{suffix}"})
    accepted = await office.submit()
    assert accepted.asset.asset_id == identity


@pytest.mark.parametrize(
    "other",
    [
        {"dataset_id": "IDN-lulc", "resource_id": "jakarta-2024", "version_id": "v1-0"},
        {"dataset_id": "idn_lulc", "resource_id": "jakarta_2024", "version_id": "v10"},
        {"dataset_id": "IDN", "resource_id": "lulc_jakarta_2024", "version_id": "v1.0"},
    ],
)
async def test_identities_that_look_alike_share_no_name(office, other):
    first, second = await office.submit(), await office.submit(platform_refs=other)
    for name in ("table_stem", "blob_stem", "stac_item_id"):
        assert getattr(first.asset, name) != getattr(second.asset, name)
    assert first.asset.stac_collection_id != second.asset.stac_collection_id


async def test_lookalikes_at_once_share_no_name(office):
    spellings = ["A b", "a b", "A_b", "a_b", "A-b", "a-B", "a.b!", "ab"]
    refs = [{**REFS, "dataset_id": spelling} for spelling in spellings]
    answers = await asyncio.gather(*(office.submit(platform_refs=identity) for identity in refs))
    for name in ("table_stem", "blob_stem", "stac_item_id", "stac_collection_id"):
        assert len({getattr(answer.asset, name) for answer in answers}) == len(spellings), name


async def test_another_platform_needs_nothing_of_ddh(office):
    accepted = await office.submit(platform_id="arcgis", platform_refs={"item_id": "f00", "layer_index": 0})
    asset = await office.asset(accepted.asset.asset_id)
    assert (asset.dataset_id, asset.platform_refs) == (None, {"item_id": "f00", "layer_index": 0})
    assert asset.stac_item_id == "f00-0"


async def test_a_dry_run_tells_and_keeps_nothing(office):
    accepted = await office.submit(dry_run=True)
    assert accepted.operation is Operation.CREATED
    assert accepted.message.input_params["blob_prefix"] == "idnlulc/jakarta2024/v10/_r1"
    assert set((await counts(office)).values()) == {0}


async def test_an_idempotency_key_gives_the_same_request(office):
    first = await office.submit(idempotency_key="k")
    again = await office.submit(idempotency_key="k")
    assert (again.request.request_id, again.operation) == (first.request.request_id, None)
    with pytest.raises(ConflictError, match="another key"):
        await office.submit(idempotency_key="k", platform_refs={**REFS, "version_id": "v2"})


@pytest.mark.parametrize(
    ("changes", "error", "says"),
    [
        ({"platform_id": "dhd"}, NotFoundError, "did you mean 'ddh'"),
        ({"platform_refs": {"dataset_id": "a"}}, InputError, "resource_id"),
        ({"platform_refs": {**REFS, "resourceid": "x"}}, InputError, "resource_id"),
        ({"platform_refs": {**REFS, "version_id": "a\nb"}}, InputError, "control characters"),
        ({"workflow_id": "publsh"}, NotFoundError, "publish"),
        ({"processing_options": {"paus": 1}}, InputError, "pause"),
        ({"processing_options": {"blob_prefix": "x"}}, InputError, "set by geomill"),
        ({"file_names": ["a.tif", "a.tif"]}, InputError, "one file"),
        ({"callback_url": "ftp://x"}, InputError, "http"),
    ],
)
async def test_bad_input_is_told_and_leaves_nothing(office, changes, error, says):
    with pytest.raises(error, match=says):
        await office.submit(**changes)
    assert set((await counts(office)).values()) == {0}


async def test_an_inactive_platform_takes_nothing(office):
    async with office.engine.pool.connection() as conn:
        changed = (await platforms.get(conn, "ddh")).evolve(is_active=False)
        await platforms.update(conn, changed.model_dump())
    with pytest.raises(PlatformInactive):
        await office.submit()


async def test_a_retry_is_the_same_request_with_a_new_job(office):
    office.engine.orchestrator()
    office.engine.worker()
    failed = await office.published(processing_options={"fails": True})
    assert failed.processing_status.value == "failed"
    assert "no luck" in failed.last_error
    async with office.engine.pool.connection() as conn:
        again = await retry(conn, office.desk, failed.asset_id, BOB)
    assert again.request.request_id == failed.last_request_id
    assert again.request.retry_count == 1
    assert again.asset.processing_status.value == "pending"
    await office.ended(again.request.job_id)
    after = await office.asset(failed.asset_id)
    assert (after.processing_status.value, after.job_count, after.revision) == ("failed", 2, 1)
    assert after.current_job_id == again.request.job_id


async def test_a_retry_with_other_options_is_a_new_request_for_the_same_revision(office):
    office.engine.orchestrator()
    office.engine.worker()
    failed = await office.published(processing_options={"fails": True}, idempotency_key="k")
    async with office.engine.pool.connection() as conn:
        again = await retry(conn, office.desk, failed.asset_id, BOB, None, {"fails": False})
    assert again.request.request_id != failed.last_request_id
    assert (again.request.processing_options, again.request.submitted_by) == ({"fails": False}, "bob")
    await office.ended(again.request.job_id)
    after = await office.asset(failed.asset_id)
    assert (after.processing_status.value, after.revision, after.served_revision) == ("completed", 1, 1)
    rows = await office.rows("SELECT status, processing_options FROM app.platform_requests ORDER BY created_at")
    assert [(row["status"], row["processing_options"]) for row in rows] == [
        ("superseded", {"fails": True}),
        ("completed", {"fails": False}),
    ]
    [reason] = await office.rows("SELECT reason FROM app.asset_audit WHERE decision = 'retried'")
    assert reason["reason"] == "with other options: fails"
    repeated = await office.submit(processing_options={"fails": True}, idempotency_key="k")
    assert (repeated.operation, repeated.request.request_id) == (None, failed.last_request_id)


@pytest.mark.parametrize("options", [{"fails": "perhaps"}, {"unknown": 1}, {"file_name": "../other"}])
async def test_a_retry_with_wrong_options_changes_nothing(office, options):
    office.engine.orchestrator()
    office.engine.worker()
    failed = await office.published(processing_options={"fails": True})
    async with office.engine.pool.connection() as conn:
        with pytest.raises(InputsError):
            await retry(conn, office.desk, failed.asset_id, BOB, None, options)
    assert (await office.asset(failed.asset_id)).processing_status.value == "failed"
    rows = await office.rows("SELECT status FROM app.platform_requests")
    assert [row["status"] for row in rows] == ["failed"]


async def test_a_retry_takes_an_option_back(office):
    office.engine.orchestrator()
    office.engine.worker()
    failed = await office.published(processing_options={"fails": True})
    async with office.engine.pool.connection() as conn:
        again = await retry(conn, office.desk, failed.asset_id, BOB, None, {"fails": None})
    assert again.request.processing_options == {}


async def test_metadata_belongs_to_the_revision(office):
    office.engine.orchestrator()
    office.engine.worker()
    first = await office.published(metadata={"title": "First"}, idempotency_key="k")
    assert first.outputs["dataset_metadata"] == {"title": "First"}
    with pytest.raises(ConflictError):
        await office.submit(metadata={"title": "Another"}, idempotency_key="k")
    second = await office.published(overwrite=True)
    assert "dataset_metadata" not in second.outputs
    [old] = await office.rows("SELECT outputs FROM app.asset_revisions")
    assert old["outputs"]["dataset_metadata"] == {"title": "First"}


async def test_collections_that_differ_only_by_case_are_told(office):
    first = await office.submit(platform_refs={**REFS, "dataset_id": "Elevación"})
    assert (first.asset.stac_collection_id, first.asset.table_stem[:9]) == ("elevacion", "elevacion")
    assert first.warnings == []
    second = await office.submit(platform_refs={**REFS, "dataset_id": "elevacion"})
    assert second.asset.stac_collection_id.startswith("elevacion--")
    [warning] = second.warnings
    assert "'elevacion' belongs to another dataset_id that differs only by case, accents" in warning


async def test_who_submits_is_in_the_audit(office):
    await office.submit(ADA)
    [row] = await office.rows("SELECT actor, client_address, decision, before, after FROM app.asset_audit")
    assert (row["actor"], row["client_address"], row["decision"], row["before"]) == ("ada", "10.0.0.1", "submitted", {})
    assert row["after"]["revision"] == 1
