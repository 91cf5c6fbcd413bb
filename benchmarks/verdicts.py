"""Verdicts of assets: the time until jobs end and their items appear, also while another session locks the items."""

from __future__ import annotations

import asyncio
import statistics
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx
import psycopg

from benchmarks.figures import Figure
from benchmarks.platform import GatewayClient, gateway
from benchmarks.roles import roles
from benchmarks.server import database

ASSETS = 20
TURNS = 5
WORKFLOW: dict[str, Any] = {
    "workflow_id": "catalogued",
    "name": "One task and an item",
    "started_by": "partners",
    "inputs": {"container_name": {"type": "string"}, "file_name": {"type": "string"}, "item": {"type": "object"}},
    "nodes": {
        "START": {"type": "start", "next": "work"},
        "work": {"type": "task", "handler": "bench.noop", "next": "END"},
        "END": {"type": "end"},
    },
    "outputs": {"stac_item": "{{ inputs.item }}"},
}
SQUARE = [[10.0, 50.0], [11.0, 50.0], [11.0, 51.0], [10.0, 51.0], [10.0, 50.0]]
ITEM = {
    "type": "Feature",
    "stac_version": "1.1.0",
    "stac_extensions": [],
    "id": "named by the workflow",
    "geometry": {"type": "Polygon", "coordinates": [SQUARE]},
    "bbox": [10.0, 50.0, 11.0, 51.0],
    "properties": {"datetime": "2024-04-17T00:00:00Z"},
    "links": [],
    "assets": {},
}
HOLD = "SELECT pg_advisory_xact_lock(hashtextextended(stac_collection_id, 11)) FROM app.asset_collections"
ENDED = "SELECT count(*) FROM app.geospatial_assets WHERE processing_status = 'completed'"
SHOWN = "SELECT count(*) FROM pgstac.items"


def run() -> Iterator[Figure]:
    with database() as url, _publishing(url) as client:
        asyncio.run(_publish(client, "warm"))
        _wait(url, ENDED, ASSETS)
        free, shown, locked = [], [], []
        for turn in range(TURNS):
            free_seconds, shown_seconds = _turn(url, client, f"free{turn}", (2 * turn + 1) * ASSETS)
            free.append(free_seconds)
            shown.append(shown_seconds)
            with psycopg.connect(url) as other:
                other.execute(HOLD)
                held_seconds, _ = _turn(url, client, f"held{turn}", (2 * turn + 2) * ASSETS, catalogued=False)
                locked.append(held_seconds)
            _wait(url, SHOWN, (2 * turn + 3) * ASSETS)
    middle = statistics.median(free)
    yield Figure(f"{ASSETS} assets until their jobs have ended", middle, "s")
    yield Figure("  until their items are in the catalogue", statistics.median(shown), "s")
    ratio = statistics.median(locked) / middle
    yield Figure("  jobs ended, collection locked by another", statistics.median(locked), "s", f"{ratio:.2f} times")


def _turn(
    url: str, client: GatewayClient, name: str, before: int, *, catalogued: bool = True
) -> tuple[float, float | None]:
    """Seconds until the jobs of some new assets have ended, and until their items are there."""
    begun = time.perf_counter()
    asyncio.run(_publish(client, name))
    _wait(url, ENDED, before + ASSETS)
    ended = time.perf_counter() - begun
    if catalogued:
        _wait(url, SHOWN, before + ASSETS)
    return ended, time.perf_counter() - begun


@contextmanager
def _publishing(url: str) -> Iterator[GatewayClient]:
    with roles(url, workers=1, workflows=(WORKFLOW,)) as running, gateway(url, running.folder) as client:
        yield client


async def _publish(client: GatewayClient, name: str) -> None:
    async with httpx.AsyncClient(base_url=client.url, headers=client.headers, timeout=60) as http:
        await asyncio.gather(*(_submit(http, f"{name}-{number}") for number in range(ASSETS)))


async def _submit(http: httpx.AsyncClient, resource: str) -> None:
    body = {
        "dataset_id": "bench",
        "resource_id": resource,
        "version_id": "v1",
        "data_type": "raster",
        "container_name": "uploads",
        "file_name": "a.tif",
        "workflow_id": "catalogued",
        "processing_options": {"item": ITEM},
    }
    answer = await http.post("/api/platform/submit", json=body)
    assert answer.status_code == 202, answer.text


def _wait(url: str, query: str, count: int) -> None:
    deadline = time.monotonic() + 120
    with psycopg.connect(url, autocommit=True) as conn:
        while time.monotonic() < deadline:
            row = conn.execute(query).fetchone()
            if row is not None and row[0] >= count:
                return
            time.sleep(0.005)
    raise AssertionError(f"there are not {count} rows: {query}")
