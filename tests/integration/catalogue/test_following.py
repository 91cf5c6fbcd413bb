"""The catalogue follows the assets: at once after a decision, and within moments after the end of a job."""

from __future__ import annotations

import asyncio
from typing import Any

import psycopg
import pytest

from geomill.catalogue.bulk import rebuild
from geomill.catalogue.following import CatalogueFollower, Followed, follow_decision
from geomill.domain.states import ClearanceState, JobStatus, ProcessingStatus
from geomill.platform import review
from geomill.sql import queries
from tests.integration.catalogue.conftest import an_item, refs
from tests.integration.platform.conftest import ADA, BOB, Office

HOLD = "SELECT pg_advisory_xact_lock(hashtextextended(%s, 11))"
APPROVE = "UPDATE app.geospatial_assets SET approval_state = 'approved', reviewer = 'x' WHERE asset_id = %s"


async def items(office: Office) -> dict[str, dict[str, Any]]:
    rows = await office.rows("SELECT id, pgstac.get_item(id, collection) AS item FROM pgstac.items")
    return {row["id"]: row["item"] for row in rows}


async def extents(office: Office, *, everything: bool = True) -> dict[str, Any]:
    rows = await office.rows(f"SELECT id, document FROM catalogue.visible_collections({everything}, NULL)")
    return {row["id"]: row["document"]["extent"] for row in rows}


async def visible(office: Office) -> list[str]:
    """The items that an insider sees."""
    (row,) = await office.rows("SELECT catalogue.search_items('{}', true, NULL, NULL, NULL, false) AS page")
    return [item["id"] for item in row["page"]["features"]]


async def follow(office: Office) -> Followed:
    """One run of the duty."""
    return await CatalogueFollower(office.engine.pool).run_once()


async def make_due(office: Office) -> None:
    async with office.engine.pool.connection() as conn:
        await conn.execute("UPDATE catalogue.pending SET due_at = now(), attempts = 0")


async def reported(office: Office) -> list[dict[str, Any]]:
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
    catalogued = await items(office)
    assert list(catalogued) == [good.stac_item_id]
    item = catalogued[good.stac_item_id]
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
    assert [link["rel"] for link in item["links"]] == ["predecessor-version", "alternate", "tilejson"]
    assert item["links"][0]["href"] == f"{place}/versions/2"


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
    """Another writer holds the collection: the decision is made, its entry is withheld, and written later."""
    office.engine.orchestrator(scan_seconds=600.0)
    office.engine.worker()
    asset = await publish(office)
    async with await psycopg.AsyncConnection.connect(database) as other:
        await other.execute(HOLD, [asset.stac_collection_id])
        outcome = await office.decide(review.approve, asset.asset_id, ClearanceState.OUO, BOB, None)
        assert outcome.asset.clearance_state is ClearanceState.OUO
        (note,) = await office.rows("SELECT * FROM catalogue.pending")
        assert (note["asset_id"], note["withheld"]) == (asset.asset_id, True)
        assert "lock timeout" in note["reason"]
        await make_due(office)
        followed = await follow(office)
        assert (followed.written, followed.busy) == ([], True)
        assert await visible(office) == []
    item = (await items(office))[asset.stac_item_id]
    assert item["properties"]["geomill:clearance"] == "uncleared"
    assert (await follow(office)).written == [asset.asset_id]
    item = (await items(office))[asset.stac_item_id]
    assert item["properties"]["geomill:clearance"] == "ouo"
    assert await visible(office) == [asset.stac_item_id]
    assert not await office.rows("SELECT * FROM catalogue.pending")


