"""The gateway with its services: mounted beside the API, and links to them that are ready to use."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
from httpx import AsyncClient

from geomill.api.links import Links
from geomill.domain.access.principal import Role
from geomill.domain.access.signed_link import PARAMETER
from geomill.domain.objectname import ObjectName, Zone
from geomill.sdk.testing import folder_storage
from geomill.serve.services import Services
from geomill.settings import AccessSettings
from geomill.storage import Storage
from geomill.store.pool import open_pool
from tests.integration.api.conftest import BASE, bearing, client_of, make_key
from tests.integration.raster import sources, steps
from tests.integration.serve.zone import KEY, House, id_of

LOCATION = {"dataset_id": "d", "resource_id": "r", "version_id": "v"}


@pytest.fixture
def storage(tmp_path: Any) -> Storage:
    return folder_storage(tmp_path)


@pytest.fixture
async def gateway(
    make_platform: Callable[..., Any], database: str, storage: Storage
) -> AsyncIterator[tuple[AsyncClient, House]]:
    """A gateway whose caller shows no credential, and its zone."""
    services = Services(Zone.SILVER, database, storage, KEY)
    options = {"services": services, "links": Links("", KEY, 600), "storage": storage}
    async with open_pool(database, size=2) as pool, client_of(database, make_platform(), **options) as client:
        await House.prepare(pool)
        yield client, House(database, storage, pool, None, client)  # type: ignore[arg-type]


async def test_the_gateway_answers_for_the_services_too(gateway: tuple[AsyncClient, House], storage: Storage) -> None:
    client, house = gateway
    sources.put(storage, sources.SyntheticRaster(sources.noise((1, 100, 100))))
    path = steps.cog(storage, "one")["blob_path"]
    hidden = await house.publish("hidden", blob_path=path, clearance_state="ouo")
    headers = bearing(await make_key(house.url, Role.READER))
    assert (await client.get(f"/raster/assets/{hidden}/info")).status_code == 404
    assert (await client.get(f"/raster/assets/{hidden}/info", headers=headers)).status_code == 200
    wrong = await client.get(f"/raster/assets/{hidden}/info", headers={"X-API-Key": "gm_wrong"})
    assert (wrong.status_code, wrong.json()["code"]) == (401, "unauthenticated")
    assert (await client.get("/vector/collections")).json()["collections"] == []
    assert "text/html" in (await client.get("/viewer/", headers={"Accept": "text/html"})).headers["content-type"]
    assert (await client.get("/rasters/x")).status_code == 404
    assert (await client.get("/health")).status_code == 401

    admin = bearing(await make_key(house.url, Role.ADMIN))
    figures = (await client.get("/metrics", headers=admin)).text
    assert 'geomill_http_request_seconds_count{method="GET",route="/raster/info"} 2.0' in figures
    assert hidden not in figures


async def test_links_open_what_they_are_for_without_a_credential(
    gateway: tuple[AsyncClient, House], storage: Storage
) -> None:
    client, house = gateway
    sources.put(storage, sources.SyntheticRaster(sources.noise((1, 100, 100))))
    path = steps.cog(storage, "one")["blob_path"]
    await house.publish("shown", blob_path=path)
    await house.publish("hidden", blob_path=path, clearance_state="ouo")
    await house.execute(
        "CREATE TABLE geo.t AS SELECT 1 AS id, ST_SetSRID(ST_MakePoint(1, 2), 4326)::geometry(Point, 4326) AS geom"
    )
    await house.publish("layer", "vector", table_name="t", clearance_state="ouo", outputs={"bbox": [1, 2, 1, 2]})
    await house.publish("gone", blob_path=path, deleted_at="2026-01-01", deleted_by="x")
    reader = bearing(await make_key(house.url, Role.READER))
    for name, signed in (("shown", False), ("hidden", True), ("layer", True)):
        body = (await client.get(f"/api/assets/{id_of(name)}/links", headers=reader)).json()
        assert body["revision"] == 1
        assert (body["expires_at"] is not None) == signed
        common = {"viewer", "tilejson", "tiles", "stac_item", "wms"}
        assert set(body["links"]) == common | (
            {"features", "collection", "download"} if name == "layer" else {"wmts", "preview"}
        )
        for kind, link in body["links"].items():
            assert link.startswith(BASE)
            assert (PARAMETER in link) == signed
            if kind not in ("tiles", "stac_item"):
                assert (await client.get(link)).status_code == 200, link
                plain = link.partition(PARAMETER)[0].rstrip("?&")
                assert (await client.get(plain)).status_code == (404 if signed else 200)
        status = (await client.get(f"/api/platform/status/{id_of(name)}", headers=reader)).json()
        assert set(body["links"]) <= set(status["links"])
        assert (await client.get(status["links"]["viewer"])).status_code == 200
    gone = (await client.get(f"/api/assets/{id_of('gone')}/links", headers=reader)).json()
    assert (gone["links"], gone["revision"]) == ({}, None)


async def test_links_are_given_to_whom_the_asset_is_shown(gateway: tuple[AsyncClient, House]) -> None:
    client, house = gateway
    await house.publish("others", platform_id="other", blob_path="cogs/x.tif", clearance_state="ouo")
    path = f"/api/assets/{id_of('others')}/links"
    partner = bearing(await make_key(house.url, Role.SUBMITTER, platform_id="ddh"))
    assert (await client.get(path)).status_code == 401
    assert (await client.get(path, headers=partner)).status_code == 404
    reader = bearing(await make_key(house.url, Role.READER))
    for seconds, status in ((60, 200), (0, 422), (10**9, 422)):
        assert (await client.get(path, params={"seconds": seconds}, headers=reader)).status_code == status


async def test_without_services_there_are_none(make_platform: Callable[..., Any], database: str) -> None:
    async with client_of(database, make_platform(), access=AccessSettings()) as client:
        assert (await client.get("/raster/assets/x/info")).status_code == 404


async def test_a_signed_link_opens_the_item_and_the_links_in_it(
    gateway: tuple[AsyncClient, House], storage: Storage
) -> None:
    client, house = gateway
    await storage.put_bytes(ObjectName(Zone.SILVER, "cogs", "hidden/_r1/a.tif"), b"pixels")
    file = {"zone": "silver", "container": "cogs", "path": "hidden/_r1/a.tif", "size": 6, "sha256": "x"}
    item = {
        "geometry": {"type": "Point", "coordinates": [1, 2]},
        "bbox": [1, 2, 1, 2],
        "properties": {"datetime": "2026-01-01T00:00:00Z", "renders": {"default": {}}},
        "assets": {"data": {"href": "./a.tif"}},
    }
    outputs = {"stac_item": item, "files": [{**file, "media_type": "image/tiff"}]}
    asset_id = await house.publish("hidden", blob_path="cogs/hidden/_r1/a.tif", clearance_state="ouo", outputs=outputs)
    operator = bearing(await make_key(house.url, Role.OPERATOR))
    style = {"style": {"kind": "raster", "rescale": [[0, 1]]}}
    put = await client.put(f"/api/assets/{asset_id}/styles/x", json=style, headers=operator)
    assert put.status_code == 200  # it also writes the entry of the catalogue
    links = (await client.get(f"/api/assets/{asset_id}/links", headers=operator)).json()["links"]
    assert (await client.get(links["download"])).content == b"pixels"
    assert (await client.get(links["download"].partition("?")[0])).status_code == 404
    opened = await client.get(links["stac_item"])
    assert (opened.status_code, opened.json()["properties"]["geomill:asset_id"]) == (200, asset_id)
    assert (await client.get(opened.json()["assets"]["data"]["href"])).content == b"pixels"
    assert (await client.get(links["stac_item"].partition("?")[0])).status_code == 404
    other = await house.publish("other_item", clearance_state="ouo", outputs={"stac_item": item})
    assert (await client.get(links["stac_item"].replace(asset_id, other))).status_code == 401
    await house.execute(
        "UPDATE app.geospatial_assets SET deleted_at = now(), deleted_by = 'x', withdrawn_through = 1"
        " WHERE asset_id = %s",
        asset_id,
    )
    await asyncio.sleep(1.1)
    for name in ("stac_item", "download"):
        assert (await client.get(links[name])).status_code in (401, 404), name
