"""Features through HTTP: OGC API Features and Tiles of the tables of assets."""

from __future__ import annotations

import asyncio
import csv
import io
import json
import time
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np
import pyogrio
import pytest
from morecantile import tms as grids

from geomill.domain.access.principal import Role
from geomill.domain.access.signed_link import PARAMETER
from geomill.serve.vector.crs import CONFORMANCE
from tests.integration.serve.zone import KEY, House

pytestmark = pytest.mark.asyncio(loop_scope="module")

WEB = grids.get("WebMercatorQuad")


async def make_table(house: House, name: str, rows: int = 100, srid: int = 4326) -> None:
    """A grid of small squares around 15 E, 45 N, a hundredth of a degree apart."""
    square = "ST_MakeEnvelope(15 + (n %% 10) * 0.01, 45 + (n / 10) * 0.01, 15.005 + (n %% 10) * 0.01,"
    square += " 45.005 + (n / 10) * 0.01, 4326)"
    await house.execute(
        f'CREATE TABLE geo."{name}" (id integer PRIMARY KEY, "select" text, size double precision, made timestamptz,'
        f" geom geometry(MultiPolygon, {srid}))"
    )
    await house.execute(
        f"INSERT INTO geo.\"{name}\" SELECT n, 'name ' || n, n * 1.5,"
        f" timestamptz '2020-01-01 00:00Z' + n * interval '1 day', ST_Transform(ST_Multi({square}), {srid})"
        f" FROM generate_series(0, {rows - 1}) AS n WHERE %s",
        True,
    )
    await house.execute(f'CREATE INDEX ON geo."{name}" USING gist (geom)')


async def published(house: House, **columns: Any) -> tuple[str, str]:
    """The path of the collection, and its id."""
    name = f"v_{uuid4().hex[:10]}"
    await make_table(house, name, srid=columns.pop("srid", 4326))
    outputs = {"bbox": [15.0, 45.0, 15.095, 45.095]}
    asset_id = await house.publish(name, "vector", table_name=name, outputs=outputs, **columns)
    return f"/vector/collections/{asset_id}", asset_id


async def get(house: House, path: str, **params: Any) -> Any:
    answer = await house.client.get(path, params=params or None)
    assert answer.status_code == 200, answer.text
    return answer.json()


async def ids(house: House, path: str, **params: Any) -> list[int]:
    page = await get(house, f"{path}/items", limit=1000, **params)
    assert page["numberMatched"] == page["numberReturned"] == len(page["features"])
    return [feature["id"] for feature in page["features"]]


async def test_a_new_table_is_there_at_once(house: House) -> None:
    before = {collection["id"] for collection in (await get(house, "/vector/collections"))["collections"]}
    path, asset_id = await published(house)
    after = (await get(house, "/vector/collections"))["collections"]
    assert {collection["id"] for collection in after} - before == {asset_id}
    (collection,) = [collection for collection in after if collection["id"] == asset_id]
    assert collection["extent"]["spatial"]["bbox"] == [[15.0, 45.0, 15.095, 45.095]]
    assert all(link["href"].startswith("http://127.0.0.1:8001/vector/") for link in collection["links"])
    page = await get(house, f"{path}/items")
    assert (page["numberMatched"], page["numberReturned"]) == (100, 10)


