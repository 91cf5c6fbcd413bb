"""Each caller at each endpoint of each kind of asset sees what the rule of visibility allows."""

from __future__ import annotations

import asyncio
import time
from itertools import product
from typing import Any

import pytest
import pytest_asyncio

from geomill.domain.access.principal import Role
from geomill.domain.access.signed_link import PARAMETER
from geomill.sdk import ObjectName, Zone
from geomill.serve.directory import FRESH_SECONDS
from geomill.storage import Storage
from tests.integration.raster import sources, steps
from tests.integration.serve.test_vectors import make_table
from tests.integration.serve.zone import KEY, ExternalServer, House, id_of

pytestmark = pytest.mark.asyncio(loop_scope="module")

STATES = [
    (approval, clearance)
    for approval, clearance in product(("pending_review", "approved", "rejected"), ("uncleared", "ouo", "public"))
    if clearance == "uncleared" or approval == "approved"  # the table allows no other
]
PLATFORMS = ("ddh", "other")
KINDS = [
    (approval, clearance, deleted, platform)
    for (approval, clearance), deleted, platform in product(STATES, (False, True), PLATFORMS)
]
CALLERS: dict[str, tuple[tuple[Role, ...], str | None]] = {
    "nobody": ((), None),
    "reader": ((Role.READER,), None),
    "reviewer": ((Role.REVIEWER,), None),
    "operator": ((Role.OPERATOR,), None),
    "admin": ((Role.ADMIN,), None),
    "submitter of ddh": ((Role.SUBMITTER,), "ddh"),
}
BOX = {"bbox": [15.0, 45.0, 15.1, 45.1]}
HOUSE = {"reader", "reviewer", "operator", "admin"}
RASTER = (
    "/raster/assets/{id}/info",
    "/raster/assets/{id}/info.geojson",
    "/raster/assets/{id}/statistics",
    "/raster/assets/{id}/preview.png?max_size=16",
    "/raster/assets/{id}/preview/8x8.png",
    "/raster/assets/{id}/bbox/15.0,44.9,15.1,45.2.png?max_size=16",
    "/raster/assets/{id}/tiles",
    "/raster/assets/{id}/tiles/WebMercatorQuad",
    "/raster/assets/{id}/tiles/WebMercatorQuad/12/2218/1471.png?tilesize=16",
    "/raster/assets/{id}/WebMercatorQuad/tilejson.json",
    "/raster/assets/{id}/point/15.005,45.145",
    "/raster/assets/{id}/WMTSCapabilities.xml",
    "/raster/assets/{id}/map?width=8&height=8",
    "/wms/{id}?REQUEST=GetCapabilities",
    "/wms/{id}?REQUEST=GetMap&LAYERS={id}&CRS=CRS:84&BBOX=15,45,16,46&WIDTH=4&HEIGHT=4",
    "/wms/{id}?REQUEST=GetLegendGraphic&LAYER={id}",
    "/viewer/{id}",
)
VECTOR = (
    "/vector/collections/{id}",
    "/vector/collections/{id}/items",
    "/vector/collections/{id}/items/1",
    "/vector/collections/{id}/queryables",
    "/vector/collections/{id}/tiles",
    "/vector/collections/{id}/tiles/WebMercatorQuad",
    "/vector/collections/{id}/tiles/WebMercatorQuad/12/2218/1471",
    "/vector/collections/{id}/tiles/WebMercatorQuad/tilejson.json",
    "/vector/collections/{id}/tiles/WebMercatorQuad/style.json",
    "/wms/{id}?REQUEST=GetCapabilities",
    "/wms/{id}?REQUEST=GetMap&LAYERS={id}&CRS=CRS:84&BBOX=15,45,16,46&WIDTH=4&HEIGHT=4",
    "/wms/{id}?REQUEST=GetFeatureInfo&QUERY_LAYERS={id}&CRS=CRS:84&BBOX=15,45,16,46&WIDTH=4&HEIGHT=4&I=1&J=1",
    "/viewer/{id}",
)


def name_of(kind: tuple[Any, ...], data_type: str) -> str:
    return "_".join(map(str, (*kind, data_type))).lower()


def sees(caller: str, kind: tuple[str, str, bool, str]) -> bool:
    """The rule, written once more, in other words."""
    approval, clearance, deleted, platform = kind
    if deleted:
        return False
    if (approval, clearance) == ("approved", "public"):
        return True
    return caller in HOUSE or (caller == "submitter of ddh" and platform == "ddh")


