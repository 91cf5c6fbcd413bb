"""The catalogue follows the assets, in the transactions that change them."""

from __future__ import annotations

import asyncio
from typing import Any

import psycopg

from geomill.catalogue.bulk import rebuild
from geomill.domain.states import ClearanceState, ProcessingStatus
from geomill.engine.maintenance.catalogue import CatalogueFollower
from geomill.platform import review
from tests.integration.catalogue.conftest import an_item, refs
from tests.integration.platform.conftest import ADA, BOB, Office


async def items(office: Office) -> dict[str, dict[str, Any]]:
    rows = await office.rows("SELECT id, pgstac.get_item(id, collection) AS item FROM pgstac.items")
    return {row["id"]: row["item"] for row in rows}


async def extents(office: Office, *, everything: bool = True) -> dict[str, Any]:
    rows = await office.rows(f"SELECT id, document FROM catalogue.visible_collections({everything}, NULL)")
    return {row["id"]: row["document"]["extent"] for row in rows}


async def told(office: Office) -> list[dict[str, Any]]:
    return await office.rows("SELECT duties FROM dagapp.dag_instances WHERE duties ? 'catalogue'")


async def publish(office: Office, resource: str = "jakarta", item: Any = None, **changes: Any) -> Any:
    options = {"item": item or an_item(), **changes.pop("options", {})}
    return await office.published(ADA, platform_refs=refs(resource), processing_options=options, **changes)


async def test_a_completed_job_has_its_item_and_a_failed_one_has_none(office: Office) -> None:
    office.engine.orchestrator()
    office.engine.worker()
    good = await publish(office)
    bad = await publish(office, "bandung", options={"fails": True})
    assert (good.processing_status, bad.processing_status) == (ProcessingStatus.COMPLETED, ProcessingStatus.FAILED)
    found = await items(office)
    assert list(found) == [good.stac_item_id]
    item = found[good.stac_item_id]
    assert item["collection"] == good.stac_collection_id
    assert item["assets"]["data"]["href"] == f"files/{good.asset_id}/1/a.tif"
    assert item["properties"] == {
        "datetime": "2024-04-17T00:00:00Z",
        "geomill:asset_id": good.asset_id,
        "geomill:revision": 1,
        "geomill:platform": "ddh",
        "geomill:approval": "pending_review",
        "geomill:clearance": "uncleared",
        "geomill:public": False,
        "version": "1",
        "deprecated": False,
    }
    assert item["geometry"] == an_item()["geometry"]
    assert not await office.rows("SELECT * FROM catalogue.pending")


async def test_decisions_are_in_the_catalogue_when_they_are_made(office: Office) -> None:
    office.engine.orchestrator()
    office.engine.worker()
    asset = await publish(office)

    async def states() -> tuple[str, str]:
        properties = (await items(office))[asset.stac_item_id]["properties"]
        return properties["geomill:approval"], properties["geomill:clearance"]

    await office.decide(review.approve, asset.asset_id, ClearanceState.PUBLIC, BOB, None)
    assert await states() == ("approved", "public")
    assert await extents(office, everything=False)
    await office.decide(review.unpublish, asset.asset_id, BOB, dry_run=True)
    assert await states() == ("approved", "public")
    await office.decide(review.revoke, asset.asset_id, "wrong", BOB, None)
    assert await items(office) == {}
    assert await extents(office) == await extents(office, everything=False) == {}
    again = await publish(office, overwrite=True)
    assert await states() == ("pending_review", "uncleared")
    await office.decide(review.unpublish, again.asset_id, BOB)
    assert await items(office) == {}


async def test_an_item_is_of_the_revision_that_is_served(office: Office) -> None:
    office.engine.orchestrator()
    office.engine.worker()
    first = await publish(office)
    await publish(office, item=an_item(12.0), overwrite=True)
    item = (await items(office))[first.stac_item_id]
    assert (item["properties"]["version"], item["bbox"][0]) == ("2", 12.0)
    place = f"collections/{first.stac_collection_id}/items/{first.stac_item_id}"
    assert [(link["rel"], link["href"]) for link in item["links"]] == [
        ("predecessor-version", f"{place}/versions/1"),
        ("alternate", f"../viewer/{first.asset_id}"),
        ("tilejson", f"../raster/assets/{first.asset_id}/WebMercatorQuad/tilejson.json"),
    ]
    # one that fails leaves the old one in place
    await publish(office, item=an_item(14.0), overwrite=True, options={"fails": True})
    assert (await items(office))[first.stac_item_id]["properties"]["version"] == "2"
    await office.decide(review.rollback, first.asset_id, 1, BOB)
    item = (await items(office))[first.stac_item_id]
    assert (item["properties"]["version"], item["bbox"][0]) == ("4", 10.0)
    (old,) = await office.rows(
        f"SELECT app.catalogue_version('{first.stac_collection_id}', '{first.stac_item_id}', 2) AS item"
    )
    assert (old["item"]["properties"]["deprecated"], old["item"]["bbox"][0]) == (True, 12.0)
    assert [link["rel"] for link in old["item"]["links"]] == ["predecessor-version", "latest-version"]