async def test_features_are_filtered_and_paged(house: House) -> None:
    path, _ = await published(house)
    assert await ids(house, path, bbox="15.001,45.001,15.012,45.002") == [0, 1]
    assert await ids(house, path, ids="3,5") == [3, 5]
    assert await ids(house, path, filter="size > 145 AND \"select\" <> 'name 98'") == [97, 99]
    assert await ids(house, path, datetime="2020-01-03T00:00:00Z/2020-01-05T00:00:00Z") == [2, 3, 4]
    assert await ids(house, path, datetime="2020-01-03/2020-01-05") == [2, 3, 4]
    assert await ids(house, path, datetime="2020-01-03/2020-01-03") == [2]
    assert await ids(house, path, datetime="../2020-01-02") == [0, 1]
    assert await ids(house, path, filter="select LIKE 'name 1%' AND id < 12") == [1, 10, 11]
    shape = "POLYGON((15.001 45.001, 15.012 45.001, 15.012 45.002, 15.001 45.002, 15.001 45.001))"
    assert await ids(house, path, filter=f"S_INTERSECTS(geom, {shape})") == [0, 1]
    clause = {"op": "in", "args": [{"property": "id"}, [7, 8]]}
    assert await ids(house, path, filter=json.dumps(clause), **{"filter-lang": "cql2-json"}) == [7, 8]
    assert (await ids(house, path, sortby="-id"))[:3] == [99, 98, 97]
    page, listed_ids = await get(house, f"{path}/items", limit=30), []
    while page:
        listed_ids += [feature["id"] for feature in page["features"]]
        following = [link["href"] for link in page["links"] if link["rel"] == "next"]
        page = await get(house, following[0]) if following else None
    assert listed_ids == list(range(100))
    feature = await get(house, f"{path}/items/42")
    assert feature["properties"]["select"] == "name 42"
    assert (await house.client.get(f"{path}/items/4200")).status_code == 404


async def test_other_reference_systems_are_told_in_degrees(house: House) -> None:
    path, _ = await published(house, srid=32633)
    assert await ids(house, path, bbox="15.001,45.001,15.012,45.002") == [0, 1]
    ring = (await get(house, f"{path}/items/0"))["geometry"]["coordinates"][0][0]
    assert min(point[0] for point in ring) == pytest.approx(15, abs=1e-6)
    assert max(point[1] for point in ring) == pytest.approx(45.005, abs=1e-6)


async def test_coordinates_come_in_the_system_that_is_asked_for(house: House) -> None:
    path, _ = await published(house, srid=32633)
    epsg = "http://www.opengis.net/def/crs/EPSG/0/"

    async def corner(crs: str, **more: Any) -> tuple[float, float]:
        shape = (await get(house, f"{path}/items/0", crs=crs, **more))["geometry"]
        assert set(shape) == {"type", "coordinates"}
        points = np.array(shape["coordinates"]).reshape(-1, 2)
        return float(points[:, 0].min()), float(points[:, 1].min())

    assert await corner("http://www.opengis.net/def/crs/OGC/1.3/CRS84") == pytest.approx((15, 45), abs=1e-6)
    assert await corner(f"{epsg}4326") == pytest.approx((45, 15), abs=1e-6)
    assert await corner("EPSG:3857") == pytest.approx((1669792.362, 5621521.486), abs=0.01)
    assert await corner(f"[{epsg}32633]") == pytest.approx((500000, 4982950.4), abs=0.1)
    for system, box in (
        (f"{epsg}4326", "45.001,15.001,45.002,15.012"),
        (f"{epsg}32633", "500080,4983062,500945,4983172"),
        ("EPSG:3857", "1669904,5621679,1671128,5621837"),
    ):
        assert await ids(house, path, bbox=box, **{"bbox-crs": system}) == [0, 1], system
    page = await get(house, f"{path}/items", limit=1, crs="EPSG:3857")
    assert "crs=EPSG" in next(link["href"] for link in page["links"] if link["rel"] == "next")
    for query in ("crs=EPSG:2154", "crs=EPSG:999999", "crs=metres", "crs=EPSG:5773", "crs=OGC:CRS84h",
                  "bbox=1,2,3,4&bbox-crs=metres", "bbox=1,2,3,4&bbox-crs=EPSG:999999"):  # fmt: skip
        answer = await house.client.get(f"{path}/items?{query}")
        assert (answer.status_code, answer.json()["code"]) == (400, "unknown_crs"), query
        (problem,) = answer.json()["errors"]
        assert query.rpartition("=")[2] in problem["message"]
        assert "http://www.opengis.net/def/crs/EPSG/0/3857" in problem["hint"]
    for query in ("bbox=1,2,3&bbox-crs=EPSG:3857", "bbox=1e30,1e30,2e30,2e30&bbox-crs=EPSG:32633"):
        answer = await house.client.get(f"{path}/items?{query}")
        assert (answer.status_code, answer.json()["code"]) == (422, "invalid_input"), query