@pytest.fixture(scope="module")
def raster(shelf: Storage) -> str:
    sources.put(shelf, sources.SyntheticRaster(sources.noise((1, 100, 100))))
    return str(steps.cog(shelf, "matrix")["blob_path"])


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def full(house: House, raster: str) -> House:
    """One raster and one vector of each kind."""
    await make_table(house, "matrix", 3)
    for kind in KINDS:
        approval, clearance, deleted, platform = kind
        states: dict[str, Any] = {
            "approval_state": approval,
            "clearance_state": clearance,
            "platform_id": platform,
            "rejection_reason": "no" if approval == "rejected" else None,
            "deleted_at": "2026-01-01" if deleted else None,
            "deleted_by": "somebody" if deleted else None,
        }
        await house.publish(name_of(kind, "raster"), blob_path=raster, **states)
        await house.publish(name_of(kind, "vector"), "vector", table_name="matrix", outputs=BOX, **states)
    return house


async def headers_of(house: House, caller: str) -> dict[str, str]:
    roles, platform = CALLERS[caller]
    return await house.key(*roles, platform_id=platform) if roles else {}


def wanted_status(caller: str, kind: tuple[str, str, bool, str]) -> int:
    return 200 if sees(caller, kind) else 404


@pytest.mark.parametrize("caller", CALLERS)
@pytest.mark.slow
async def test_each_caller_sees_exactly_what_it_may(full: House, caller: str) -> None:
    headers = await headers_of(full, caller)
    wrong = []
    for kind, (data_type, paths) in product(KINDS, (("raster", RASTER), ("vector", VECTOR))):
        asset_id = id_of(name_of(kind, data_type))
        for path in paths:
            answer = await full.client.get(path.format(id=asset_id), headers=headers)
            if answer.status_code != wanted_status(caller, kind):
                wrong.append((path, kind, answer.status_code, answer.text[:100]))
            elif answer.status_code == 200:
                public = kind[:2] == ("approved", "public")
                if answer.headers["cache-control"].startswith("public") != public:
                    wrong.append((path, kind, answer.headers["cache-control"], ""))
    assert not wrong


@pytest.mark.parametrize("caller", CALLERS)
async def test_lists_and_counts_tell_of_nothing_else(full: House, caller: str) -> None:
    headers = await headers_of(full, caller)
    visible = {id_of(name_of(kind, "vector")) for kind in KINDS if sees(caller, kind)}
    listing = (await full.client.get("/vector/collections?limit=1000", headers=headers)).json()
    assert {collection["id"] for collection in listing["collections"]} == visible
    assert listing["numberMatched"] == len(visible)
    paged = (await full.client.get("/vector/collections?limit=1", headers=headers)).json()
    assert paged["numberMatched"] == len(visible)
    listed = (await full.client.get("/viewer/?f=json&limit=100", headers=headers)).json()
    assert {asset["asset_id"] for asset in listed["assets"]} == visible | {
        id_of(name_of(kind, "raster")) for kind in KINDS if sees(caller, kind)
    }
    assert listed["matched"] == 2 * len(visible)


async def test_what_may_not_be_seen_is_as_if_it_were_not_there(full: House) -> None:
    hidden = id_of(name_of(("approved", "ouo", False, "ddh"), "raster"))
    answers = [
        (await full.client.get(f"/raster/assets/{asset_id}/info")).json() for asset_id in (hidden, id_of("nothing"))
    ]
    a, b = (
        {key: str(value).replace(hidden, "").replace(id_of("nothing"), "") for key, value in body.items()}
        for body in answers
    )
    assert a == b


async def test_what_may_not_be_seen_is_not_confirmed_by_a_name_in_a_cache(full: House) -> None:
    asset_id = id_of(name_of(("approved", "ouo", False, "ddh"), "raster"))
    headers = await headers_of(full, "reader")
    etag = (await full.client.get(f"/raster/assets/{asset_id}/info", headers=headers)).headers["etag"]
    answer = await full.client.get(f"/raster/assets/{asset_id}/info", headers={"If-None-Match": etag})
    assert answer.status_code == 404


