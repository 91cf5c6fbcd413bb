"""Who sees what in the STAC API: every caller, every kind of asset, every way to ask."""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest

from geomill.domain.access.visibility import Sight
from tests.integration.serve.stac.conftest import KINDS, PLATFORMS, Serve, fill

CALLERS = {
    "nobody": None,
    "anonymous": Sight(),
    "house": Sight(everything=True),
    "ddh": Sight(platform_id="ddh"),
    "arcgis": Sight(platform_id="arcgis"),
    "stranger": Sight(platform_id="other"),
    "link": Sight(asset_id="ddh-ouo-mixed"),
}


def seen(sight: Sight | None) -> set[str]:
    """By the rule of the domain."""
    return {
        f"{platform}-{kind}-{where}"
        for platform in PLATFORMS
        for kind, (approval, clearance, deleted) in KINDS.items()
        for where in ("alone", "mixed")
        if not deleted
        and (
            (approval, clearance) == ("approved", "public")
            or (sight or Sight()).covers(platform, f"{platform}-{kind}-{where}")
        )
    }


def collection_of(name: str) -> str:
    platform, kind, where = name.split("-")
    return f"{platform}-mixed" if where == "mixed" else f"{platform}-{kind}"


class Caller:
    def __init__(self, client: httpx.AsyncClient, sight: Sight | None) -> None:
        self.client = client
        self.headers = {"sight": sight.model_dump_json()} if sight else {}

    async def get(self, path: str, **params: Any) -> httpx.Response:
        return await self.client.get(path, params=params, headers=self.headers)

    async def search(self, **body: Any) -> Any:
        answer = await self.client.post("/stac/search", json={"limit": 100, **body}, headers=self.headers)
        assert answer.status_code == 200, answer.text
        return answer.json()


def names(found: Any) -> set[str]:
    return {item["id"] for item in found["features"]}


def not_hidden(answer: httpx.Response, allowed: set[str]) -> None:
    """Nothing of the answer names what is hidden."""
    every = seen(Sight(everything=True)) | {f"{p}-deleted-{w}" for p in PLATFORMS for w in ("alone", "mixed")}
    for name in every - allowed:
        assert f"text of {name}" not in answer.text
        assert f'"{name}"' not in answer.text


@pytest.mark.slow
async def test_the_matrix(database: str, serve: Serve, storage: Any) -> None:
    await fill(database, storage)
    async with serve(database) as client:
        for sight in CALLERS.values():
            await check(Caller(client, sight), seen(sight), sight or Sight())


async def check(caller: Caller, allowed: set[str], sight: Sight) -> None:
    await check_searches(caller, allowed)
    await check_look_ups(caller, allowed)
    await check_collections(caller, allowed, sight)


async def check_searches(caller: Caller, allowed: set[str]) -> None:
    found = await caller.search()
    assert names(found) == allowed
    assert (found["numberMatched"], found["numberReturned"]) == (len(allowed), len(allowed))
    every = {"op": ">=", "args": [{"property": "height"}, 0]}
    either = {"op": "or", "args": [{"op": "=", "args": [{"property": "geomill:clearance"}, "ouo"]}, every]}
    for body in ({"filter": every}, {"filter": either, "filter-lang": "cql2-json"}, {"bbox": [-180, -90, 180, 90]},
                 {"bbox": [-180, -90, 0, 180, 90, 9000]}, {"datetime": "2024-04-17T00:00:00Z"}):  # fmt: skip
        found = await caller.search(**body)
        assert (names(found), found["numberMatched"]) == (allowed, len(allowed)), body
    hidden = {"op": "=", "args": [{"property": "geomill:approval"}, "pending_review"]}
    assert names(await caller.search(filter=hidden)) == {name for name in allowed if "-pending-" in name}
    # a condition that fails on an item does not say that it is there
    unfit = {"op": ">", "args": [{"property": "secret"}, 5]}
    for name in ("ddh-pending-alone", "no-such-item"):
        answer = await caller.client.post("/stac/search", json={"ids": [name], "filter": unfit}, headers=caller.headers)
        assert answer.status_code == (400 if name in allowed else 200)
        not_hidden(answer, allowed)
    answer = await caller.get("/stac/search", limit=100, filter="height >= 0", **{"filter-lang": "cql2-text"})
    assert names(answer.json()) == allowed
    not_hidden(answer, allowed)
    # a caller cannot talk pgstac out of it
    for field in ({"conf": {"nohydrate": True, "context": "off"}}, {"query": {}}):
        answer = await caller.client.post("/stac/search", json=field, headers=caller.headers)
        assert (answer.status_code, answer.json()["errors"][0]["field"]) == (400, *field)
    await check_pages(caller, allowed)