async def test_who_holds_a_collection_stops_no_verdict(office: Office, database: str) -> None:
    """Jobs end, and their round waits for nobody. The old entry stays visible until the new one is written."""
    office.engine.orchestrator()
    office.engine.worker()
    first = await publish(office)
    async with await psycopg.AsyncConnection.connect(database) as other:
        await other.execute(HOLD, [first.stac_collection_id])
        options = {"item": an_item(12.0)}
        again = await office.submit(ADA, platform_refs=refs("jakarta"), processing_options=options, overwrite=True)
        new = await office.submit(ADA, platform_refs=refs("bandung"), processing_options=options)
        for accepted in (again, new):
            assert (await office.engine.ended(accepted.request.job_id)).status is JobStatus.COMPLETED
        notes = await office.rows("SELECT asset_id, withheld, attempts FROM catalogue.pending")
        assert {(note["asset_id"], note["attempts"]) for note in notes} >= {(new.asset.asset_id, 0)}
    await office.catalogued()
    assert set(await visible(office)) == {first.stac_item_id, new.asset.stac_item_id}
    assert (await items(office))[first.stac_item_id]["bbox"][0] == 12.0


async def test_the_old_entry_is_visible_until_the_new_one_is_written(office: Office) -> None:
    office.engine.orchestrator()
    office.engine.worker()
    asset = await publish(office)
    async with office.engine.pool.connection() as conn:
        await conn.execute(
            "INSERT INTO catalogue.pending (asset_id, reason, withheld) VALUES (%s, 'a job has ended', false)",
            [asset.asset_id],
        )
        assert await visible(office) == [asset.stac_item_id]
        await conn.execute("UPDATE catalogue.pending SET withheld = true")
        assert await visible(office) == []
    await office.catalogued()
    assert await visible(office) == [asset.stac_item_id]


async def test_a_change_that_is_under_way_is_left_to_its_own_transaction(office: Office) -> None:
    """The duty never writes what an uncommitted decision is about to change, and never waits for it."""
    office.engine.orchestrator(scan_seconds=600.0)
    office.engine.worker()
    asset = await publish(office)
    async with office.engine.pool.connection() as conn:
        await conn.execute("INSERT INTO catalogue.pending (asset_id, reason) VALUES (%s, 'x')", [asset.asset_id])
        async with conn.transaction():
            await conn.execute(APPROVE, [asset.asset_id])
            followed = await follow(office)
            assert (followed.written, followed.busy) == ([], True)
    assert (await follow(office)).written == [asset.asset_id]
    assert (await items(office))[asset.stac_item_id]["properties"]["geomill:approval"] == "approved"


async def test_two_who_need_each_others_collections_both_get_on(office: Office) -> None:
    """A holds one and needs two, B holds two and needs one: the waits are shorter than PostgreSQL's for deadlocks."""
    office.engine.orchestrator()
    office.engine.worker()
    flood = await publish(office, "flood", an_item(), platform_id="ddh")
    accepted = await office.submit(ADA, platform_refs=refs("fire", "fires"), processing_options={"item": an_item()})
    await office.ended(accepted.request.job_id)
    fire = await office.asset(accepted.asset.asset_id)
    assert flood.stac_collection_id != fire.stac_collection_id

    async def both(first: str, second: str, met: asyncio.Barrier) -> None:
        async with office.engine.pool.connection() as conn, conn.transaction():
            await follow_decision(conn, first)
            await met.wait()
            await conn.execute(APPROVE, [second])
            await follow_decision(conn, second)

    met = asyncio.Barrier(2)
    await asyncio.gather(both(flood.asset_id, fire.asset_id, met), both(fire.asset_id, flood.asset_id, met))
    await make_due(office)
    await office.catalogued()
    assert {item["properties"]["geomill:approval"] for item in (await items(office)).values()} == {"approved"}


async def test_an_invalid_item_does_not_stop_the_job_and_is_reported(office: Office) -> None:
    office.engine.orchestrator()
    office.engine.worker()
    asset = await publish(office, item={"type": "Feature", "properties": {}, "geometry": {"type": "Point"}})
    assert asset.processing_status is ProcessingStatus.COMPLETED
    (note,) = await office.rows("SELECT * FROM catalogue.pending")
    assert "datetime" in note["reason"]
    async with asyncio.timeout(10):
        while not (duties := await reported(office)):  # noqa: ASYNC110  by the orchestrator, each second
            await asyncio.sleep(0.05)
    assert duties[0]["duties"]["catalogue"]["failing"]
    assert asset.asset_id in duties[0]["duties"]["catalogue"]["error"]


