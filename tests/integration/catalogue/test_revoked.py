"""Revoked means gone: at every moment of an export, by every route, for everybody, and for good.

A gateway's services and an external server run beside a real engine. Each case polls what is seen inside and outside.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any

import pytest
from httpx import ASGITransport, AsyncClient

from geomill.domain.access.principal import Role
from geomill.domain.access.signed_link import PARAMETER, LinkKey
from geomill.domain.objectname import ObjectName, Zone
from geomill.domain.states import ClearanceState, JobStatus
from geomill.errors import AssetState
from geomill.platform import review
from geomill.serve.app import create_serving_app
from geomill.serve.services import Services
from geomill.settings import AccessSettings
from geomill.store.pool import open_pool
from tests.integration.api.conftest import bearing, make_key
from tests.integration.catalogue.conftest import an_item, refs
from tests.integration.platform.conftest import ADA, BOB, Office

KEY = LinkKey(b"a key of the tests, long enough for all")
OUO, PUBLIC = ClearanceState.OUO, ClearanceState.PUBLIC
FRESH_SECONDS = 1.0
"""How long an answer may be kept inside of a server."""


@dataclass
class Town:
    """An office, its services inside and outside, and a caller of each kind."""

    office: Office
    inside: AsyncClient
    outside: AsyncClient
    callers: dict[str, dict[str, str]]

    async def published(self, **changes: Any) -> Any:
        options = {"item": changes.pop("item", an_item()), **changes.pop("options", {})}
        return await self.office.published(ADA, platform_refs=refs("jakarta"), processing_options=options, **changes)

    async def approve(self, asset: Any, clearance: ClearanceState = PUBLIC) -> Any:
        outcome = await self.office.decide(review.approve, asset.asset_id, clearance, BOB, None)
        if outcome.export_job_id:
            await self.office.ended(outcome.export_job_id)
        return outcome

    def paths(self, asset: Any, revision: int) -> list[str]:
        item = f"/stac/collections/{asset.stac_collection_id}/items/{asset.stac_item_id}"
        return [
            f"/viewer/{asset.asset_id}",
            item,
            f"{item}/versions/{revision}",
            f"/stac/files/{asset.asset_id}/{revision}/a.tif",
            f"/stac/search?ids={asset.stac_item_id}",
            "/viewer/?f=json",
        ]

    async def seen(self, asset: Any, revision: int = 1, tickets: tuple[str, ...] = ()) -> set[str]:
        """Who sees something of the asset, and where."""
        found = set()
        for place, client in (("inside", self.inside), ("outside", self.outside)):
            for caller, headers in self.callers.items():
                for path in self.paths(asset, revision):
                    answer = await client.get(path, headers=headers)
                    if answer.status_code == 200 and asset.asset_id in answer.text + path.partition("?")[0]:
                        found.add(f"{caller} {place} {path.split('/')[1]} {path.rsplit('/', 1)[-1][:8]}")
        for ticket in tickets:
            for path in (f"/viewer/{asset.asset_id}", f"/stac/files/{asset.asset_id}/{revision}/a.tif"):
                if (await self.inside.get(f"{path}?{PARAMETER}={ticket}")).status_code == 200:
                    found.add(f"link {path.split('/')[1]}")
        return found


@asynccontextmanager
async def served(url: str, office: Office, zone: Zone) -> AsyncIterator[AsyncClient]:
    app = create_serving_app(Services(zone, url, office.storage, KEY), url, AccessSettings(), hosts=("127.0.0.1",))
    transport = ASGITransport(app=app, raise_app_exceptions=False)
    async with (
        app.router.lifespan_context(app),
        AsyncClient(transport=transport, base_url="http://127.0.0.1:8001", timeout=60) as client,
    ):
        yield client


@pytest.fixture
async def town(office: Office, database: str, external_database: str) -> AsyncIterator[Town]:
    async with AsyncExitStack() as stack:
        outside_pool = await stack.enter_async_context(open_pool(external_database, size=2, idle=True))
        office.desk = replace(office.desk, outside=outside_pool)
        inside = await stack.enter_async_context(served(database, office, Zone.SILVER))
        outside = await stack.enter_async_context(served(external_database, office, Zone.EXTERNAL))
        callers = {
            "nobody": {},
            "reader": bearing(await make_key(database, Role.READER)),
            "partner": bearing(await make_key(database, Role.SUBMITTER, platform_id="ddh")),
            "other": bearing(await make_key(database, Role.SUBMITTER, platform_id="arcgis")),
        }
        office.engine.orchestrator()
        office.engine.worker()
        yield Town(office, inside, outside, callers)


def ticket_for(asset: Any) -> str:
    return KEY.ticket(asset.asset_id, int(time.time()) + 600, asset.withdrawn_through)


@pytest.mark.slow
async def test_a_revoked_asset_that_is_submitted_again_serves_nothing_until_its_own_job_has_completed(
    town: Town,
) -> None:
    asset = await town.published()
    await town.approve(asset, OUO)
    ticket = ticket_for(asset)
    assert {"link viewer", "link stac"} <= await town.seen(asset, tickets=(ticket,))
    await town.office.decide(review.revoke, asset.asset_id, "wrong", BOB, None)
    await asyncio.sleep(FRESH_SECONDS)
    assert await town.seen(asset, tickets=(ticket,)) == set()

    failed = await town.published(options={"fails": True})
    assert (failed.processing_status.value, failed.served_revision) == ("failed", None)
    await asyncio.sleep(FRESH_SECONDS)
    for revision in (1, 2):
        assert await town.seen(asset, revision, (ticket,)) == set()

    again = await town.published(overwrite=True)
    await asyncio.sleep(FRESH_SECONDS)
    seen = await town.seen(again, 3, (ticket,))
    assert {entry.split()[0] for entry in seen} == {"reader", "partner"}, "neither strangers nor old links"
    item = f"/stac/collections/{asset.stac_collection_id}/items/{asset.stac_item_id}"
    for revoked in (f"/stac/files/{asset.asset_id}/1/a.tif", f"{item}/versions/1"):
        for headers in town.callers.values():
            assert (await town.inside.get(revoked, headers=headers)).status_code == 404, revoked
    assert "link viewer" in await town.seen(again, 3, (ticket_for(again),))


@pytest.mark.slow
async def test_an_unpublished_asset_comes_back_only_with_its_own_data(town: Town) -> None:
    asset = await town.published()
    await town.approve(asset)
    outcome = await town.office.decide(review.unpublish, asset.asset_id, BOB)
    await town.office.ended(outcome.export_job_id or "")
    await town.published(options={"fails": True})
    await asyncio.sleep(FRESH_SECONDS)
    for revision in (1, 2):
        assert await town.seen(asset, revision, (ticket_for(asset),)) == set()


async def test_a_rollback_to_a_revoked_revision_is_said(town: Town) -> None:
    asset = await town.published()
    await town.approve(asset, OUO)
    await town.office.decide(review.revoke, asset.asset_id, "wrong", BOB, None)
    await town.published(options={"fails": True})
    outcome = await town.office.decide(review.rollback, asset.asset_id, 1, BOB)
    assert outcome.warnings == ("revision 1 was revoked or unpublished: the rollback brings it back for a new review",)
    [entry] = await town.office.rows("SELECT reason FROM app.asset_audit ORDER BY audit_id DESC LIMIT 1")
    assert entry["reason"] == "to revision 1, which was revoked or unpublished"
    assert outcome.asset.approval_state.value == "pending_review"


@pytest.mark.slow
async def test_the_public_revision_stays_public_until_another_is_approved(town: Town) -> None:
    asset = await town.published()
    await town.approve(asset)
    before = {entry for entry in await town.seen(asset) if entry.startswith("nobody")}
    assert {entry.split()[1] for entry in before} == {"inside", "outside"}
    new = await town.published(item=an_item(30.0), overwrite=True)
    assert (new.revision, new.public_revision, new.approval_state.value) == (2, 1, "pending_review")
    await asyncio.sleep(FRESH_SECONDS)
    assert {entry for entry in await town.seen(asset) if entry.startswith("nobody")} == before
    hidden = await town.inside.get(f"/stac/files/{asset.asset_id}/2/a.tif")
    assert hidden.status_code == 404, "nobody has approved the new one"
    for caller in ("reader", "partner"):
        answer = await town.inside.get(f"/stac/files/{asset.asset_id}/2/a.tif", headers=town.callers[caller])
        assert answer.status_code == 200
        item = f"/stac/collections/{asset.stac_collection_id}/items/{asset.stac_item_id}"
        version = await town.inside.get(f"{item}/versions/2", headers=town.callers[caller])
        assert (version.json()["bbox"][0], version.json()["properties"]["deprecated"]) == (30.0, False)
        assert (await town.inside.get(f"{item}/versions/2")).status_code == 404
    listed = (await town.inside.get("/viewer/?f=json")).json()["assets"]
    assert [(line["revision"], line["public"]) for line in listed] == [(1, True)]
    listed = (await town.inside.get("/viewer/?f=json", headers=town.callers["reader"])).json()["assets"]
    assert [(line["revision"], line["public"]) for line in listed] == [(2, False)]

    await town.office.decide(review.reject, asset.asset_id, "no", BOB, None)
    assert {entry for entry in await town.seen(asset) if entry.startswith("nobody")} == before
    await town.published(item=an_item(40.0), overwrite=True)
    await town.approve(asset)
    await asyncio.sleep(FRESH_SECONDS)
    for client in (town.inside, town.outside):
        item = f"/stac/collections/{asset.stac_collection_id}/items/{asset.stac_item_id}"
        assert (await client.get(item)).json()["bbox"][0] == 40.0
        assert (await client.get(f"/stac/files/{asset.asset_id}/3/a.tif")).status_code == 200
        assert (await client.get(f"/stac/files/{asset.asset_id}/1/a.tif")).status_code == 404


async def test_a_public_revision_is_revoked_although_a_newer_one_waits(town: Town) -> None:
    asset = await town.published()
    await town.approve(asset)
    await town.published(overwrite=True)
    outcome = await town.office.decide(review.revoke, asset.asset_id, "wrong", BOB, None)
    await asyncio.sleep(FRESH_SECONDS)
    for revision in (1, 2):
        assert await town.seen(asset, revision) == set()
    await town.office.ended(outcome.export_job_id or "")
    with pytest.raises(AssetState):
        await town.office.decide(review.revoke, asset.asset_id, "again", BOB, None)


async def test_the_same_clearance_again_is_no_change(town: Town) -> None:
    asset = await town.published()
    await town.approve(asset)
    audit = "SELECT count(*) AS n FROM app.asset_audit"
    before = await town.office.rows(audit)
    outcome = await town.office.decide(review.approve, asset.asset_id, PUBLIC, BOB, None)
    assert (outcome.decision, outcome.export_job_id) == (None, None)
    assert await town.office.rows(audit) == before


@pytest.mark.slow
async def test_what_is_outside_is_hidden_before_the_answer_and_a_dead_zone_stops_no_decision(
    town: Town, external_database: str
) -> None:
    asset = await town.published()
    await town.approve(asset)
    await town.office.decide(review.approve, asset.asset_id, OUO, BOB, None)
    await asyncio.sleep(FRESH_SECONDS)
    assert not {entry for entry in await town.seen(asset) if "outside" in entry}
    await town.approve(asset)
    async with open_pool("postgresql://nobody@127.0.0.1:1/none", size=1, idle=True) as dead:
        town.office.desk = replace(town.office.desk, outside=dead)
        outcome = await town.office.decide(review.revoke, asset.asset_id, "wrong", BOB, None)
    assert any("the external zone did not answer" in warning for warning in outcome.warnings)
    assert (await town.office.ended(outcome.export_job_id or "")).status is JobStatus.COMPLETED
    await asyncio.sleep(FRESH_SECONDS)
    assert await town.seen(asset) == set()


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(6))
async def test_at_whatever_moment_of_an_export_an_asset_is_revoked_it_is_gone(town: Town, seed: int) -> None:
    """The source is large enough for the copy to take a while; the moment is chance."""
    chance = random.Random(seed)
    await town.office.storage.put_bytes(ObjectName(Zone.BRONZE, "uploads", "a.tif"), b"II*\0" + bytes(40_000_000))
    asset = await town.published()
    exported = await town.office.decide(review.approve, asset.asset_id, PUBLIC, BOB, None)
    await asyncio.sleep(chance.uniform(0, 0.6))
    outcome = await town.office.decide(review.revoke, asset.asset_id, "wrong", BOB, None)
    await asyncio.sleep(FRESH_SECONDS)
    ended = asyncio.create_task(town.office.ended(outcome.export_job_id or ""))
    while not ended.done():
        assert await town.seen(asset) == set()
    assert (await ended).status is JobStatus.COMPLETED
    await town.office.ended(exported.export_job_id or "")
    assert await town.seen(asset) == set()
    assert [info async for info in town.office.storage.list(Zone.EXTERNAL, "public")] == []
