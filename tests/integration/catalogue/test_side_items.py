"""Assets of many items: those beside the main one come, change and go with it."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import httpx
import psycopg
import pytest
from psycopg.rows import dict_row

from geomill.catalogue.bulk import check, rebuild
from geomill.domain.access.visibility import Sight
from geomill.domain.engine.large import LARGE
from geomill.domain.states import ClearanceState, JobStatus, ProcessingStatus
from geomill.platform import review
from geomill.serve.stac import create_stac_app
from tests.integration.catalogue.conftest import an_item, refs
from tests.integration.platform.conftest import ADA, BOB, Office
from tests.integration.serve.stac.conftest import parent_of, served

CALLERS = {
    "reviewer": Sight(everything=True),
    "owner": Sight(platform_id="ddh"),
    "other partner": Sight(platform_id="arcgis"),
    "anybody": Sight(),
}
NOTHING: dict[str, list[str]] = {name: [] for name in CALLERS}


@pytest.fixture
async def client(database: str) -> AsyncIterator[httpx.AsyncClient]:
    async with (
        served(parent_of(create_stac_app(database_url=database))) as url,
        httpx.AsyncClient(base_url=url) as http,
    ):
        yield http


async def visible(client: httpx.AsyncClient) -> dict[str, list[str]]:
    """The ids that each caller finds. Counts say the same, and so do the items one by one."""
    ids = {}
    for name, sight in CALLERS.items():
        headers = {"sight": sight.model_dump_json()}
        answer = (await client.get("/stac/search?sortby=id", headers=headers)).json()
        ids[name] = [item["id"] for item in answer["features"]]
        assert answer["numberMatched"] == len(ids[name])
        collections = (await client.get("/stac/collections", headers=headers)).json()
        assert collections["numberMatched"] == bool(ids[name])
    return ids


def sides(*names: str, **more: Any) -> list[Any]:
    return [{**an_item(20.0 + n, **more), "id": name} for n, name in enumerate(names)]


async def publish(office: Office, *names: str, resource: str = "jakarta", **changes: Any) -> Any:
    options = {"item": an_item(), "scenes": changes.pop("scenes", sides(*names)), **changes.pop("options", {})}
    return await office.published(ADA, platform_refs=refs(resource), processing_options=options, **changes)


async def test_items_beside_the_main_one_are_seen_as_it_is(office: Office, client: httpx.AsyncClient) -> None:
    office.engine.orchestrator()
    office.engine.worker()
    failed = await publish(office, "a", "b", options={"fails": True})
    assert failed.processing_status is ProcessingStatus.FAILED
    assert await visible(client) == NOTHING

    asset = await publish(office, "a", "b", overwrite=True)
    main = asset.stac_item_id
    three = [main, f"{main}.a", f"{main}.b"]
    inside = {"reviewer": three, "owner": three, "other partner": [], "anybody": []}
    assert await visible(client) == inside
    await office.decide(review.approve, asset.asset_id, ClearanceState.OUO, BOB, None)
    assert await visible(client) == inside
    await office.decide(review.approve, asset.asset_id, ClearanceState.PUBLIC, BOB, None)
    assert await visible(client) == dict.fromkeys(CALLERS, three)

    place = f"/stac/collections/{asset.stac_collection_id}"
    assert (await client.get(place)).json()["extent"]["spatial"]["bbox"] == [[10.0, 50.0, 22.0, 51.0]]
    item = (await client.get(f"{place}/items/{main}.b")).json()
    assert item["bbox"] == [21.0, 50.0, 22.0, 51.0]
    assert item["assets"]["data"]["href"] == f"{client.base_url}/stac/files/{asset.asset_id}/2/a.tif"
    assert (item["properties"]["version"], item["properties"]["geomill:clearance"]) == ("2", "public")
    assert {"rel": "related", "type": "application/geo+json", "title": "The whole",
            "href": f"{client.base_url}{place}/items/{main}"} in item["links"]  # fmt: skip

    await office.decide(review.revoke, asset.asset_id, "wrong", BOB, None)
    assert await visible(client) == NOTHING
    (counts,) = await office.rows("SELECT items, public_items FROM catalogue.collections")
    assert counts == {"items": 0, "public_items": 0}


async def test_a_revision_replaces_them_a_failed_one_does_not_and_unpublishing_takes_them_out(office: Office) -> None:
    office.engine.orchestrator()
    office.engine.worker()
    asset, other = await publish(office, "a", "b"), await publish(office, "z", resource="jakarta-2")
    main, kept = asset.stac_item_id, {other.stac_item_id, f"{other.stac_item_id}.z"}

    async def items() -> dict[str, float]:
        rows = await office.rows("SELECT id, (content -> 'bbox' ->> 0)::float AS west FROM pgstac.items")
        return {row["id"]: row["west"] for row in rows if row["id"] not in kept}

    assert await items() == {main: 10.0, f"{main}.a": 20.0, f"{main}.b": 21.0}
    await publish(office, "b", "c", overwrite=True)
    assert await items() == {main: 10.0, f"{main}.b": 20.0, f"{main}.c": 21.0}
    await publish(office, "d", overwrite=True, options={"fails": True})
    assert await items() == {main: 10.0, f"{main}.b": 20.0, f"{main}.c": 21.0}
    await office.decide(review.rollback, asset.asset_id, 1, BOB)
    assert await items() == {main: 10.0, f"{main}.a": 20.0, f"{main}.b": 21.0}
    await publish(office, overwrite=True, scenes=None)
    assert await items() == {main: 10.0}
    await publish(office, "e", overwrite=True)
    async with office.engine.pool.connection() as conn:
        assert (await check(conn)).sound
        await conn.execute("DELETE FROM pgstac.items WHERE id = %s", [f"{main}.e"])
        comparison = await check(conn)
        assert (comparison.expected, comparison.missing, comparison.strays) == (4, 1, 0)
        assert await rebuild(conn) == 4
        assert (await check(conn)).sound
    await office.decide(review.unpublish, asset.asset_id, BOB)
    assert await items() == {}
    assert len(await office.rows("SELECT id FROM pgstac.items")) == 2
    async with office.engine.pool.connection() as conn:
        assert (await check(conn)).sound


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [
        (sides("a", "a"), "two items of stac_items have the same id"),
        (sides("a b"), "an item of stac_items has no id, or one with a slash, a colon or a space in it"),
        ([{**an_item(), "id": None}], "an item of stac_items has no id"),
        (["a.json"], "an item of stac_items has no id"),
        ([{"id": "a"}], "geometry"),
    ],
)
async def test_an_invalid_side_item_holds_back_all_and_is_reported(office: Office, wrong: Any, reason: str) -> None:
    office.engine.orchestrator(scan_seconds=600.0)
    office.engine.worker()
    asset = await publish(office, scenes=wrong)
    assert asset.processing_status is ProcessingStatus.COMPLETED
    (note,) = await office.rows("SELECT * FROM catalogue.pending")
    assert reason in note["reason"]
    assert not await office.rows("SELECT id FROM pgstac.items")


async def test_more_than_fit_into_a_row_of_a_node_are_there_all(office: Office) -> None:
    office.engine.orchestrator()
    office.engine.worker()
    scenes = [{**an_item(n / 10, title="x" * 1000), "id": f"scene-{n}"} for n in range(1000)]
    assert len(json.dumps(scenes)) > LARGE
    await publish(office, scenes=scenes)
    (node,) = await office.rows("SELECT output FROM dagapp.dag_node_states WHERE node_id = 'scenes'")
    assert "large_output" in node["output"]
    (counts,) = await office.rows("SELECT items, public_items FROM catalogue.collections")
    assert counts == {"items": 1001, "public_items": 0}
    async with office.engine.pool.connection() as conn:
        assert (await check(conn)).sound


async def test_they_go_outside_and_come_back_with_the_main_one(office: Office, external_database: str) -> None:
    office.engine.orchestrator()
    office.engine.worker()
    asset = await publish(office, "a", "b")

    def outside() -> list[dict[str, Any]]:
        with psycopg.connect(external_database, autocommit=True, row_factory=dict_row) as conn:
            return conn.execute("SELECT id, private FROM pgstac.items ORDER BY id").fetchall()

    outcome = await office.decide(review.approve, asset.asset_id, ClearanceState.PUBLIC, BOB, None)
    assert outcome.export_job_id
    assert (await office.ended(outcome.export_job_id)).status is JobStatus.COMPLETED
    main = asset.stac_item_id
    assert outside() == [{"id": name, "private": {"public": True}} for name in (main, f"{main}.a", f"{main}.b")]
    outcome = await office.decide(review.revoke, asset.asset_id, "wrong", BOB, None)
    assert outcome.export_job_id
    assert (await office.ended(outcome.export_job_id)).status is JobStatus.COMPLETED
    assert outside() == []