async def test_a_wrong_credential_is_told_so_even_where_none_is_needed(full: House) -> None:
    public = id_of(name_of(("approved", "public", False, "ddh"), "raster"))
    for path in (f"/raster/assets/{public}/info", "/vector/collections", "/viewer/", f"/viewer/{public}"):
        answer = await full.client.get(path, headers={"Authorization": "Bearer gm_wrong_wrong"})
        assert (answer.status_code, answer.json()["code"]) == (401, "unauthenticated")


@pytest.mark.parametrize("kind", KINDS)
async def test_a_signed_link_opens_one_asset_and_no_deleted_one(full: House, kind: tuple[str, str, bool, str]) -> None:
    for data_type, paths in (("raster", RASTER), ("vector", VECTOR)):
        asset_id = id_of(name_of(kind, data_type))
        ticket = KEY.ticket(asset_id, int(time.time()) + 100, 0)
        for path in paths:
            joint = "&" if "?" in path else "?"
            answer = await full.client.get(f"{path.format(id=asset_id)}{joint}{PARAMETER}={ticket}")
            assert answer.status_code == (404 if kind[2] else 200), (path, answer.text)
            if "tilejson" in path and answer.status_code == 200:
                assert f"{PARAMETER}={ticket}" in answer.json()["tiles"][0]


async def test_a_ticket_is_for_its_asset_and_its_time(full: House) -> None:
    own_id = id_of(name_of(("approved", "ouo", False, "ddh"), "raster"))
    others = id_of(name_of(("approved", "ouo", False, "other"), "raster"))
    now = int(time.time())
    good = KEY.ticket(own_id, now + 100, 0)
    for asset_id, ticket in (
        (others, good),
        (own_id, KEY.ticket(own_id, now - 1, 0)),
        (own_id, KEY.ticket(own_id, now + 10**8, 0)),
        (own_id, good[:-1] + ("A" if good[-1] != "A" else "B")),
        (own_id, str(now + 99) + good[good.index("-") :]),
        (own_id, ""),
        (own_id, f"{good}&{PARAMETER}={good}"),
    ):
        answer = await full.client.get(f"/raster/assets/{asset_id}/info?{PARAMETER}={ticket}")
        assert answer.status_code in (401, 404), ticket
        assert answer.status_code == 401 or ticket == ""
    listed = await full.client.get(f"/vector/collections?{PARAMETER}={good}")
    assert listed.status_code == 401


async def test_a_revocation_works_within_its_bound(full: House, raster: str) -> None:
    asset_id = await full.publish("revoked_soon", blob_path=raster)
    assert (await full.client.get(f"/raster/assets/{asset_id}/info")).status_code == 200
    await full.execute(
        "UPDATE app.geospatial_assets SET approval_state = 'pending_review', clearance_state = 'uncleared'"
        " WHERE asset_id = %s",
        asset_id,
    )
    await asyncio.sleep(FRESH_SECONDS)
    assert (await full.client.get(f"/raster/assets/{asset_id}/info")).status_code == 404


@pytest.mark.slow
async def test_outside_there_is_only_what_was_exported_and_no_credential_counts(
    outside: ExternalServer, shelf: Storage, raster: str
) -> None:
    container, _, path = raster.partition("/")
    data = await shelf.read(ObjectName(Zone.SILVER, container, path))
    await shelf.put_bytes(ObjectName(Zone.EXTERNAL, "public", "matrix/a.tif"), data)
    await make_table(outside, "matrix", 3)
    raster_id = await outside.publish("outside_raster", blob_path="public/matrix/a.tif")
    vector_id = await outside.publish("outside_vector", "vector", table_name="matrix", outputs=BOX)
    for headers in ({}, {"Authorization": "Bearer gm_whatever"}, {"X-API-Key": "x"}):
        for asset_id, paths in ((raster_id, RASTER), (vector_id, VECTOR)):
            for place in paths:
                answer = await outside.client.get(place.format(id=asset_id), headers=headers)
                assert answer.status_code == 200, (place, answer.text)
                assert answer.headers["cache-control"].startswith("public")
    for kind, (data_type, paths) in product(KINDS, (("raster", RASTER), ("vector", VECTOR))):
        for place in paths:
            asset_id = id_of(name_of(kind, data_type))
            assert (await outside.client.get(place.format(id=asset_id))).status_code == 404
    listed = (await outside.client.get("/viewer/?f=json")).json()
    assert {asset["asset_id"] for asset in listed["assets"]} == {raster_id, vector_id}
    listing = (await outside.client.get("/vector/collections")).json()
    assert [collection["id"] for collection in listing["collections"]] == [vector_id]
