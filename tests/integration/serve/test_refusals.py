"""Requests that no service can answer are refused with a problem document, and cost next to nothing."""

from __future__ import annotations

import json
from typing import Any

import pytest
import pytest_asyncio

from tests.integration.serve.test_vectors import published
from tests.integration.serve.zone import House

pytestmark = pytest.mark.asyncio(loop_scope="module")

WORLD = "S_INTERSECTS(geom,BBOX(-180,-90,180,90))"
ROW = {"op": "=", "args": [{"property": "id"}, 1]}


def nested(levels: int) -> dict[str, Any]:
    node: dict[str, Any] = ROW
    for _ in range(levels):
        node = {"op": "not", "args": [node]}
    return node


HOSTILE = {
    "a chain of NOT": "NOT " * 2_000 + "id = 1",
    "a short chain of NOT": "NOT " * 100 + "id = 1",
    "a chain of minus": "id = " + "-" * 4_900 + "1",
    "parentheses": "(" * 14 + "id = " + ")" * 14,
    "a long text in parentheses": "(" * 7 + "id IN (" + "1," * 1_500 + "1) AND id = " + ")" * 7,
    "a long sum": "id = " + "1+" * 2_400 + "1",
    "many conditions": " OR ".join(["id=1"] * 900),
    "many values": "id IN (" + ",".join(["1"] * 2_400) + ")",
    "a long text": "id = '" + "x" * 10_000 + "'",
    "an open text": "id = 'x",
    "nested JSON": json.dumps(nested(400)),
    "JSON that never ends": "{" + '"a":[' * 2_000,
    "wide JSON": json.dumps({"op": "in", "args": [{"property": "id"}, [1] * 1_500]}),
    "NUL": "name = 'a\x00b'",
    "NUL in JSON": json.dumps({"op": "=", "args": [{"property": "select"}, "a\x00b"]}),
    "an endless number": json.dumps({"op": "=", "args": [{"property": "id"}, 10**400]}),
    "no condition": "id",
    "a number": "1",
    "half a geometry": "S_INTERSECTS(geom,POLYGON((0 0,1 1)))",
    "half a box": "S_INTERSECTS(geom,BBOX(0,0,1))",
    "no arguments": json.dumps({"op": "=", "args": []}),
    "arguments that are none": json.dumps({"op": "and", "args": {"a": 1}}),
    "an operator that is none": json.dumps({"op": ["and"], "args": [ROW, ROW]}),
}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def vector(house: House) -> str:
    return (await published(house))[0]


def refused(answer: Any, about: str) -> None:
    assert 400 <= answer.status_code < 500, (about, answer.status_code, answer.text[:300])
    assert answer.headers["content-type"] == "application/problem+json", about
    assert answer.json()["code"], about


@pytest.mark.parametrize("about", HOSTILE)
async def test_filters_are_bounded_before_they_are_read(house: House, vector: str, about: str) -> None:
    text = HOSTILE[about]
    language = "cql2-json" if text.startswith("{") else "cql2-text"
    for path in ("/stac/search", "/stac/collections", f"{vector}/items"):
        answer = await house.client.get(path, params={"filter": text, "filter-lang": language})
        refused(answer, f"{path}: {about}")


async def test_filters_in_a_body_are_bounded(house: House) -> None:
    for about, text in HOSTILE.items():
        if text.startswith("{") and text.endswith("}"):
            answer = await house.client.post("/stac/search", content=f'{{"filter": {text}}}')
            refused(answer, about)


RING = [[0, 0], [1, 0], [1, 1], [0, 0]]
BODIES: dict[str, Any] = {
    "an unknown field": {"colections": ["a"]},
    "the query extension": {"query": {"a": {"eq": 1}}},
    "an inner field": {"conf": {"a": 1}},
    "too many ids": {"ids": ["a"] * 1_001},
    "too many collections": {"collections": ["a"] * 1_001},
    "too many fields": {"fields": {"include": [f"f{n}" for n in range(300)]}},
    "too many orders": {"sortby": [{"field": f"f{n}", "direction": "asc"} for n in range(30)]},
    "too many points": {"intersects": {"type": "Polygon", "coordinates": [[*[[0.5, 1]] * 6_000, [0.5, 1]]]}},
    "a deep body": nested(60),
    "a geometry that is none": {"intersects": {"type": "Polygon", "coordinates": [[[0, 0], [1, 1]]]}},
    "a list": [1, 2, 3],
}


@pytest.mark.parametrize("about", BODIES)
async def test_searches_are_bounded(house: House, about: str) -> None:
    refused(await house.client.post("/stac/search", json=BODIES[about]), about)


@pytest.mark.parametrize(
    "query",
    [
        "colections=a", "query=%7B%7D", "limit=0", "ids=" + "a," * 1_001, "collections=" + "a," * 1_001,
        "sortby=" + "a," * 30, "fields=" + ",".join(f"f{n}" for n in range(300)), "bbox=nan,0,1,1", "bbox=0,0,inf,1",
        "bbox=1,2,3", "bbox=a", "intersects=%7B", "intersects=%5B1%5D", "intersects=" + "%5B" * 5_000,
        "intersects=%7B%22type%22%3A%22Point%22%2C%22coordinates%22%3A%5B1e400%2C0%5D%7D", "datetime=tomorrow",
        "ids=a%00b", "datetime=%00", "token=next:00:00", "filter=%00",
    ],
)  # fmt: skip
async def test_parameters_of_searches_are_bounded(house: House, query: str) -> None:
    refused(await house.client.get(f"/stac/search?{query}"), query)


async def test_known_fields_pass(house: House) -> None:
    for path in ("/stac/search", "/stac/collections"):
        answer = await house.client.get(f"{path}?limit=1&filter=id%3D%27a%27&filter-lang=cql2-text&fields=id&sortby=id")
        assert answer.status_code == 200, answer.text
    body = {"limit": 1, "filter": ROW, "filter-lang": "cql2-json", "sortby": [{"field": "id", "direction": "asc"}]}
    answer = await house.client.post(
        "/stac/search", json={**body, "ids": ["a"], "intersects": {"type": "Point", "coordinates": [0, 0]}}
    )
    assert answer.status_code == 200, answer.text
    for collection in ("/stac/collections?colection=1", "/stac/collections/none/items?colection=1"):
        refused(await house.client.get(collection), collection)