async def test_extents_grow_and_shrink_with_the_items(office: Office) -> None:
    office.engine.orchestrator()
    office.engine.worker()
    await publish(office, "west", an_item(10.0))
    east = await publish(office, "east", an_item(20.0, 40.0, when="2020-01-01T12:00:00Z"))
    (extent,) = (await extents(office)).values()
    assert extent == {
        "spatial": {"bbox": [[10.0, 40.0, 21.0, 51.0]]},
        "temporal": {"interval": [["2020-01-01T12:00:00Z", "2024-04-17T00:00:00Z"]]},
    }
    await office.decide(review.approve, east.asset_id, ClearanceState.PUBLIC, BOB, None)
    (public,) = (await extents(office, everything=False)).values()
    assert public["spatial"]["bbox"] == [[20.0, 40.0, 21.0, 41.0]]
    await office.decide(review.unpublish, east.asset_id, BOB)
    (extent,) = (await extents(office)).values()
    assert extent["spatial"]["bbox"] == [[10.0, 50.0, 11.0, 51.0]]
    assert extent["temporal"]["interval"] == [["2024-04-17T00:00:00Z", "2024-04-17T00:00:00Z"]]


async def test_who_holds_the_collection_stops_no_decision(office: Office, database: str) -> None:
    """Deterministic: another writer holds the collection; the decision is made, noted, and settled later."""
    office.engine.orchestrator(scan_seconds=600.0)
    office.engine.worker()
    asset = await publish(office)
    async with await psycopg.AsyncConnection.connect(database) as other:
        await other.execute("SELECT pg_advisory_xact_lock(hashtextextended(%s, 11))", [asset.stac_collection_id])
        outcome = await office.decide(review.approve, asset.asset_id, ClearanceState.OUO, BOB, None)
        assert outcome.asset.clearance_state is ClearanceState.OUO
        (noted,) = await office.rows("SELECT * FROM catalogue.pending")
        assert (noted["asset_id"], "lock timeout" in noted["reason"]) == (asset.asset_id, True)
    item = (await items(office))[asset.stac_item_id]
    assert item["properties"]["geomill:clearance"] == "uncleared"
    async with office.engine.pool.connection() as conn:
        assert (await CatalogueFollower().run_once(conn)).assets == [asset.asset_id]
    item = (await items(office))[asset.stac_item_id]
    assert item["properties"]["geomill:clearance"] == "ouo"
    assert not await office.rows("SELECT * FROM catalogue.pending")


async def test_two_who_want_each_others_collections_both_get_on(office: Office) -> None:
    """A holds one and wants two, B holds two and wants one: the waits are shorter than PostgreSQL's for deadlocks."""
    office.engine.orchestrator()
    office.engine.worker()
    one = await publish(office, "one", an_item(), platform_id="ddh")
    accepted = await office.submit(ADA, platform_refs=refs("two", "fires"), processing_options={"item": an_item()})
    await office.ended(accepted.request.job_id)
    two = await office.asset(accepted.asset.asset_id)
    assert one.stac_collection_id != two.stac_collection_id
    settle = "SELECT app.settle_item(%s)"

    async def both(first: str, second: str, met: asyncio.Barrier) -> None:
        async with office.engine.pool.connection() as conn, conn.transaction():
            await conn.execute(settle, [first])
            await met.wait()
            await conn.execute(
                "UPDATE app.geospatial_assets SET approval_state = 'approved', reviewer = 'x' WHERE asset_id = %s",
                [second],
            )

    met = asyncio.Barrier(2)
    await asyncio.gather(both(one.asset_id, two.asset_id, met), both(two.asset_id, one.asset_id, met))
    async with office.engine.pool.connection() as conn:
        await CatalogueFollower().run_once(conn)
    found = await items(office)
    assert {item["properties"]["geomill:approval"] for item in found.values()} == {"approved"}


async def test_what_is_no_item_does_not_stop_the_job_and_is_told(office: Office) -> None:
    office.engine.orchestrator()
    office.engine.worker()
    asset = await publish(office, item={"type": "Feature", "properties": {}, "geometry": None})
    assert asset.processing_status is ProcessingStatus.COMPLETED
    (noted,) = await office.rows("SELECT * FROM catalogue.pending")
    assert "datetime" in noted["reason"]
    async with asyncio.timeout(10):
        while not (found := await told(office)):  # noqa: ASYNC110  by the orchestrator, each second
            await asyncio.sleep(0.05)
    assert found[0]["duties"]["catalogue"]["failing"]
    assert asset.asset_id in found[0]["duties"]["catalogue"]["error"]


async def test_many_writers_of_one_collection_lose_nothing(office: Office) -> None:
    office.engine.orchestrator()
    office.engine.orchestrator()
    office.engine.worker()
    made = await asyncio.gather(*(publish(office, f"r{n}", an_item(n)) for n in range(12)))
    async with office.engine.pool.connection() as conn:
        await CatalogueFollower().run_once(conn)
    assert set(await items(office)) == {asset.stac_item_id for asset in made}
    (extent,) = (await extents(office)).values()
    assert extent["spatial"]["bbox"] == [[0.0, 50.0, 12.0, 51.0]]
    (counts,) = await office.rows("SELECT items, public_items FROM catalogue.collections")
    assert counts == {"items": 12, "public_items": 0}


async def test_the_catalogue_can_be_made_anew(office: Office) -> None:
    office.engine.orchestrator()
    office.engine.worker()
    kept, gone = await publish(office, "kept"), await publish(office, "gone", an_item(30.0))
    before = await items(office)
    await office.decide(review.unpublish, gone.asset_id, BOB)
    async with office.engine.pool.connection() as conn:
        await conn.execute("DELETE FROM pgstac.items WHERE id = %s", [kept.stac_item_id])
        await conn.execute("UPDATE catalogue.collections SET items = 77")
        assert await rebuild(conn) == 1
    assert await items(office) == {kept.stac_item_id: before[kept.stac_item_id]}
    (extent,) = (await extents(office)).values()
    assert extent["spatial"]["bbox"] == [[10.0, 50.0, 11.0, 51.0]]
