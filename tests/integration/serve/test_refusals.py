"""Requests that no service can answer are refused with a problem document, and cost next to nothing."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import quote

import pytest
import pytest_asyncio

from geomill.storage import Storage
from tests.integration.catalogue.conftest import an_item
from tests.integration.raster import sources
from tests.integration.serve.stac.conftest import put_asset
from tests.integration.serve.test_rasters import published as published_raster
from tests.integration.serve.test_rasters import put_raster
from tests.integration.serve.test_vectors import published
from tests.integration.serve.zone import House

pytestmark = [
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.filterwarnings("ignore::rio_tiler.errors.InvalidDatatypeWarning"),
    pytest.mark.filterwarnings("ignore:.*encountered in:RuntimeWarning"),
]

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


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def raster(house: House, shelf: Storage) -> str:
    heights = sources.SyntheticRaster(sources.noise((1, 300, 300), "float32", 0, 1000), nodata=-9999)
    return await published_raster(house, "heights", put_raster(shelf, heights, "heights"), "dem")


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
        "colections=a",
        "query=%7B%7D",
        "limit=0",
        "ids=" + "a," * 1_001,
        "collections=" + "a," * 1_001,
        "sortby=" + "a," * 30,
        "fields=" + ",".join(f"f{n}" for n in range(300)),
        "bbox=nan,0,1,1",
        "bbox=0,0,inf,1",
        "bbox=1,2,3",
        "bbox=a",
        "intersects=%7B",
        "intersects=%5B1%5D",
        "intersects=" + "%5B" * 5_000,
        "intersects=%7B%22type%22%3A%22Point%22%2C%22coordinates%22%3A%5B1e400%2C0%5D%7D",
        "datetime=tomorrow",
        "ids=a%00b",
        "datetime=%00",
        "token=next:00:00",
        "filter=%00",
    ],
)
async def test_parameters_of_searches_are_bounded(house: House, query: str) -> None:
    refused(await house.client.get(f"/stac/search?{query}"), query)


@pytest.mark.parametrize("query", ["fields=", "fields=id,,bbox", "fields=,", "sortby=", "sortby=,", "sortby=id,,-id"])
async def test_empty_names_mean_nothing(house: House, query: str) -> None:
    for path in ("/stac/search", "/stac/collections"):
        answer = await house.client.get(f"{path}?{query}")
        assert answer.status_code == 200, (path, answer.text)


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


FEATURES = [
    f"filter={quote(WORLD[:-1])}",
    "bbox=nan,0,1,1",
    "bbox=0,0,inf,1",
    "bbox=a",
    "bbox=1,2,3",
    "bbox=0,0,1,1&bbox-crs=EPSG:99999999999999999999",
    "bbox=nan,0,1,1&bbox-crs=EPSG:3857",
    "simplify=nan",
    "simplify=inf",
    "simplify=-1",
    "limit=-1",
    "limit=99999999999999999999",
    "offset=-1",
    "offset=99999999999999999999",
    "datetime=tomorrow",
    "datetime=%00",
    "ids=%00",
    "ids=x",
    "properties=nothing",
    "sortby=nothing",
    "sortby=%00",
    "select=%00",
    "geom-column=nothing",
    "datetime-column=nothing",
    "crs=%00",
    "f=%00",
    "bbox-only=maybe",
    "id=99999999999999999999",
    "ids=99999999999999999999",
    "size=nan",
    "made=yesterday",
    "datetime=99999-01-01T00:00:00Z",
]


@pytest.mark.parametrize("query", FEATURES)
async def test_parameters_of_features_are_checked(house: House, vector: str, query: str) -> None:
    answer = await house.client.get(f"{vector}/items?{query}")
    if answer.status_code != 200:
        refused(answer, query)
    tile = await house.client.get(f"{vector}/tiles/WebMercatorQuad/0/0/0?{query}")
    if tile.status_code not in (200, 204):
        refused(tile, query)


@pytest.mark.parametrize("zoom", [-1, 31, 999, 999_999_999_999])
@pytest.mark.parametrize("place", ["0/0", "-1/0", "0/999999999999999999999"])
async def test_tiles_have_limits(house: House, vector: str, raster: str, zoom: int, place: str) -> None:
    for path in (
        f"{vector}/tiles/WebMercatorQuad/{zoom}/{place}",
        f"{raster}/tiles/WebMercatorQuad/{zoom}/{place}.png",
        f"{raster}/tiles/WorldCRS84Quad/{zoom}/{place}.tif",
    ):
        refused(await house.client.get(path), path)


@pytest.mark.parametrize(
    "path",
    [
        "bbox/nan,0,1,1.png",
        "bbox/0,0,inf,1.png",
        "bbox/1e400,0,1,1.png",
        "bbox/15,45,15,45.png",
        "bbox/15,45,14,44.png",
        "bbox/a,b,c,d.png",
        "bbox/15,45,15.1,45.1.png?max_size=nan",
        "bbox/15,45,15.1,45.1.png?width=-1",
        "bbox/15,45,15.1,45.1.png?width=0&height=0",
        "bbox/15,45,15.1,45.1/0x0.png",
        "bbox/15,45,15.1,45.1/-1x5.png",
        "point/1e400,0",
        "point/nan,0",
        "point/200,95",
        "point/0,inf",
        "point/15.05,45.12?expression=__import__",
        "preview.png?expression=b1%2F0",
        "preview.png?rescale=nan,1",
        "preview.png?rescale=1",
        "preview.png?rescale=a,b",
        "preview.png?colormap=%7B",
        "preview.png?colormap=%5B1%5D",
        "preview.png?colormap_name=none",
        "preview.png?bidx=99999999999999999999",
        "preview.png?bidx=-1",
        "preview.png?color_formula=gamma",
        "preview.png?nodata=x",
        "preview.png?algorithm=none",
        "preview.png?algorithm=hillshade&algorithm_params=%7B",
        "preview.png?algorithm_params=%5B1%5D&algorithm=hillshade",
        "preview.png?resampling=none",
        "preview/0x0.png",
        "preview.png?dst_crs=EPSG:0",
        "preview.png?dst_crs=x",
        "preview.png?dst_crs=http://127.0.0.1:1/",
        "statistics?p=200",
        "statistics?p=nan",
        "statistics?histogram_bins=-1",
        "statistics?histogram_range=nan,1",
        "statistics?categorical=true&c=nan",
        "statistics?histogram_bins=a",
        "statistics?histogram_bins=3,1,2",
        "preview.png?algorithm=grayscale",
        "tiles/WebMercatorQuad?minzoom=-99999999999999999&maxzoom=9999999999",
        "WebMercatorQuad/tilejson.json?minzoom=-1",
        "WebMercatorQuad/tilejson.json?maxzoom=99999999999999",
        "tiles/NoGrid/0/0/0.png",
        "bbox/15,45,15.1,45.1.png?coord_crs=x",
        "bbox/15,45,15.1,45.1.png?dst_crs=EPSG:99999999",
        "WMTSCapabilities.xml?minzoom=9999999999",
        "tiles?f=%00",
        "info?f=%00",
        "%00/info",
    ],
)
async def test_parameters_of_rasters_are_checked(house: House, raster: str, path: str) -> None:
    answer = await house.client.get(f"{raster}/{path}")
    if answer.status_code not in (200, 204):
        refused(answer, path)
    assert "nan" not in path.partition("/")[2].partition("?")[0] or answer.status_code >= 400


def feature(ring: list[list[float]]) -> dict[str, Any]:
    return {"type": "Feature", "properties": {}, "geometry": {"type": "Polygon", "coordinates": [ring]}}


@pytest.mark.parametrize(
    "body",
    [
        {},
        [],
        {"type": "Feature"},
        {"type": "Feature", "properties": {}, "geometry": None},
        {"type": "Feature", "properties": {}, "geometry": {"type": "Point", "coordinates": [0, 0]}},
        {"type": "Feature", "properties": {}, "geometry": {"type": "Polygon", "coordinates": []}},
        feature([[0, 0]] * 4),
        feature([[1e300, 0], [0, 1e300], [1, 1], [1e300, 0]]),
        {"type": "FeatureCollection", "features": []},
    ],
)
async def test_shapes_for_rasters_are_checked(house: House, raster: str, body: Any) -> None:
    for path in ("statistics", "feature.png"):
        answer = await house.client.post(f"{raster}/{path}", json=body)
        if answer.status_code != 200:
            refused(answer, path)


async def test_a_box_is_a_place(house: House, vector: str) -> None:
    for path in (f"{vector}/items", "/stac/search"):
        name = "geometry" if path.startswith("/stac") else "geom"
        answer = await house.client.get(path, params={"filter": WORLD.replace("geom", name)})
        assert answer.status_code == 200, answer.text


async def test_an_unsound_footprint_does_not_spoil_a_search(house: House) -> None:
    parts = [[[[x, x], [x + 10, x], [x + 10, x + 10], [x, x + 10], [x, x]]] for x in (0, 5)]
    overlapping = {"type": "MultiPolygon", "coordinates": parts}
    item = {**an_item(), "geometry": overlapping, "bbox": [0, 0, 15, 15]}
    async with house.pool.connection() as conn:
        await put_asset(conn, "unsound", "ddh", "public", "unsound", item)
    for line, expected in (
        ([[0, 0], [20, 20]], ["unsound"]),
        ([[7, 8], [8, 7]], ["unsound"]),
        ([[16, 0], [20, 3]], []),
    ):
        shape = {"type": "LineString", "coordinates": line}
        answer = await house.client.post("/stac/search", json={"intersects": shape})
        assert answer.status_code == 200, answer.text
        assert [feature["id"] for feature in answer.json()["features"]] == expected, line
    answer = await house.client.post("/stac/search", json={"intersects": overlapping})
    assert answer.status_code in (200, 400), answer.text


@pytest.mark.parametrize("offset", ["-1", "1" + "0" * 25])
async def test_pages_begin_somewhere(house: House, offset: str) -> None:
    for path in ("/viewer/?f=json&offset=", "/vector/collections?offset=", "/stac/collections?offset="):
        refused(await house.client.get(path + offset), path)