async def test_reference_systems_are_told(house: House) -> None:
    """OGC API Features, part 2."""
    epsg, crs84 = "http://www.opengis.net/def/crs/EPSG/0/", "http://www.opengis.net/def/crs/OGC/1.3/CRS84"
    assert CONFORMANCE in (await get(house, "/vector/conformance"))["conformsTo"]
    (degrees, first), (metres, second) = await published(house), await published(house, srid=32633)
    common = [crs84, f"{epsg}4326", f"{epsg}3857"]
    listed = await get(house, "/vector/collections", limit=1000)
    assert listed["crs"] == common
    by_id = {collection["id"]: collection for collection in listed["collections"]}
    assert (by_id[first]["crs"], by_id[first]["storageCrs"]) == (["#/crs"], crs84)
    assert (by_id[second]["crs"], by_id[second]["storageCrs"]) == (["#/crs", f"{epsg}32633"], f"{epsg}32633")
    in_degrees, in_metres = await get(house, degrees), await get(house, metres)
    assert by_id[first]["title"] == in_degrees["title"]
    assert (in_degrees["crs"], in_degrees["storageCrs"]) == (common, crs84)
    assert (in_metres["crs"], in_metres["storageCrs"]) == ([*common, f"{epsg}32633"], f"{epsg}32633")
    for place in ("items", "items/0"):
        for system in in_metres["crs"]:
            answer = await house.client.get(f"{metres}/{place}", params={"crs": system})
            assert answer.headers["content-crs"] == f"<{system}>"
        assert (await house.client.get(f"{metres}/{place}")).headers["content-crs"] == f"<{crs84}>"
    assert "content-crs" not in (await house.client.get(metres)).headers
    items = (await get(house, "/vector/api"))["paths"]["/collections/{collectionId}/items"]["get"]["parameters"]
    assert {"crs", "bbox-crs"} <= {parameter["name"] for parameter in items}


async def test_heights_have_a_system_of_their_own(house: House) -> None:
    path, asset_id = await published(house)
    table = (await get(house, path))["title"]
    await house.execute(
        f'ALTER TABLE geo."{table}" ALTER geom TYPE geometry(MultiPolygonZ, 4326) USING ST_Force3D(geom)'
    )
    await house.execute(
        "UPDATE app.geospatial_assets SET revision = 2, served_revision = 2 WHERE asset_id = %s", asset_id
    )
    await asyncio.sleep(1.1)  # what is known of an asset is a second old at most
    collection, answer = await get(house, path), await house.client.get(f"{path}/items/0")
    height = "http://www.opengis.net/def/crs/OGC/0/CRS84h"
    assert (collection["crs"][0], collection["storageCrs"], answer.headers["content-crs"]) == (
        height,
        height,
        f"<{height}>",
    )
    assert len(answer.json()["geometry"]["coordinates"][0][0][0]) == 3


async def test_a_column_called_crs_is_a_column(house: House) -> None:
    """Then nothing else is promised."""
    path, asset_id = await published(house)
    table = (await get(house, path))["title"]
    await house.execute(f"ALTER TABLE geo.\"{table}\" ADD crs text DEFAULT 'EPSG:3857'")
    await house.execute(
        "UPDATE app.geospatial_assets SET revision = 2, served_revision = 2 WHERE asset_id = %s", asset_id
    )
    await asyncio.sleep(1.1)
    listed = {
        collection["id"]: collection
        for collection in (await get(house, "/vector/collections", limit=1000))["collections"]
    }
    crs84 = "http://www.opengis.net/def/crs/OGC/1.3/CRS84"
    assert (await get(house, path))["crs"] == listed[asset_id]["crs"] == [crs84]
    answer = await house.client.get(f"{path}/items", params={"crs": "EPSG:3857"})
    assert (answer.json()["numberMatched"], answer.headers["content-crs"]) == (100, f"<{crs84}>")


