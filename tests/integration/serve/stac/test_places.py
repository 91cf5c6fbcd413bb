"""Searches by place: over the antimeridian, and with footprints that are not valid."""

from __future__ import annotations

from typing import Any

import pytest

from geomill.domain.access.visibility import Sight
from geomill.serve.stac.boxes import with_turned_box
from geomill.store.pool import open_pool
from geomill.store.steps import shipped_steps
from tests.integration.catalogue.conftest import an_item
from tests.integration.serve.stac.conftest import Serve, put_asset

HOUSE = {"sight": Sight(everything=True).model_dump_json()}
PLACES = {"fiji": 178.5, "samoa": -172.5, "beyond": 181.5, "vienna": 16.0}
STAR = "POLYGON((0 40,10 50,0 50,10 40,5 60,0 40))"


async def fill(database: str) -> None:
    async with open_pool(database, size=1) as pool, pool.connection() as conn:
        for name, west in PLACES.items():
            await put_asset(conn, name, "ddh", "public", "things", an_item(west, -15.0))


@pytest.mark.parametrize(
    ("bbox", "names"),
    [
        ([177, -20, -170, -10], {"fiji", "samoa", "beyond"}),
        ([179.6, -20, -179.9, -10], set()),
        ([-179, -20, -170, -10], {"samoa", "beyond"}),
        ([10, -20, 20, -10], {"vienna"}),
        ([-180, -90, 180, 90], set(PLACES)),
        ([200, -20, 10, -10], set()),
        ([20, -20, 10, -10], {"fiji", "samoa", "beyond"}),
    ],
)
async def test_a_box_over_the_antimeridian_finds_what_lies_there(
    database: str, serve: Serve, bbox: list[float], names: set[str]
) -> None:
    await fill(database)
    async with serve(database) as client:
        by_post = await client.post("/stac/search", json={"bbox": bbox})
        by_get = await client.get("/stac/search", params={"bbox": ",".join(map(str, bbox))})
        collections = await client.get("/stac/collections", params={"bbox": ",".join(map(str, bbox))})
    for answer in (by_post, by_get):
        assert answer.status_code == 200, answer.text
        assert {item["id"] for item in answer.json()["features"]} == names, answer.text
    assert collections.status_code == 200, collections.text
    assert not names or collections.json()["collections"]


async def test_the_external_server_finds_it_too(external_database: str, serve: Serve) -> None:
    async with serve(external_database, "external") as client:
        answer = await client.post("/stac/search", json={"bbox": [177, -20, -170, -10]})
    assert answer.status_code == 200, answer.text


def test_an_ordinary_box_stays_as_it_is() -> None:
    search = {"bbox": [-180, -90, 180, 90], "limit": 3}
    assert with_turned_box(search) is search
    assert with_turned_box({"limit": 3}) == {"limit": 3}


@pytest.mark.parametrize(
    ("west", "east", "ranges"),
    [
        (177, -170, [(177, 180), (-180, -170)]),
        (170, 190, [(170, 180), (-180, -170)]),
        (-190, -175, [(170, 180), (-180, -175)]),
        (0, 360, [(-180, 180)]),
        (190, 200, [(-170, -160)]),
    ],
)
def test_longitudes_come_back_into_the_range(west: float, east: float, ranges: list[tuple[float, float]]) -> None:
    shape = with_turned_box({"bbox": [west, -1, east, 1]})["intersects"]
    assert [(ring[0][0][0], ring[0][1][0]) for ring in shape["coordinates"]] == ranges


async def test_a_footprint_beyond_180_is_stored_in_its_place(database: str, serve: Serve) -> None:
    await fill(database)
    async with serve(database) as client:
        item = (await client.get("/stac/collections/things/items/beyond")).json()
    points = [point for ring in item["geometry"]["coordinates"] for point in _points(ring)]
    assert {x for x, _ in points} == {-178.5, -177.5}


def _points(part: Any) -> list[Any]:
    return [part] if isinstance(part[0], int | float) else [point for inner in part for point in _points(inner)]


async def test_an_invalid_footprint_fails_no_search(database: str, serve: Serve) -> None:
    """As pgstac's own tools may load it, or an earlier version has."""
    await fill(database)
    async with open_pool(database, size=1) as pool, pool.connection() as conn:
        spoil = "UPDATE pgstac.items SET geometry = st_setsrid(%s::public.geometry, 4326) WHERE id = 'vienna'"
        await conn.execute(spoil, [STAR])
        shape = {"type": "Polygon", "coordinates": [[[1, 41], [9, 42], [8, 58], [2, 57], [1, 41]]]}
        condition = {"op": "s_intersects", "args": [{"property": "geometry"}, shape]}
        async with serve(database) as client:
            for body in ({"intersects": shape}, {"bbox": [1, 41, 9, 58]}, {"filter": condition}):
                answer = await client.post("/stac/search", json=body, headers=HOUSE)
                assert answer.status_code == 200, answer.text
                assert [item["id"] for item in answer.json()["features"]] == ["vienna"]
        step = next(step for step in shipped_steps() if "footprints" in step.title)
        assert (await conn.execute(step.statements)).rowcount == 1
        assert (await conn.execute(step.statements)).rowcount == 0
        row = await (await conn.execute("SELECT bool_and(st_isvalid(geometry)) AS valid FROM pgstac.items")).fetchone()
        assert row is not None
        assert row["valid"] if isinstance(row, dict) else row[0]


@pytest.mark.parametrize(
    "ring",
    [
        [[0, 0], [10, 10], [10, 0], [0, 10], [0, 0]],
        [[0, 0], [10, 0], [5, 0], [0, 0]],
        [[0, 0], [0, 0], [0, 0], [0, 0]],
        [[170, 0], [190, 0], [190, 10], [170, 10], [170, 0]],
        [[0, 0], [360, 0], [360, 10], [0, 10], [0, 0]],
    ],
)
async def test_whatever_a_workflow_makes_is_stored_valid(database: str, ring: Any) -> None:
    item = an_item() | {"geometry": {"type": "Polygon", "coordinates": [ring]}}
    async with open_pool(database, size=1) as pool, pool.connection() as conn:
        await put_asset(conn, "odd", "ddh", "public", "things", item)
        look = """
            SELECT st_isvalid(geometry) AND NOT st_isempty(geometry) AND st_xmin(geometry) >= -180
                AND st_xmax(geometry) <= 180 AS sound
            FROM pgstac.items WHERE id = 'odd'
        """
        row = await (await conn.execute(look)).fetchone()
    assert row is not None
    assert row["sound"] if isinstance(row, dict) else row[0]
