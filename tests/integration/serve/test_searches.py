"""Tiles of a search: what it finds, and never more than its caller may see."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from morecantile import Tile

from geomill.catalogue import pending
from geomill.catalogue.following import CatalogueFollower
from geomill.domain.access.principal import Role
from geomill.sdk import Storage
from tests.integration.raster import sources
from tests.integration.serve.test_rasters import image, published, put_raster
from tests.integration.serve.zone import House, id_of

pytestmark = [
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.filterwarnings("ignore::rasterio.errors.NotGeoreferencedWarning"),
]


async def catalogued(house: House, name: str, output: dict[str, Any], **columns: Any) -> str:
    west, south, east, north = 14.9, 45.0, 15.2, 45.2
    ring = [[west, south], [east, south], [east, north], [west, north], [west, south]]
    item = {
        "geometry": {"type": "Polygon", "coordinates": [ring]},
        "bbox": [west, south, east, north],
        "properties": {"datetime": "2026-01-01T00:00:00Z"},
    }
    await published(house, name, output, "rgb", **columns)
    await house.execute(
        "UPDATE app.geospatial_assets SET revision = 2, served_revision = 2, outputs = outputs || %s::jsonb"
        " WHERE asset_id = %s",
        json.dumps({"stac_item": item}), id_of(name),
    )  # fmt: skip
    async with house.pool.connection() as conn:
        await pending.note(conn, id_of(name), "a test")
    await CatalogueFollower(house.pool).run_once()
    return id_of(name)


@pytest.fixture(scope="module")
def plain(shelf: Storage) -> dict[str, Any]:
    data = sources.noise((3, 120, 160), "uint8", 1, 255)
    return put_raster(shelf, sources.SyntheticRaster(data), "searched", target_crs="EPSG:3857")


async def test_a_search_draws_what_it_finds_for_its_caller(house: House, plain: dict[str, Any]) -> None:
    await catalogued(house, "found", plain, clearance_state="ouo")
    registered = await house.client.post("/raster/searches/register", json={"ids": ["found"]})
    assert registered.status_code == 200, registered.text
    links = {link["rel"]: link["href"] for link in registered.json()["links"]}
    tile = Tile(2218, 1471, 12)
    address = links["tiles"].format(z=12, x=tile.x, y=tile.y)
    assert not image(await house.client.get(address))[3].any()
    reader = await house.key(Role.READER)
    assert image(await house.client.get(address, headers=reader))[3].any()
    partner = await house.key(Role.SUBMITTER, platform_id="other")
    assert not image(await house.client.get(address, headers=partner))[3].any()
    assert (await house.client.get(links["tilejson"])).json()["tiles"] == [links["tiles"]]
    far = await house.client.post("/raster/searches/register", json={"ids": ["found"], "bbox": [0, 0, 1, 1]})
    elsewhere = far.json()["links"][1]["href"].format(z=12, x=tile.x, y=tile.y)
    assert not image(await house.client.get(elsewhere, headers=reader))[3].any()
    await house.execute(
        "UPDATE app.geospatial_assets SET deleted_at = now(), deleted_by = 'x' WHERE asset_id = %s", id_of("found")
    )
    await asyncio.sleep(1.1)
    assert not image(await house.client.get(address, headers=reader))[3].any()


async def test_wrong_searches_are_refused(house: House) -> None:
    for body in ({"filter": {"op": "pg_sleep", "args": [1]}}, {"nobody": 1}, {"bbox": [1, 2]}, {"ids": ["x" * 300]}):
        answer = await house.client.post("/raster/searches/register", json=body)
        assert answer.status_code in (400, 422), body
    for search_id in ("abc", "eJwBAAD__wAAAAE", "x" * 5000):
        assert (
            await house.client.get(f"/raster/searches/{search_id}/tiles/WebMercatorQuad/0/0/0.png")
        ).status_code == 404