async def check_pages(caller: Caller, allowed: set[str]) -> None:
    collected: list[str] = []
    body: dict[str, Any] = {"limit": 3, "sortby": [{"field": "properties.height", "direction": "asc"}]}
    while True:
        found = await caller.search(**body)
        assert found["numberMatched"] == len(allowed)
        collected += [item["id"] for item in found["features"]]
        following = [link for link in found["links"] if link["rel"] == "next"]
        if not following:
            break
        body = following[0]["body"]
    assert len(collected) == len(allowed)
    assert set(collected) == allowed
    for name in ("ddh-pending-alone", "arcgis-ouo-mixed", "ddh-deleted-mixed", "no-such-item"):
        collection = collection_of(name) if "such" not in name else "none"
        token = f"next:{collection.encode().hex()}:{name.encode().hex()}"
        answer = await caller.get("/stac/search", token=token)
        assert answer.status_code == (200 if name in allowed else 400), (name, answer.text)
        if name not in allowed:
            assert answer.json()["detail"].startswith("the token does not belong to this search")


async def check_look_ups(caller: Caller, allowed: set[str]) -> None:
    for platform in PLATFORMS:
        for kind in KINDS:
            for where in ("alone", "mixed"):
                name = f"{platform}-{kind}-{where}"
                answer = await caller.get(f"/stac/collections/{collection_of(name)}/items/{name}")
                assert answer.status_code == (200 if name in allowed else 404), name
                not_hidden_except_path(answer, allowed)
                file = await caller.get(f"/stac/files/{name}/2/a.tif")
                assert file.status_code == (200 if name in allowed else 404), name
                if name in allowed:
                    assert answer.json()["assets"]["data"]["href"].endswith(f"/stac/files/{name}/2/a.tif")
    missing = await caller.get("/stac/collections/none/items/none")
    assert missing.status_code == 404


def not_hidden_except_path(answer: httpx.Response, allowed: set[str]) -> None:
    if answer.status_code == 404:
        document = answer.json()
        assert set(document) == {"type", "title", "status", "detail", "instance", "code"}
        assert document["code"] == "not_found"
    else:
        not_hidden(answer, allowed)


async def check_collections(caller: Caller, allowed: set[str], sight: Sight) -> None:
    shown = allowed - ({sight.asset_id} if sight.asset_id else set())
    expected = {collection_of(name) for name in shown}
    answer = await caller.get("/stac/collections", limit=100)
    found = answer.json()
    assert {one["id"] for one in found["collections"]} == expected
    assert found["numberMatched"] == len(expected)
    for one in found["collections"]:
        inside = [name for name in shown if collection_of(name) == one["id"]]
        assert one["extent"]["spatial"]["bbox"] == [box(inside)], one["id"]
    for name in {f"{platform}-{kind}" for platform in PLATFORMS for kind in (*KINDS, "mixed")}:
        for path in (f"/stac/collections/{name}", f"/stac/collections/{name}/queryables"):
            assert (await caller.get(path)).status_code == (200 if name in expected else 404), path
        items = await caller.get(f"/stac/collections/{name}/items", limit=100)
        if name in expected:
            inside = {one for one in allowed if collection_of(one) == name}
            assert (names(items.json()), items.json()["numberMatched"]) == (inside, len(inside))
            not_hidden(items, allowed)
        else:
            assert items.status_code == 404
    # searching collections by place does not tell where hidden items lie
    for north, kind in enumerate(KINDS):
        answer = await caller.get("/stac/collections", limit=100, bbox=f"-1,{5 * north},99,{5 * north + 1}")
        found = {one["id"] for one in answer.json()["collections"]}
        assert found == {one for one in expected if touches(one, shown, 5.0 * north)}, kind


