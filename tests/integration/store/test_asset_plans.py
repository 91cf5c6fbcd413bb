"""However many assets there are: every question about them is answered through an index."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from geomill.domain.assets.asset import DataType
from geomill.domain.states import ApprovalState, ClearanceState, ProcessingStatus
from geomill.sql import queries
from geomill.store import assets
from geomill.store.assets import AssetFilter
from geomill.store.pool import Connection, Pool
from geomill.store.reports import ReportName

ROWS = 20_000
FILL_ASSETS = """
INSERT INTO app.geospatial_assets (
    asset_id, platform_id, platform_refs, data_type, table_stem, blob_stem, stac_item_id, stac_collection_id,
    workflow_id, approval_state, rejection_reason, processing_status, last_request_id, processing_started_at,
    created_at, outputs
)
SELECT md5(n::text), CASE WHEN n %% 50 = 0 THEN 'arcgis' ELSE 'ddh' END,
       jsonb_build_object('dataset_id', 'set' || n / 100, 'resource_id', 'r' || n %% 100),
       'raster', 't' || n, 'b' || n, 'i' || n, 'c' || n / 100, 'w' || n %% 40,
       CASE WHEN n %% 90 = 0 THEN 'rejected' ELSE 'pending_review' END::app.approval_state, 'x',
       (ARRAY['failed', 'processing', 'completed'])[least(n %% 100 + 1, 3)]::app.processing_status,
       md5('r' || n), now(), now() - n * interval '1 second',
       jsonb_build_object('dataset_metadata', jsonb_build_object('title', 'The title of ' || n))
FROM generate_series(1, %s) AS n
"""
FILL_REQUESTS = """
INSERT INTO app.platform_requests (
    request_id, asset_id, revision, platform_id, platform_refs, data_type, container_name, workflow_id, submitted_by,
    job_id, status, idempotency_key
)
SELECT md5('r' || n), md5(n::text), 1, 'ddh', '{}', 'raster', 'c', 'w', 'me', 'j' || n, 'completed', 'k' || n
FROM generate_series(1, %s) AS n
"""
PAGES = {
    "everything": AssetFilter(),
    "unpublished too": AssetFilter(deleted=True),
    "platform": AssetFilter(platform_id="arcgis"),
    "containment": AssetFilter(refs={"dataset_id": "set77"}),
    "containment in a platform": AssetFilter(platform_id="ddh", refs={"dataset_id": "set77", "resource_id": "r5"}),
    "nothing contains it": AssetFilter(refs={"dataset_id": "nobody"}),
    "text": AssetFilter(text="Set77"),
    "rare text": AssetFilter(text="nobody has this"),
    "title": AssetFilter(text="Title of 77"),
    "failed": AssetFilter(processing_status=ProcessingStatus.FAILED),
    "rejected": AssetFilter(approval_state=ApprovalState.REJECTED),
    "public": AssetFilter(clearance_state=ClearanceState.PUBLIC),
    "workflow": AssetFilter(workflow_id="w7"),
    "review": AssetFilter(approval_state=ApprovalState.PENDING_REVIEW, processing_status=ProcessingStatus.COMPLETED),
    "rasters": AssetFilter(data_type=DataType.RASTER),
}
ONES: dict[tuple[str, str], dict[str, Any]] = {
    ("assets", "get"): {"asset_id": "a"},
    ("assets", "identify"): {"id": "a"},
    ("assets", "revisions"): {"asset_id": "a", "limit": 100},
    ("assets", "open_jobs"): {"asset_id": "a"},
    ("assets", "jobs"): {"asset_id": "a", "limit": 100},
    ("requests", "of_asset"): {"asset_id": "a", "limit": 100},
    ("requests", "by_idempotency_key"): {"platform_id": "ddh", "idempotency_key": "k7"},
    ("audit", "of_asset"): {"asset_id": "a", "limit": 100},
    **{
        ("reports", report.value): {"seconds": 3600, "limit": 100}
        for report in ReportName
        if report is not ReportName.SLA
    },
}
SMALL = ("dag_jobs", "asset_revisions", "asset_audit")
"""Tables that are empty here, so that their plans prove nothing."""


@pytest.fixture
async def full(pool: Pool) -> AsyncIterator[Connection]:
    async with pool.connection() as conn:
        await conn.execute("ALTER TABLE app.geospatial_assets DISABLE TRIGGER USER")
        await conn.execute(FILL_ASSETS, [ROWS])
        await conn.execute("ALTER TABLE app.geospatial_assets ENABLE TRIGGER USER")
        await conn.execute(FILL_REQUESTS, [ROWS])
        await conn.execute("VACUUM ANALYZE app.geospatial_assets")
        await conn.execute("VACUUM ANALYZE app.platform_requests")
        yield conn


def nodes(plan: dict[str, Any]) -> list[dict[str, Any]]:
    return [plan, *(node for inner in plan.get("Plans", ()) for node in nodes(inner))]


async def plan_of(conn: Connection, query: str, parameters: dict[str, Any]) -> list[dict[str, Any]]:
    cursor = await conn.execute(f"EXPLAIN (ANALYZE, FORMAT JSON) {query}", parameters, prepare=False)  # type: ignore[arg-type]
    row = await cursor.fetchone()
    assert row is not None
    return nodes(row["QUERY PLAN"][0]["Plan"])


def scanned(plan: list[dict[str, Any]]) -> list[str]:
    return [node["Relation Name"] for node in plan if node["Node Type"] == "Seq Scan"]


async def test_every_page_is_found_through_an_index(full: Connection) -> None:
    for what, chosen in PAGES.items():
        for before in (None, (datetime.now(UTC), "x")):
            parameters = assets.page_parameters(chosen, limit=51, before=before)
            plan = await plan_of(full, assets.page_statement(chosen), parameters)
            assert scanned(plan) == [], what
            lost = sum(node.get("Rows Removed by Filter", 0) for node in plan)
            assert lost < ROWS / 4, f"{what}: {lost} rows were looked at in vain: {json.dumps(plan, indent=1)}"


FILL_AUDIT = """
INSERT INTO app.asset_audit (asset_id, revision, decision, actor, at)
SELECT md5((n %% 20000 + 1)::text), 1, CASE WHEN n %% 10 = 0 THEN 'approved' ELSE 'submitted' END::app.decision, 'me',
       now() - n * interval '1 minute'
FROM generate_series(1, %s) AS n
"""


@pytest.mark.parametrize("since", [None, timedelta(hours=6), timedelta(seconds=1)])
async def test_decisions_are_found_without_reading_all_of_the_audit(full: Connection, since: timedelta | None) -> None:
    await full.execute(FILL_AUDIT, [ROWS])
    await full.execute("VACUUM ANALYZE app.asset_audit")
    now = datetime.now(UTC)
    for before in (None, (now - timedelta(days=1), 10**9)):
        at, audit_id = before or (None, None)
        parameters = {"since": since and now - since, "before": at, "before_id": audit_id, "limit": 51}
        plan = await plan_of(full, queries("audit").reviews, parameters)
        assert scanned(plan) == []
        read = [node for node in plan if node.get("Relation Name") == "asset_audit"]
        assert sum(node["Actual Rows"] + node.get("Rows Removed by Filter", 0) for node in read) <= 60 + 200


async def test_every_look_at_one_asset_is_through_an_index(full: Connection) -> None:
    for (noun, name), parameters in ONES.items():
        plan = await plan_of(full, getattr(queries(noun), name), parameters)
        assert [table for table in scanned(plan) if table not in SMALL] == [], (noun, name)
