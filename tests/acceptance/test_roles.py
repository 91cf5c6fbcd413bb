"""Who our processes are in the database, and what they know: a plain owner is enough for everything."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import httpx
import numpy as np

from tests.acceptance.conftest import Geomill
from tests.acceptance.test_assets import Town
from tests.acceptance.test_up import client_of, eventually, free_port, is_ready, running
from tests.integration.raster.sources import Made
from tests.integration.vector import sources
from tests.owners import owned_database

RASTER = ("--data-type", "raster", "--ref", "dataset_id=d", "--ref", "resource_id=pixels", "--ref", "version_id=v1")
VECTOR = ("--data-type", "vector", "--ref", "dataset_id=d", "--ref", "resource_id=shapes", "--ref", "version_id=v1")


def outside_url(town: Town) -> str:
    log = (town.data.parent / "log").read_text()
    found = re.search(r"what is public, for everybody: (http://\S+)/viewer/", log)
    assert found is not None, log
    return found[1]


def publish_both(town: Town) -> dict[str, Any]:
    """A raster and a vector asset, processed, approved as public and copied outside."""
    pixels, shapes = town.data.parent / "pixels.tif", town.data.parent / "shapes.gpkg"
    pixels.write_bytes(Made(np.arange(256 * 256, dtype=np.uint16).reshape(1, 256, 256)).encode())
    sources.write(shapes, sources.table(sources.squares(50)), kind="Polygon")
    submitted = {
        "raster": town.run("submit", str(pixels), *RASTER, "--wait"),
        "vector": town.run("submit", str(shapes), *VECTOR, "--wait"),
    }
    for one in submitted.values():
        assert one["status"] == "completed", one
        town.ended(town.run("approve", one["asset_id"], "--clearance", "public"))
    return {kind: one["asset_id"] for kind, one in submitted.items()}


def look(base: str, published: dict[str, Any]) -> None:
    """As somebody without any key."""
    with httpx.Client(base_url=base, timeout=60) as client:
        assert client.get("/stac/search").json()["numberMatched"] == 2
        assert client.get("/stac/search", params={"filter": "eo:cloud_cover < 5"}).status_code == 200
        items = client.get(f"/vector/collections/{published['vector']}/items").json()
        assert items["numberMatched"] == 50
        preview = client.get(f"/raster/assets/{published['raster']}/preview.png")
        assert (preview.status_code, preview.headers["content-type"]) == (200, "image/png")


def live_a_life(town: Town, base: str) -> None:
    published = publish_both(town)
    look(base, published)
    look(outside_url(town), published)
    for asset_id in published.values():
        town.run("unpublish", asset_id, "--delete-data", "--reason", "over")
    eventually(lambda: not town.zone("silver") and not town.outside(), "nothing is left")


def test_a_role_that_merely_owns_its_databases_is_enough(server: str, data: Path, geomill: Geomill) -> None:
    with owned_database(server) as inside, owned_database(server) as outside:
        settings = {"GEOMILL_DATABASE_URL": inside.url, "GEOMILL_EXTERNAL_DATABASE_URL": outside.url}
        refused = geomill("db", "migrate", **settings)
        assert refused.code == 1
        inside.prepare(*re.findall(r"^    (\S.*);$", refused.err, re.MULTILINE))
        refused = geomill("db", "migrate", **settings)
        outside.prepare(*re.findall(r"^    (\S.*);$", refused.err, re.MULTILINE))
        migrated = geomill("db", "migrate", **settings)
        assert migrated.code == 0, migrated.err
        assert geomill("db", "status", **settings).out.endswith("up to date\n")
        port = free_port()
        with running(data, port, **settings) as process, client_of(port) as client:
            eventually(lambda: is_ready(client), "ready", patience=120)
            live_a_life(Town(process, data, geomill), f"http://127.0.0.1:{port}")