def place(name: str) -> list[float]:
    platform, kind, where = name.split("-")
    west, south = 20.0 * PLATFORMS.index(platform) + 4 * (where == "mixed"), 5.0 * list(KINDS).index(kind)
    return [west, south, west + 1, south + 1]


def box(inside: list[str]) -> list[float]:
    places = [place(name) for name in inside]
    low, high = [min(one[i] for one in places) for i in (0, 1)], [max(one[i] for one in places) for i in (2, 3)]
    return low + high


def touches(collection: str, shown: set[str], south: float) -> bool:
    _west, low, _east, high = box([name for name in shown if collection_of(name) == collection])
    return low <= south + 1 and high >= south


async def test_what_describes_the_api_is_the_same_for_all(database: str, serve: Serve, storage: Any) -> None:
    await fill(database, storage)
    async with serve(database) as client:
        for path in ("/stac/", "/stac/conformance", "/stac/queryables", "/stac/api"):
            texts = {(await Caller(client, sight).get(path)).text for sight in CALLERS.values()}
            assert len(texts) == 1, path


@pytest.mark.parametrize("sight", CALLERS.values(), ids=CALLERS)
async def test_the_external_zone_shows_what_it_has_to_everybody(
    external_database: str, serve: Serve, sight: Sight | None
) -> None:
    from geomill.catalogue.bulk import put_items
    from geomill.store.pool import open_pool
    from tests.integration.catalogue.conftest import an_item

    items = [{**an_item(n), "id": f"i{n}", "collection": "outside"} for n in range(3)]
    document = {"outside": {"stac_version": "1.1.0", "description": "d", "license": "other"}}
    async with open_pool(external_database, size=1) as pool, pool.connection() as conn:
        assert await put_items(conn, items, document) == 3
    async with serve(external_database, "external") as client:
        caller = Caller(client, sight)
        found = await caller.search()
        assert (names(found), found["numberMatched"]) == ({"i0", "i1", "i2"}, 3)
        assert [one["id"] for one in (await caller.get("/stac/collections")).json()["collections"]] == ["outside"]
        assert (await caller.get("/stac/collections/outside/items/i1")).status_code == 200
        version = await caller.get("/stac/collections/outside/items/i1/versions/1")
        assert version.status_code == 404


async def test_what_the_catalogue_has_not_caught_up_with_is_shown_to_nobody(
    database: str, serve: Serve, storage: Any
) -> None:
    await fill(database, storage)
    import psycopg

    with psycopg.connect(database, autocommit=True) as conn:
        conn.execute("INSERT INTO catalogue.pending (asset_id, reason) VALUES ('ddh-public-mixed', 'held')")
    async with serve(database) as client:
        for sight in CALLERS.values():
            allowed = seen(sight) - {"ddh-public-mixed"}
            found = await Caller(client, sight).search()
            assert (names(found), found["numberMatched"]) == (allowed, len(allowed))
            answer = await Caller(client, sight).get("/stac/collections/ddh-mixed/items/ddh-public-mixed")
            assert answer.status_code == 404


def test_every_cell_is_one_that_differs() -> None:
    """A matrix in which all see the same would prove nothing."""
    assert len({json.dumps(sorted(seen(sight))) for sight in CALLERS.values()}) == 5