async def test_tiles_hold_what_is_there(house: House) -> None:
    path, asset_id = await published(house)
    tilejson = await get(house, f"{path}/tiles/WebMercatorQuad/tilejson.json")
    assert f"/vector/collections/{asset_id}/tiles/WebMercatorQuad/" in tilejson["tiles"][0]
    assert tilejson["vector_layers"][0]["fields"]["select"] == "string"
    here, there = WEB.tile(15.02, 45.02, 12), WEB.tile(100, 10, 12)
    full = await house.client.get(f"{path}/tiles/WebMercatorQuad/12/{here.x}/{here.y}")
    assert full.headers["content-type"] == "application/vnd.mapbox-vector-tile"
    assert b"name 11" in full.content
    assert b"select" in full.content
    empty = await house.client.get(f"{path}/tiles/WebMercatorQuad/12/{there.x}/{there.y}")
    assert (empty.status_code, empty.content) == (200, b"")


@pytest.mark.parametrize(
    "clause",
    [
        "pg_sleep(10) = 1",
        "pg_read_file('/etc/passwd') = 'x'",
        "id = 1 AND lo_import('/etc/passwd') > 0",
        '{"op": "=", "args": [{"op": "current_setting", "args": ["data_directory"]}, "x"]}',
        '{"op": "=", "args": [{"property": "x\\" OR 1=1 --"}, 1]}',
        "nobody = 1",
        "id = ",
        "((((" * 30,
        "(" * 20 + "id =" + ")" * 20,
    ],
)
async def test_a_filter_calls_no_function_of_the_database(house: House, clause: str) -> None:
    path, _ = await published(house)
    for where in ("items", "tiles/WebMercatorQuad/12/2218/1473"):
        answer = await house.client.get(f"{path}/{where}", params={"filter": clause})
        assert (answer.status_code, answer.json()["code"]) == (422, "invalid_input"), answer.text


@pytest.mark.parametrize(
    "query",
    [
        "bbox=a,b,c,d",
        "bbox=1,2",
        "bbox=500,0,501,1",
        "limit=1000000",
        "limit=-1",
        "sortby=nobody",
        "size=abc",
        "ids=abc",
        "datetime=yesterday",
        "geom-column=nobody",
        "filter=size LIKE 'x%25'",
        "datetime=2020-01-05T00:00:00Z/2020-01-01T00:00:00Z",
    ],
)
async def test_a_wrong_question_is_the_callers_fault(house: House, query: str) -> None:
    path, _ = await published(house)
    answer = await house.client.get(f"{path}/items?{query}")
    assert answer.status_code in (400, 404, 422), answer.text
    assert answer.headers["content-type"] == "application/problem+json"


async def test_only_tables_of_assets_are_there(house: House) -> None:
    await make_table(house, "nobodys", 3)
    await house.execute("CREATE TABLE public.secret (id integer PRIMARY KEY, geom geometry(Point, 4326))")
    for name in ("geo.nobodys", "nobodys", "public.secret", "public.st_squaregrid", "app.api_keys"):
        assert (await house.client.get(f"/vector/collections/{name}/items")).status_code == 404
    collections = (await get(house, "/vector/collections", limit=1000))["collections"]
    assert not {collection["title"] for collection in collections} & {"nobodys", "secret"}


