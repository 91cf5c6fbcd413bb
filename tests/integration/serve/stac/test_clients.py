"""Programs of others against an API that really runs: pystac-client, stac-validator, stac-api-validator."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pystac.validation
import pystac_client
import pytest
from pystac.validation.local_validator import get_local_schema_cache
from stac_api_validator import validations
from stac_validator import utilities, validate

from geomill.domain.access.visibility import Sight
from geomill.store.pool import open_pool
from tests.integration.catalogue.conftest import an_item
from tests.integration.serve.stac.conftest import Serve, put_asset

HOUSE = {"sight": Sight(everything=True).model_dump_json()}
MISTAKEN = (
    # asks for one property and without the others, and then wants five fields; the same by GET passes
    "'include': ['properties.height']}} response contained fewer than 5 fields ['properties', 'links']",
    # posts a text where the specification has a list, and reads the answer of the request before
    '"collections": "set-1"} had unexpected status code 400',
)
"""Findings of stac-api-validator that have no cause."""
EXTENSIONS = "https://stac-extensions.github.io/"


@pytest.fixture
def no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    """The core's schemas come with pystac. Those of extensions would have to be fetched: there, anything goes."""
    known, fetch = get_local_schema_cache(), utilities.fetch_and_parse_file

    def local(path: str, headers: Any = None) -> Any:
        if path.startswith(EXTENSIONS):
            return {}
        return known.get(path) or fetch(path, headers)

    for module in (utilities, validate):
        monkeypatch.setattr(module, "fetch_and_parse_file", local)


async def fill_some(database: str, count: int = 25) -> None:
    async with open_pool(database, size=1) as pool, pool.connection() as conn:
        for n in range(count):
            item = an_item(float(n), 10.0, when=f"2024-01-{n + 1:02}T00:00:00Z", title=f"item {n}", height=n)
            await put_asset(conn, f"item-{n:02}", "ddh", "public" if n % 2 else "pending", f"set-{n % 2}", item)


async def test_pystac_client(database: str, serve: Serve) -> None:
    await fill_some(database)
    async with serve(database) as client:
        address = f"{client.base_url}/stac/"
        await asyncio.to_thread(check_with_pystac_client, address)


def check_with_pystac_client(address: str) -> None:
    catalogue = pystac_client.Client.open(address, headers=HOUSE)
    assert {one.id for one in catalogue.get_collections()} == {"set-0", "set-1"}
    every = list(catalogue.search(limit=4).items())
    assert [item.id for item in every] == [f"item-{n:02}" for n in reversed(range(25))]  # newest first
    assert catalogue.search(max_items=5).matched() == 25
    assert {item.id for item in catalogue.search(bbox=[0.5, 10.2, 2.5, 10.8]).items()} == {
        "item-00",
        "item-01",
        "item-02",
    }
    assert {item.id for item in catalogue.search(datetime="2024-01-03/2024-01-04").items()} == {"item-02", "item-03"}
    condition = {"op": "<", "args": [{"property": "height"}, 3]}
    found = catalogue.search(filter=condition, sortby=[{"field": "properties.height", "direction": "asc"}])
    assert [item.id for item in found.items()] == ["item-00", "item-01", "item-02"]
    by_get = catalogue.search(method="GET", filter="height > 22", sortby="-properties.height", limit=1)
    assert [item.id for item in by_get.items()] == ["item-24", "item-23"]
    fields = catalogue.search(fields=["id", "properties.height"], max_items=1).item_collection_as_dict()["features"][0]
    assert "assets" not in fields
    item = catalogue.get_collection("set-1").get_item("item-07")
    assert item is not None
    assert pystac.validation.validate_dict({**item.to_dict(), "stac_extensions": []})
    assert item.assets["data"].href == f"{address}files/item-07/2/a.tif"
    assert item.get_self_href() == f"{address}collections/set-1/items/item-07"
    named = pystac_client.Client.open(address, headers=HOUSE).collection_search(q="set-0")
    assert [one.id for one in named.collections()] == ["set-0"]
    assert {item.id for item in pystac_client.Client.open(address).search().items()} == {
        f"item-{n:02}" for n in range(1, 25, 2)
    }


@pytest.mark.usefixtures("no_network")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of the validator's own
async def test_stac_api_validator(database: str, serve: Serve) -> None:
    await fill_some(database)
    async with serve(database) as client:
        address = f"{client.base_url}/stac/"
        _warnings, errors = await asyncio.to_thread(validated, address)
    assert [str(error) for error in errors if not any(known in str(error) for known in MISTAKEN)] == []


def validated(address: str) -> tuple[Any, Any]:
    place = {"type": "Polygon", "coordinates": [[[0, 9], [30, 9], [30, 12], [0, 12], [0, 9]]]}
    run: Callable[..., tuple[Any, Any]] = validations.validate_api
    return run(
        root_url=address,
        ccs_to_validate=[
            "core",
            "collections",
            "features",
            "item-search",
            "filter",
            "item-search#sort",
            "item-search#fields",
        ],
        collection="set-1",
        geometry=json.dumps(place),
        auth_bearer_token=None,
        auth_query_parameter=None,
        fields_nested_property="properties.height",
        validate_pagination=True,
        query_config=validations.QueryConfig(*[None] * len(validations.QueryConfig.__dataclass_fields__)),
        transaction_collection=None,
        headers=HOUSE,
        open_assets_urls=False,
    )
