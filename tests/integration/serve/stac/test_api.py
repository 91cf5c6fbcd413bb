"""Requests that are wrong, files, versions, and links."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import psycopg
import pystac.validation
import pytest

from geomill.catalogue.following import follow_decision
from geomill.domain.access.visibility import Sight
from geomill.domain.objectname import ObjectName, Zone
from geomill.store.pool import open_pool
from tests.integration.catalogue.conftest import an_item
from tests.integration.serve.stac.conftest import FILE, Serve, a_file, put_asset

HOUSE = {"sight": Sight(everything=True).model_dump_json()}
WRONG: dict[str, dict[str, Any]] = {
    "a filter that is none": {"filter": {"nothing": 1}},
    "an unknown operator": {"filter": {"op": "almost", "args": [{"property": "height"}, 1]}},
    "a filter of text": {"filter": "height > 1"},
    "an older language": {"filter": {"eq": [{"property": "height"}, 1]}, "filter-lang": "cql-json"},
    "a condition that does not fit": {"filter": {"op": ">", "args": [{"property": "title"}, 5]}},
    "a bbox of three": {"bbox": [1, 2, 3]},
    "a bbox upside down": {"bbox": [0, 60, 10, 50]},
    "a date that is none": {"datetime": "yesterday"},
    "a limit below": {"limit": -1},
    "a token that is none": {"token": "next:zz"},
    "a token that is no text": {"token": "next:ff:fe"},
    "a place that is none": {"intersects": {"type": "Star", "coordinates": []}},
    "both kinds of place": {"bbox": [0, 0, 1, 1], "intersects": {"type": "Point", "coordinates": [0, 0]}},
    "a sort that is none": {"sortby": [{"field": "", "direction": "asc"}]},
    "fields that are null": {"fields": None},
    "a byte that text cannot hold": {"ids": ["a\x00b"]},
    "very deep": {"filter": json.loads('{"op":"not","args":[' * 200 + '{"op":"=","args":[1,1]}' + "]}" * 200)},
}


async def one_asset(database: str, storage: Any, **more: Any) -> None:
    item = an_item(title="a title", height=3)
    async with open_pool(database, size=1) as pool, pool.connection() as conn:
        await put_asset(conn, "one", "ddh", "public", "things", item, [a_file("one")])
        for statement in more.get("statements", ()):
            await conn.execute(statement)
        async with conn.transaction():
            await follow_decision(conn, "one")
    await storage.put_bytes(ObjectName(Zone.SILVER, "cogs", "one/_r2/a.tif"), FILE)


async def test_what_is_wrong_gets_a_problem_document_and_never_500(database: str, serve: Serve, storage: Any) -> None:
    await one_asset(database, storage)
    async with serve(database) as client:
        for name, body in WRONG.items():
            answer = await client.post("/stac/search", json=body)
            assert answer.status_code == 400, (name, answer.text)
            assert answer.headers["content-type"] == "application/problem+json", name
            assert answer.json()["code"] == "invalid_input", name
        for path in ("/stac/collections/none", "/stac/nowhere", "/stac/collections/things/items/none"):
            answer = await client.get(path)
            assert (answer.status_code, answer.json()["code"]) == (404, "not_found"), path
        for path in ("/stac/collections?filter=((", "/stac/collections?sortby=%2B", "/stac/search?fields=-",
                     "/stac/collections?bbox=1,2", "/stac/collections?limit=x"):  # fmt: skip
            assert (await client.get(path)).status_code in (200, 400), path
        for path in ("/stac/collections", "/stac/collections/things/items", "/stac/search"):
            assert (await client.put(path, json={})).status_code == 405
        assert (await client.post("/stac/collections", json={})).status_code == 405
        answer = await client.post("/stac/search", content=b"{")
        assert answer.status_code == 400


async def test_fields_are_those_that_were_asked_for(database: str, serve: Serve, storage: Any) -> None:
    await one_asset(database, storage)
    valid = {"type", "stac_version", "id", "collection", "geometry", "bbox", "links", "assets", "properties"}
    async with serve(database) as client:

        async def found(fields: Any) -> Any:
            answer = await client.post("/stac/search", json={"fields": fields} if fields is not None else {})
            return answer.json()["features"][0]

        assert set(await found(None)) == {*valid, "stac_extensions"}
        for nothing in ({}, {"include": [], "exclude": []}, {"include": None, "exclude": None}):
            item = await found(nothing)
            assert (set(item), set(item["properties"])) == (valid, {"datetime"})
            assert pystac.validation.validate_dict(item)
        item = await found({"include": [], "exclude": ["geometry", "properties.datetime"]})
        assert set(item) == valid - {"geometry", "properties"}
        item = await found({"exclude": ["geometry"]})
        assert set(item) == {*valid, "stac_extensions"} - {"geometry"}
        assert item["properties"]["height"] == 3
        by_get = (await client.get("/stac/search?fields=-geometry")).json()["features"][0]
        assert by_get == item
        assert set(await found({"include": ["properties.height"]})) == {"properties", "links"}


async def test_a_search_that_reads_forever_is_cut_off_and_sessions_cannot_write(
    database: str, serve: Serve, storage: Any
) -> None:
    await one_asset(database, storage)
    async with serve(database) as client:
        await client.get("/stac/search")
        with psycopg.connect(database) as conn:
            assert conn.execute("SELECT count(*) FROM pgstac.searches").fetchone() == (0,)
            assert conn.execute("SELECT count(*) FROM pgstac.search_wheres").fetchone() == (0,)


async def test_counts_are_true_at_once(database: str, serve: Serve, storage: Any) -> None:
    await one_asset(database, storage)
    async with serve(database) as client:
        assert (await client.get("/stac/search")).json()["numberMatched"] == 1
        async with open_pool(database, size=1) as pool, pool.connection() as conn:
            await put_asset(conn, "two", "ddh", "public", "things", an_item(12.0))
        assert (await client.get("/stac/search")).json()["numberMatched"] == 2


async def test_a_date_is_a_whole_day(database: str, serve: Serve) -> None:
    item = an_item()
    item["properties"]["datetime"] = "2024-12-31T18:00:00Z"
    async with open_pool(database, size=1) as pool, pool.connection() as conn:
        await put_asset(conn, "one", "ddh", "public", "things", item)
    intervals = {
        "2024-12-31/2024-12-31": 1, "2024-01-01/2024-12-31": 1, "2024-12-31/..": 1, "../2024-12-31": 1,
        "2024-01-01/2024-12-30": 0, "2025-01-01/..": 0, "2024-12-31T19:00:00Z/2024-12-31": 0,
    }  # fmt: skip
    async with serve(database) as client:
        for interval, count in intervals.items():
            for answer in (
                await client.get("/stac/search", params={"datetime": interval}),
                await client.post("/stac/search", json={"datetime": interval}),
                await client.get("/stac/collections/things/items", params={"datetime": interval}),
                await client.get("/stac/collections", params={"datetime": interval}),
            ):
                assert answer.status_code == 200, (interval, answer.text)
                assert answer.json()["numberReturned"] == count, (interval, answer.url)
        for wrong in ("2024-12-31", "2024-02-31/..", "2024-12-31/2024-12-01"):
            assert (await client.get("/stac/search", params={"datetime": wrong})).status_code == 400


async def test_a_date_that_nobody_knows_is_null(database: str, serve: Serve) -> None:
    item = an_item()
    item["properties"] |= {
        "datetime": None,
        "start_datetime": "2024-01-01T00:00:00Z",
        "end_datetime": "2024-01-02T00:00:00Z",
        "proj:code": None,
    }
    async with open_pool(database, size=1) as pool, pool.connection() as conn:
        await put_asset(conn, "one", "ddh", "public", "things", item)
    async with serve(database) as client:
        found = (await client.get("/stac/collections/things/items/one")).json()
        assert {"datetime", "proj:code"} <= found["properties"].keys()
        assert found["properties"]["datetime"] is None
        assert pystac.validation.validate_dict({**found, "stac_extensions": []})
        assert "pgstac:base_item" not in found
        (listed,) = (await client.post("/stac/search", json={"datetime": "2024-01-01T12:00:00Z"})).json()["features"]
        assert listed == found
        collection = (await client.get("/stac/collections/things")).json()
        assert collection["extent"]["temporal"]["interval"] == [["2024-01-01T00:00:00Z", "2024-01-02T00:00:00Z"]]
        assert pystac.validation.validate_dict(collection)


async def test_files_whole_and_in_parts(database: str, serve: Serve, storage: Any) -> None:
    await one_asset(database, storage)
    size = len(FILE)
    async with serve(database) as client:
        whole = await client.get("/stac/files/one/2/a.tif")
        assert (whole.status_code, whole.content) == (200, FILE)
        assert whole.headers["cache-control"].startswith("public")
        for given, start, end in (("0-9", 0, 10), (f"{size - 5}-", size - 5, size), ("-7", size - 7, size),
                                  (f"5-{size * 2}", 5, size)):  # fmt: skip
            part = await client.get("/stac/files/one/2/a.tif", headers={"Range": f"bytes={given}"})
            assert (part.status_code, part.content) == (206, FILE[start:end]), given
            assert part.headers["content-range"] == f"bytes {start}-{end - 1}/{size}"
        beyond = await client.get("/stac/files/one/2/a.tif", headers={"Range": f"bytes={size}-"})
        assert (beyond.status_code, beyond.headers["content-range"]) == (416, f"bytes */{size}")
        head = await client.head("/stac/files/one/2/a.tif")
        assert (head.status_code, head.headers["content-length"], head.content) == (200, str(size), b"")
        same = await client.get("/stac/files/one/2/a.tif", headers={"If-None-Match": whole.headers["etag"]})
        assert same.status_code == 304
        for path in ("one/1/a.tif", "one/2/b.tif", "one/2/%2e%2e/2/a.tif", "two/2/a.tif", "one/2/", "one/0/a.tif"):
            assert (await client.get(f"/stac/files/{path}")).status_code in (400, 404), path


async def test_versions_are_for_those_who_see_the_asset_whatever_its_state(
    database: str, serve: Serve, storage: Any
) -> None:
    log = """
        INSERT INTO app.asset_revisions (asset_id, revision, processing_status_at_supersession,
            approval_state_at_supersession, clearance_state_at_supersession, outputs, created_at)
        SELECT asset_id, 2, 'completed', 'approved', 'public', outputs, now() FROM app.geospatial_assets
    """
    next_one = """
        UPDATE app.geospatial_assets SET revision = 3, served_revision = 3, approval_state = 'pending_review',
            clearance_state = 'uncleared'
    """
    public = "UPDATE app.geospatial_assets SET approval_state = 'approved', clearance_state = 'public'"
    features = """
        UPDATE app.geospatial_assets SET table_name = 'one', outputs = outputs
            || '{"tables": [{"table_name": "one"}, {"table_name": "one_points"}]}'
            || jsonb_build_object('stac_item', jsonb_set(
                outputs -> 'stac_item', '{assets,features}', '{"href": "/vector/collections/one/items"}'))
    """
    features = f"SET session_replication_role = replica; {features}; RESET session_replication_role"
    await one_asset(database, storage, statements=(features, log, next_one, public))
    async with serve(database) as client:
        here = "/stac/collections/things/items/one"
        for sight, status in ((Sight(everything=True), 200), (Sight(platform_id="ddh"), 200),
                              (Sight(platform_id="arcgis"), 404), (Sight(), 404)):  # fmt: skip
            headers = {"sight": sight.model_dump_json()}
            item = (await client.get(here, headers=headers)).json()
            assert item["properties"]["version"] == "3"
            assert set(item["assets"]) == {"data", "features", "features_points"}
            links = {link["rel"]: link["href"] for link in item["links"]}
            assert ("predecessor-version" in links) == (status == 200)
            old = await client.get(f"{here}/versions/2", headers=headers)
            assert old.status_code == status
            assert (await client.get("/stac/files/one/2/a.tif", headers=headers)).status_code == status
            if status == 200:
                assert links["predecessor-version"] == f"{client.base_url}{here}/versions/2"
                links = {link["rel"]: link["href"] for link in old.json()["links"]}
                assert links["latest-version"] == f"{client.base_url}{here}"
                assert old.json()["properties"]["deprecated"] is True
                # features are served of the latest revision only
                assert list(old.json()["assets"]) == ["data"]
                assert old.json()["assets"]["data"]["href"] == f"{client.base_url}/stac/files/one/2/a.tif"
        assert (await client.get(f"{here}/versions/1", headers=HOUSE)).status_code == 404


async def test_links_carry_the_place_of_the_api(database: str, serve: Serve, storage: Any) -> None:
    await one_asset(database, storage)
    async with serve(database) as client:
        for path in ("/stac/", "/stac/collections", "/stac/collections/things", "/stac/collections/things/items",
                     "/stac/search", "/stac/collections/things/items/one"):  # fmt: skip
            document = (await client.get(path)).json()
            for link in document["links"]:
                beside = link["rel"] in ("alternate", "tilejson")
                assert link["href"].startswith(f"{client.base_url}/" if beside else f"{client.base_url}/stac/"), link
        links = {link["rel"]: link["href"] for link in document["links"]}
        assert links["alternate"] == f"{client.base_url}/viewer/one"
        landing = (await client.get("/stac/")).json()
        assert landing["id"] == "geomill-internal"
        for link in landing["links"]:
            if link["rel"] != "search":
                assert (await client.get(link["href"])).status_code == 200, link
        page = await client.get("/stac/api.html")
        assert "//" not in page.text.replace("http://www.w3.org", "").split("<body>")[0].replace("<!DOCTYPE", "")


async def test_a_database_that_is_away_is_503_and_comes_back(database: str, serve: Serve, storage: Any) -> None:
    await one_asset(database, storage)
    async with serve(database) as client:
        assert (await client.get("/stac/search")).status_code == 200
        with psycopg.connect(database, autocommit=True) as conn:
            conn.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                " WHERE application_name = 'geomill stac' AND datname = current_database()"  # of this test alone
            )
        statuses = []
        async with asyncio.timeout(10):
            while not statuses or statuses[-1] != 200:
                statuses.append((await client.get("/stac/search")).status_code)
        assert set(statuses) <= {200, 503}


@pytest.mark.parametrize("zone", ["internal", "external"])
async def test_each_zone_says_which_one_it_is(database: str, external_database: str, serve: Serve, zone: Any) -> None:
    async with serve(database if zone == "internal" else external_database, zone) as client:
        assert (await client.get("/stac/")).json()["id"] == f"geomill-{zone}"
        assert (await client.get("/stac/search")).json()["numberMatched"] == 0
