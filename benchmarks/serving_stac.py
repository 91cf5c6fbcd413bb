"""The questions to the STAC API, and its items: ten collections, nine of ten items public."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from typing import Any

from benchmarks.serving_pairs import Ask, ServingPair
from geomill.catalogue import bulk
from geomill.domain.access.api_key import Secret
from geomill.domain.access.principal import Role
from geomill.store import keys
from geomill.store.pool import open_pool

ITEMS, COLLECTIONS = 10_000, 10
BOXES = [(x, y) for x in range(-170, 170, 17) for y in range(-60, 60, 12)]


def fill(url: str) -> str:
    """The key of a reviewer."""
    return asyncio.run(_fill(url))


async def _fill(url: str) -> str:
    documents = {f"bench-{number}": _collection(f"bench-{number}") for number in range(COLLECTIONS)}
    secret = Secret.new()
    async with open_pool(url, size=1) as pool, pool.connection() as conn:
        await bulk.put_items(conn, (item(number) for number in range(ITEMS)), documents, platform_id="ddh")
        await conn.execute("ANALYZE")
        await keys.create(conn, secret, name="bench", roles=[Role.REVIEWER], created_by="bench")
    return secret.reveal()


def _collection(name: str) -> dict[str, Any]:
    return {"stac_version": "1.1.0", "license": "other", "description": f"Items of {name}"}


def item(number: int) -> dict[str, Any]:
    """Return an item like that of a raster, some 3 KB."""
    west, south = number * 7 % 358 - 179.0, number * 11 % 168 - 84.0
    ring = [[west, south], [west + 1, south], [west + 1, south + 1], [west, south + 1], [west, south]]
    band = {"name": "b", "data_type": "uint8", "statistics": {"minimum": 0, "maximum": 255, "mean": 99, "stddev": 20}}
    public = number % 10 != 0
    properties = {
        "datetime": f"20{20 + number % 5}-{1 + number % 12:02d}-{1 + number % 28:02d}T00:00:00Z",
        "proj:code": f"EPSG:{32600 + number % 60}", "proj:shape": [10000, 10000], "gsd": number % 50,
        "processing:lineage": "a file, warped, as COG " * 8, "version": "1", "deprecated": False,
        "geomill:asset_id": f"{number:032x}", "geomill:revision": 1, "geomill:platform": "ddh",
        "geomill:approval": "approved" if public else "pending_review",
        "geomill:clearance": "public" if public else "ouo", "geomill:public": public,
    }  # fmt: skip
    files = {
        key: {
            "href": f"files/{number:032x}/1/{key}.tif", "type": "image/tiff", "roles": ["data"], "bands": [band] * 3,
            "file:checksum": "1220" + "ab" * 32, "file:size": 123456,
        }
        for key in ("data", "preview")
    }  # fmt: skip
    return {
        "type": "Feature", "stac_version": "1.1.0", "stac_extensions": [], "id": f"item-{number}",
        "collection": f"bench-{number % COLLECTIONS}", "geometry": {"type": "Polygon", "coordinates": [ring]},
        "bbox": [west, south, west + 1, south + 1], "links": [], "properties": properties, "assets": files,
    }  # fmt: skip


def pairs(geomill: str, bare: str, key: str) -> Iterator[ServingPair]:
    for who, headers in (("anonymous", {}), ("reviewer", {"X-API-Key": key})):
        for what, questions in _questions():
            yield ServingPair(
                f"STAC: {what}, {who}",
                [Ask(f"{geomill}/stac{path}", body, headers) for path, body in questions],
                [Ask(f"{bare}{path}", body) for path, body in questions],
            )


def _questions() -> Iterator[tuple[str, list[tuple[str, bytes | None]]]]:
    boxes = [f"{x},{y},{x + 20},{y + 15}" for x, y in BOXES]
    yield "search, 10 newest", [("/search?limit=10", None)]
    yield "search in a box", [(f"/search?limit=10&bbox={box}", None) for box in boxes]
    filters = [
        {
            "op": "and",
            "args": [
                {"op": "=", "args": [{"property": "proj:code"}, f"EPSG:{32600 + number % 60}"]},
                {"op": "<", "args": [{"property": "gsd"}, 25 + number % 20]},
            ],
        }
        for number in range(120)
    ]
    bodies = [{"filter": condition, "filter-lang": "cql2-json", "limit": 10} for condition in filters]
    yield "POST search with CQL2", [("/search", json.dumps(body).encode()) for body in bodies]
    public = [number for number in range(0, ITEMS, 7) if number % 10]
    yield (
        "item by id",
        [(f"/collections/bench-{number % COLLECTIONS}/items/item-{number}", None) for number in public],
    )
    yield "collections", [("/collections", None)]