async def test_a_new_revision_is_the_same_collection(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("geomill.serve.directory.FRESH_SECONDS", 0.0)
    path, asset_id = await published(house)
    await make_table(house, f"{asset_id}_r2", 7)
    await house.execute(
        "UPDATE app.geospatial_assets SET revision = 2, served_revision = 2, table_name = %s WHERE asset_id = %s",
        f"{asset_id}_r2",
        asset_id,
    )
    assert (await get(house, f"{path}/items"))["numberMatched"] == 7


async def test_pages_for_people_escape_what_they_show(house: House) -> None:
    path, _ = await published(house)
    await house.execute(
        f'UPDATE geo."{(await get(house, path))["title"]}" SET "select" = \'<script>alert(1)</script>\' WHERE id = %s',
        0,
    )
    wholes = ("/vector/", "/vector/conformance", "/vector/api.html", "/vector/collections", "/vector/tileMatrixSets")
    parts = ("", "/items", "/items/0", "/queryables", "/tiles")
    for place in (*wholes, *(path + part for part in parts)):
        page = await house.client.get(place, headers={"Accept": "text/html"})
        assert page.status_code == 200, (place, page.text)
        assert page.headers["content-type"].startswith("text/html"), place
        assert "<script" not in page.text
    assert "&lt;script&gt;" in (await house.client.get(f"{path}/items/0?f=html")).text


async def test_who_has_it_already_is_told_so(house: House) -> None:
    path, _ = await published(house)
    first = await house.client.get(f"{path}/items")
    again = await house.client.get(f"{path}/items", headers={"If-None-Match": first.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")


async def test_a_full_tile_shows_some_of_everywhere(house: House, tmp_path: Path) -> None:
    """The tile does not show the features that were loaded first: the map would have holes."""
    path, _ = await published(house)
    tile = WEB.tile(15.05, 45.05, 8)
    answer = await house.client.get(f"{path}/tiles/WebMercatorQuad/8/{tile.x}/{tile.y}", params={"limit": 20})
    assert answer.status_code == 200, answer.text
    file = tmp_path / "tile.pbf"
    file.write_bytes(answer.content)
    numbers = sorted(int(name.split()[1]) for name in pyogrio.raw.read(file, columns=["select"])[3][0])
    assert len(numbers) == 20
    assert len({number // 10 for number in numbers}) >= 6  # of ten rows of squares


async def test_all_tables_of_a_layer_that_was_split_are_served(house: House) -> None:
    name = f"v_{uuid4().hex[:10]}"
    tables = [name, f"{name}_lines", f"{name}_points"]
    for number, table in enumerate(tables):
        await make_table(house, table, rows=10 + number)
    outputs = {"bbox": [15.0, 45.0, 15.1, 45.1], "tables": [{"table_name": table} for table in tables[::-1]]}
    asset_id = await house.publish(name, "vector", table_name=name, outputs=outputs, clearance_state="ouo")
    names = [asset_id, f"{asset_id}.lines", f"{asset_id}.points"]
    reader = await house.key(Role.READER)
    first = (await house.client.get("/vector/collections?limit=2", headers=reader)).json()
    rest = (await house.client.get("/vector/collections?limit=1&offset=2", headers=reader)).json()
    assert [collection["id"] for collection in first["collections"] + rest["collections"]] == names
    assert first["numberMatched"] == rest["numberMatched"]
    ticket = {PARAMETER: KEY.ticket(asset_id, int(time.time()) + 60, 0)}
    for number, name in enumerate(names):
        path = f"/vector/collections/{name}/items"
        assert (await house.client.get(path)).status_code == 404
        for options in ({"headers": reader}, {"params": ticket}):
            answer = await house.client.get(path, **options)  # type: ignore[arg-type]
            assert answer.json()["numberMatched"] == 10 + number
    assert (await house.client.get(f"/vector/collections/{asset_id}.areas", headers=reader)).status_code == 404
    page = (await house.client.get(f"/viewer/{asset_id}", headers=reader)).text
    assert all(f"/vector/collections/{name}/tiles/" in page for name in names)


async def test_csv_has_no_formulas(house: House) -> None:
    path, asset_id = await published(house)
    await house.execute(
        f'UPDATE geo."{await table_of(house, asset_id)}" SET "select" = %s WHERE id = 3', "=HYPERLINK(A1)"
    )
    text = (await house.client.get(f"{path}/items", params={"f": "csv", "ids": "3", "bbox-only": "true"})).text
    (row,) = csv.DictReader(io.StringIO(text))
    assert (row["select"], row["size"]) == ("'=HYPERLINK(A1)", "4.5")
    nothing = await house.client.get(f"{path}/items", params={"f": "csv", "filter": "id < 0"})
    assert (nothing.status_code, nothing.text) == (200, "")


async def table_of(house: House, asset_id: str) -> str:
    query = "SELECT table_name FROM app.geospatial_assets WHERE asset_id = %s"
    async with house.pool.connection() as conn:
        row = await (await conn.execute(query, [asset_id])).fetchone()
    assert row is not None
    return str(row["table_name"])
