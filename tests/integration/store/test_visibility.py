"""The rule of who sees what, by Python, by SQL and by the catalogue: any caller is shown the same of any asset."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from geomill.domain.access.visibility import Sight, seen_revision
from geomill.domain.assets.asset import Asset
from geomill.domain.jsonvalue import to_json
from geomill.domain.objectname import Zone
from geomill.store import serving
from geomill.store.pool import Connection, Pool

NOW = datetime(2026, 11, 1, tzinfo=UTC)
PLATFORMS = ("ddh", "arcgis")
IDS = tuple(f"a{number}" for number in range(6))

INSERT = """
INSERT INTO app.geospatial_assets (
    asset_id, platform_id, platform_refs, data_type, table_stem, blob_stem, stac_item_id, stac_collection_id, revision,
    served_revision, data_deleted_through, approval_state, clearance_state, kept_public_revision, deleted_at,
    deleted_by, rejection_reason
)
VALUES (
    %(asset_id)s, %(platform_id)s, '{}', 'raster', %(asset_id)s, %(asset_id)s, %(asset_id)s, 'c', %(revision)s,
    %(served_revision)s, %(data_deleted_through)s, %(approval_state)s, %(clearance_state)s, %(kept_public_revision)s,
    %(deleted_at)s, CASE WHEN %(deleted_at)s::timestamptz IS NOT NULL THEN 'ada' END, 'no reason'
)
"""
LOG = """
INSERT INTO app.asset_revisions (
    asset_id, revision, processing_status_at_supersession, approval_state_at_supersession,
    clearance_state_at_supersession, created_at
)
VALUES (%(asset_id)s, %(kept_public_revision)s, 'completed', 'approved', 'public', now())
"""


@st.composite
def rows(draw: st.DrawFn, asset_id: str) -> dict[str, Any]:
    """An asset in any state that its table allows."""
    revision = draw(st.integers(1, 4))
    served = draw(st.none() | st.integers(1, revision))
    approval = draw(
        st.sampled_from(["pending_review", "rejected", "approved"] if served == revision else ["pending_review"])
    )
    return {
        "asset_id": asset_id,
        "platform_id": draw(st.sampled_from(PLATFORMS)),
        "revision": revision,
        "served_revision": served,
        "data_deleted_through": draw(st.just(0) | st.integers(0, revision)),
        "approval_state": approval,
        "clearance_state": draw(st.sampled_from(["ouo", "public"])) if approval == "approved" else "uncleared",
        "kept_public_revision": draw(st.none() | st.integers(1, revision - 1)) if revision > 1 else None,
        "deleted_at": draw(st.none() | st.just(NOW)),
    }


sights = st.builds(
    Sight,
    everything=st.booleans(),
    platform_id=st.none() | st.sampled_from((*PLATFORMS, "other")),
    asset_id=st.none() | st.sampled_from((*IDS, "other")),
)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(drawn=st.tuples(*map(rows, IDS)), sight=sights)
async def test_python_sql_and_the_catalogue_show_a_caller_the_same(pool: Pool, drawn, sight):
    async with pool.connection() as conn, conn.transaction(force_rollback=True):
        for row in drawn:
            await conn.execute(INSERT, row)
            if row["kept_public_revision"]:
                await conn.execute(LOG, row)
        cursor = await conn.execute("SELECT * FROM app.geospatial_assets")
        assets = [Asset.from_row(row) for row in await cursor.fetchall()]
        expected = {
            asset.asset_id: revision for asset in assets if (revision := seen_revision(sight, asset)) is not None
        }

        page = await serving.page(conn, Zone.SILVER, sight)
        assert {served.asset_id: served.revision for served in page.assets} == expected
        assert await _one_by_one(conn, sight) == expected
        assert await _in_catalogue(conn, sight, assets) == expected.keys()


async def _one_by_one(conn: Connection, sight: Sight) -> dict[str, int]:
    shown = {}
    for asset_id in IDS:
        faces = await serving.find(conn, Zone.SILVER, asset_id)
        if faces and (served := faces.shown_to(sight)):
            shown[asset_id] = served.revision
    return shown


async def _in_catalogue(conn: Connection, sight: Sight, assets: list[Asset]) -> set[str]:
    """The items that the rule of the catalogue lets through. An asset of which nobody sees anything has no item."""
    items = [
        {
            "content": {"properties": {"geomill:platform": asset.platform_id, "geomill:asset_id": asset.asset_id}},
            "private": {"public": asset.public_revision is not None},
        }
        for asset in assets
        if seen_revision(Sight(everything=True), asset) is not None
    ]
    await conn.execute("SET LOCAL search_path = pgstac, public")
    cursor = await conn.execute(
        "SELECT catalogue.item_rule(%(everything)s, %(platform_id)s, %(asset_id)s) AS rule", sight.model_dump()
    )
    row = await cursor.fetchone()
    assert row is not None
    cursor = await conn.execute(
        "SELECT content -> 'properties' ->> 'geomill:asset_id' AS asset_id"
        " FROM jsonb_to_recordset(%(items)s::jsonb) AS items (content jsonb, private jsonb)"
        f" WHERE {row['rule'].replace('%', '%%')}",
        {"items": to_json(items)},
    )
    return {item["asset_id"] for item in await cursor.fetchall()}