async def test_one_invalid_item_holds_back_no_other_of_its_collection(office: Office) -> None:
    """Also if only the database can tell that it is invalid, so that the whole batch is refused first."""
    office.engine.orchestrator(scan_seconds=600.0)
    office.engine.worker()
    wrong = [{**an_item(), "properties": {}}, {**an_item(), "geometry": {"type": "Nothing"}}]
    assets = [await publish(office, f"r{n}", item) for n, item in enumerate([an_item(1), *wrong, an_item(2)])]
    async with office.engine.pool.connection() as conn:
        await conn.execute("DELETE FROM catalogue.pending")
        for asset in assets:
            await conn.execute("INSERT INTO catalogue.pending (asset_id, reason) VALUES (%s, 'x')", [asset.asset_id])
    followed = await follow(office)
    assert followed.written == [assets[0].asset_id, assets[3].asset_id]
    assert followed.refused.keys() == {assets[1].asset_id, assets[2].asset_id}
    assert set(await visible(office)) == {assets[0].stac_item_id, assets[3].stac_item_id}


async def test_an_entry_that_cannot_be_built_ends_no_orchestrator(office: Office) -> None:
    """Outputs that no workflow should return, such as a list, are refused with a reference to the log."""
    orchestrator = office.engine.orchestrator()
    office.engine.worker()
    broken, good = await publish(office, "broken"), await publish(office, "good")
    async with office.engine.pool.connection() as conn:
        await conn.execute(
            "UPDATE app.geospatial_assets SET revision = 2, served_revision = 2, outputs = '[1]' WHERE asset_id = %s",
            [broken.asset_id],
        )
    await office.catalogued()
    (note,) = await office.rows("SELECT asset_id, reason FROM catalogue.pending")
    assert note["asset_id"] == broken.asset_id
    assert "the log has more under the reference" in note["reason"]
    await publish(office, "good", an_item(12.0), overwrite=True)
    assert (await items(office))[good.stac_item_id]["bbox"][0] == 12.0
    assert not office.engine.running[orchestrator.instance_id].done()


SLOW = (
    """
    CREATE FUNCTION public.slow_item() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        IF NEW.id LIKE '%slow%' THEN PERFORM pg_sleep(60); END IF;
        RETURN NEW;
    END $$
    """,
    "CREATE TRIGGER slow_item BEFORE INSERT ON pgstac.items FOR EACH ROW EXECUTE FUNCTION public.slow_item()",
)


async def test_an_entry_that_takes_too_long_is_given_up_for_a_while(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Others of its collection are written, and it comes back only after ten times as long."""
    office.engine.orchestrator(scan_seconds=600.0)
    office.engine.worker()
    quick = await publish(office, "quick", an_item(1))
    slow = await publish(office, "slow", an_item(2))
    async with office.engine.pool.connection() as conn:
        for statement in SLOW:
            await conn.execute(statement)
        for asset in (slow, quick):
            await conn.execute("INSERT INTO catalogue.pending (asset_id, reason) VALUES (%s, 'x')", [asset.asset_id])
    limits = "SELECT set_config('lock_timeout', '250ms', true), set_config('statement_timeout', '400ms', true)"
    monkeypatch.setattr(queries("catalogue"), "limit_waits", limits)
    followed = await follow(office)
    assert followed.written == [quick.asset_id]
    assert "statement timeout" in followed.refused[slow.asset_id]
    (note,) = await office.rows("SELECT due_at > now() + interval '2 seconds' AS later FROM catalogue.pending")
    assert note["later"]


async def test_many_writers_of_one_collection_lose_nothing(office: Office) -> None:
    office.engine.orchestrator()
    office.engine.orchestrator()
    office.engine.worker()
    assets = await asyncio.gather(*(publish(office, f"r{n}", an_item(n)) for n in range(12)))
    assert set(await items(office)) == {asset.stac_item_id for asset in assets}
    (extent,) = (await extents(office)).values()
    assert extent["spatial"]["bbox"] == [[0.0, 50.0, 12.0, 51.0]]
    (counts,) = await office.rows("SELECT items, public_items FROM catalogue.collections")
    assert counts == {"items": 12, "public_items": 0}


async def test_the_catalogue_can_be_rebuilt(office: Office) -> None:
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
